"""A service that notes what activity tasks report, and clocks that tests move."""

from collections.abc import Callable, Sequence
from typing import Any

from wfcore.activity import Definition
from wfcore.converter import DataConverter
from wfcore.protocol.common import ActivityType, WorkflowExecution, WorkflowType
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
)
from wfcore.worker._activities import ActivityTaskRunner
from wfcore.worker._alarms import Alarm
from wfcore.worker._registry import Registry

Report = (
    RespondActivityTaskCompletedRequest
    | RespondActivityTaskFailedRequest
    | RespondActivityTaskCanceledRequest
)
converter = DataConverter.default.payload_converter


class ManualAlarms:
    """Alarms of a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.alarms: list[Alarm] = []

    def now(self) -> float:
        return self.time

    def call_at(self, at: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(at, call)
        self.alarms.append(alarm)
        return alarm

    def advance(self, seconds: float) -> None:
        """Move the clock, ringing what is due on the way, in order."""
        end = self.time + seconds
        while due := sorted((a for a in self.alarms if a.at <= end), key=lambda a: a.at):
            self.time = max(self.time, due[0].at)
            self.alarms.remove(due[0])
            due[0].ring()
        self.time = end


class ActivityServiceStub:
    """Takes every report; `heartbeat` and `refuse` say what it answers."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.heartbeats: list[list[Any]] = []
        self.heartbeat: Callable[[], RecordActivityTaskHeartbeatResponse] = (
            RecordActivityTaskHeartbeatResponse
        )
        self.refuse: list[Exception] = []

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse:
        self.heartbeats.append(converter.from_payloads_wrapper(request.details))
        return self.heartbeat()

    def _take(self, request: Report) -> None:
        if self.refuse:
            raise self.refuse.pop(0)
        self.reports.append(request)

    respond_activity_task_completed = _take
    respond_activity_task_failed = _take
    respond_activity_task_canceled = _take

    @property
    def report(self) -> Report:
        """The only report."""
        (report,) = self.reports
        return report

    def result(self) -> Any:
        """The result that was reported."""
        assert isinstance(self.report, RespondActivityTaskCompletedRequest)
        (result,) = converter.from_payloads_wrapper(self.report.result)
        return result

    def failure(self) -> Any:
        """The failure that was reported."""
        assert isinstance(self.report, RespondActivityTaskFailedRequest), self.report
        assert self.report.failure is not None
        return self.report.failure


def a_task(activity: Any, *args: Any, **fields: Any) -> PollActivityTaskQueueResponse:
    """An attempt of an activity, given by its function or its name."""
    name = activity if isinstance(activity, str) else None
    if name is None:
        name = Definition.must_from_callable(activity).name
    return PollActivityTaskQueueResponse(
        task_token=b"token",
        workflow_namespace="default",
        workflow_type=WorkflowType(name="Order"),
        workflow_execution=WorkflowExecution(workflow_id="order-1", run_id="run-1"),
        activity_type=ActivityType(name=name or "anything"),
        activity_id="7",
        input=converter.to_payloads_wrapper(args) if args else None,
        attempt=fields.pop("attempt", 1),
        **fields,
    )


def a_runner(
    service: ActivityServiceStub, activities: Sequence[Any], **options: Any
) -> ActivityTaskRunner:
    """A runner of these activities."""
    return ActivityTaskRunner(
        service,
        Registry(activities=activities),
        options.pop("data_converter", DataConverter.default),
        "worker-1",
        task_queue="shop",
        **options,
    )
