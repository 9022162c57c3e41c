"""The processes of a simulated world. Each has a service of its own over the one store."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.service.workflow_service import WorkflowService
from wfcore.worker import WorkflowTaskRunner

#: How long after its death a worker's claims are found.
LEASE = timedelta(seconds=10)


class Process:
    """Makes calls, one at a time, until it dies."""

    def __init__(
        self, name: str, service: WorkflowService, skew: timedelta, buried: Callable[[], None]
    ) -> None:
        self.name = name
        self.service = service
        self.skew = skew
        self.is_alive = True
        #: calls in progress
        self.calls = 0
        self._buried = buried

    @property
    def is_idle(self) -> bool:
        """Whether it may be given something to do."""
        return self.is_alive and not self.calls

    def die(self) -> None:
        """Whatever it does ends here; what it wrote without a commit is gone."""
        self.is_alive = False
        self._buried()


class Client(Process):
    """Starts, steers and reads workflows."""


class Ticker(Process):
    """Does what has come due."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldTask:
    """A workflow task that a worker has claimed."""

    task: PollWorkflowTaskQueueResponse
    identity: str
    request_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldActivity:
    """An attempt of an activity that a worker has claimed."""

    task: PollActivityTaskQueueResponse
    identity: str
    cancel_requested: bool = False


class Worker(Process):
    """Runs workflow tasks and activities; several at a time.

    Attributes:
        tasks, activities: what it has claimed and not answered.
        old_tasks, old_activities: what it has answered, to answer again.
        died_at: when it died; None while it lives.
        runner: runs real workflow code; one task at a time, since a thread that waits for an
            instance would stop all others.
        is_coding: the runner is busy.
    """

    #: Calls of one worker that may be in progress at a time.
    SLOTS = 3

    def __init__(
        self, name: str, service: WorkflowService, skew: timedelta, buried: Callable[[], None]
    ) -> None:
        super().__init__(name, service, skew, buried)
        self.boot_id = f"boot-{name}"
        self.tasks: list[HeldTask] = []
        self.activities: list[HeldActivity] = []
        self.old_tasks: list[HeldTask] = []
        self.old_activities: list[HeldActivity] = []
        self.died_at: datetime | None = None
        self.runner: WorkflowTaskRunner | None = None
        self.is_coding = False

    @property
    def is_idle(self) -> bool:
        return self.is_alive and self.calls < self.SLOTS
