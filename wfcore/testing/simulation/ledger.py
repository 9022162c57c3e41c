"""What was asked for and what was answered, to be held against what became of it.

An answer that was not heard leaves both open: it was done once, or not at all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from wfcore.exceptions import AbortedError, RPCError, UnavailableError
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.protocol.updates import Outcome as UpdateOutcome
from wfcore.protocol.updates import ProtocolMessage, Rejection
from wfcore.service.ports import RunKey
from wfcore.service.tokens import ActivityToken, WorkflowToken
from wfcore.testing.simulation.faults import ConnectionLostError

T = TypeVar("T")


class Outcome(StrEnum):
    """What whoever asked has heard."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(kw_only=True, slots=True)
class Try:
    """One call that asks for something."""

    by: str
    outcome: Outcome = Outcome.UNKNOWN
    #: the error's text, if it was refused
    why: str = ""
    #: sent inside a caller's transaction, so that a run that closes before its end drops it
    may_be_dropped: bool = False
    #: what a start answered
    run_id: str = ""
    started: bool = False


@dataclass(kw_only=True, slots=True)
class Wish:
    """Something that may be asked for more than once, and is to be done at most once."""

    tag: str
    tries: list[Try] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        """How many tries ended so."""
        return sum(each.outcome is outcome for each in self.tries)

    @property
    def is_granted(self) -> bool:
        """Whether anybody was told that it is done."""
        return self.count(Outcome.ACKNOWLEDGED) > 0


@dataclass(kw_only=True, slots=True)
class SignalWish(Wish):
    """A signal; its tag is the identity in the event."""

    workflow_id: str
    run_id: str = ""
    request_id: str = ""
    #: the start that it may come with
    start_request_id: str = ""


@dataclass(kw_only=True, slots=True)
class UpdateTry(Try):
    """One call that sends an update or asks about it, and what it was told."""

    is_poll: bool = False
    stage: Stage = Stage.UNSPECIFIED
    end: UpdateOutcome | None = None


@dataclass(kw_only=True, slots=True)
class UpdateWish(Wish):
    """An update; its tag is its id."""

    workflow_id: str
    run_id: str = ""


@dataclass(kw_only=True, slots=True)
class StartWish(Wish):
    """A run of one's own; its tag is the request id."""

    request: StartWorkflowExecutionRequest
    #: it came with a signal at least once
    has_signal: bool = False


@dataclass(kw_only=True, slots=True)
class StopWish(Wish):
    """A termination; its tag is the reason in the event."""

    workflow_id: str
    run_id: str = ""


@dataclass(kw_only=True, slots=True)
class TaskAnswer(Wish):
    """A worker's answer to a workflow task; its tag is the binary checksum in the event."""

    token: WorkflowToken
    is_failure: bool = False
    commands: int = 0
    #: it says nothing but that updates are refused, so that it may leave no event
    may_vanish: bool = False


@dataclass(kw_only=True, slots=True)
class ActivityAnswer(Wish):
    """The end of an activity's attempt; its tag is in the result, failure or details."""

    token: ActivityToken
    kind: str


@dataclass(kw_only=True, slots=True)
class Ledger:
    """All wishes of one simulated world, by their tags."""

    signals: dict[str, SignalWish] = field(default_factory=dict)
    updates: dict[str, UpdateWish] = field(default_factory=dict)
    starts: dict[str, StartWish] = field(default_factory=dict)
    stops: dict[str, StopWish] = field(default_factory=dict)
    task_answers: dict[str, TaskAnswer] = field(default_factory=dict)
    activity_answers: dict[str, ActivityAnswer] = field(default_factory=dict)
    #: runs of workflow code that must replay
    coded: set[RunKey] = field(default_factory=set)


def may_vanish(commands: int, messages: Sequence[ProtocolMessage], *, forced: bool) -> bool:
    """Whether an answer to a workflow task may leave no event."""
    refusals = all(isinstance(message.body, Rejection) for message in messages)
    return not commands and not forced and refusals


#: Errors that don't say whether it was done.
_UNKNOWN = (ConnectionLostError, UnavailableError, AbortedError)


@contextmanager
def noting(wish: Wish, attempt: Try) -> Iterator[Try]:
    """Make a try, and note what came of it."""
    wish.tries.append(attempt)
    try:
        yield attempt
        attempt.outcome = Outcome.ACKNOWLEDGED
    except _UNKNOWN as error:
        attempt.why = str(error)
        raise
    except RPCError as error:
        attempt.outcome, attempt.why = Outcome.REFUSED, f"{type(error).__name__}: {error}"
        raise


@contextmanager
def trying(wish: Wish, attempt: Try) -> Iterator[Try]:
    """The same; errors that any caller must expect end here."""
    with suppress(ConnectionLostError, RPCError), noting(wish, attempt):
        yield attempt


def heard(wish: Wish, attempt: Try, call: Callable[[], T]) -> T | None:
    """Make a try that answers something; None when it is refused or not heard."""
    with suppress(ConnectionLostError, RPCError), noting(wish, attempt):
        return call()
    return None


def ask(call: Callable[[], T]) -> T | None:
    """Ask for something that leaves no trace; None when it is refused or not heard."""
    try:
        return call()
    except (ConnectionLostError, RPCError):
        return None
