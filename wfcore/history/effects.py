"""What the host must do after a transition is committed. Losing one loses time, never work:
whatever an effect announces stands in the state with a deadline by which it is announced again.
"""

from datetime import datetime

from wfcore.protocol.message import Message


class DispatchWorkflowTask(Message, frozen=True, kw_only=True):
    """A workflow task waits: tell a worker of the queue."""

    namespace: str
    workflow_id: str
    run_id: str
    task_queue: str
    scheduled_event_id: int
    attempt: int
    #: how often it was announced before
    sent: int = 0


class DispatchActivity(Message, frozen=True, kw_only=True):
    """An attempt of an activity may start: tell a worker of the queue."""

    namespace: str
    workflow_id: str
    run_id: str
    task_queue: str
    scheduled_event_id: int
    activity_type: str
    attempt: int
    stamp: int
    sent: int = 0


class WakeTicker(Message, frozen=True, kw_only=True):
    """A deadline stands that may be nearer than what the ticker sleeps until."""

    at: datetime


class CarryOut(Message, frozen=True, kw_only=True):
    """Things that a run has to do to other workflow ids: begin with these of its deliveries, each
    with the number of the attempt.
    """

    namespace: str
    workflow_id: str
    run_id: str
    deliveries: tuple[tuple[int, int], ...]


class NotifyHistory(Message, frozen=True, kw_only=True):
    """The history of a run grew; `closed` when it ended. Waiting readers look again."""

    namespace: str
    workflow_id: str
    run_id: str
    next_event_id: int
    closed: bool = False


class NotifyUpdate(Message, frozen=True, kw_only=True):
    """Something happened to an update of this id. Whoever waits for it looks again."""

    namespace: str
    workflow_id: str
    run_id: str
    update_id: str
    #: `Update.version`
    version: int


class Journal(Message, frozen=True, kw_only=True):
    """Something operators must know that the history doesn't hold."""

    namespace: str
    workflow_id: str
    run_id: str
    at: datetime
    #: stable name of the kind: ``attempt_lost``, ``late_result``, ``stuck``, ...
    kind: str
    text: str
    scheduled_event_id: int = 0
    attempt: int = 0
    identity: str = ""


Effect = (
    DispatchWorkflowTask | DispatchActivity | WakeTicker | CarryOut | NotifyHistory | NotifyUpdate
)
