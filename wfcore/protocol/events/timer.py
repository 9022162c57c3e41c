"""Events of timers."""

from datetime import timedelta

from wfcore.protocol.message import Message


class TimerStarted(Message, frozen=True):
    """TIMER_STARTED (17)."""

    timer_id: str = ""
    start_to_fire_timeout: timedelta | None = None
    workflow_task_completed_event_id: int = 0


class TimerFired(Message, frozen=True):
    """TIMER_FIRED (18)."""

    timer_id: str = ""
    started_event_id: int = 0


class TimerCanceled(Message, frozen=True):
    """TIMER_CANCELED (19)."""

    timer_id: str = ""
    started_event_id: int = 0
    workflow_task_completed_event_id: int = 0
    identity: str = ""
