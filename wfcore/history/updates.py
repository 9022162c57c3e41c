"""An update as its run keeps it: a row of its own, found by its id for as long as the run is kept.

It waits with its request until a worker has a word for it. Once it is accepted, events hold what it
asked and how it ended, and the row tells which. One that is refused leaves no event: its row holds
the answer for a while, so that who waits for it can find it.
"""

from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.updates import Request

_ACCEPTED, _ENDED = 1, 2
_STAGES = 4


class Update(Message, frozen=True, kw_only=True):
    """An update that was admitted. Replaced as a whole, under the run's lock."""

    update_id: str
    #: its place among the admissions of its run; an id that was refused may be admitted again
    admission: int
    #: until it is accepted or refused
    request: Request | None = None
    #: its events, 0 without
    accepted_event_id: int = 0
    completed_event_id: int = 0
    #: a worker refused it
    rejection: Failure | None = None
    #: the workflow task that should have answered it failed by its own fault
    is_aborted: bool = False

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return bool(self.completed_event_id) or self.rejection is not None or self.is_aborted

    @property
    def version(self) -> int:
        """Rises with everything that happens to the updates of this id."""
        stage = _ENDED if self.is_ended else _ACCEPTED if self.accepted_event_id else 0
        return self.admission * _STAGES + stage


class AdmittedUpdate(Message, frozen=True, kw_only=True):
    """What the state of a run tells of an update that waits."""

    admission: int
    #: of its request
    size: int
    #: of UPDATE_ADMITTED, which a reset has written: workers take the request from there
    event_id: int = 0
