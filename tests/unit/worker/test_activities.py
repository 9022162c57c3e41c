"""One attempt of an activity: one outcome, whatever its code does."""

# ruff: noqa: A002 - interceptors have Temporal's parameter names

import asyncio
import contextvars
import dataclasses
import logging
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.worker.activity_service import (
    ActivityServiceStub,
    ManualAlarms,
    a_runner,
    a_task,
    converter,
)
from wfcore import activity
from wfcore.common import RawValue
from wfcore.converter import (
    DataConverter,
    DefaultFailureConverter,
    FailureConverter,
    PayloadCodec,
    PayloadConverter,
)
from wfcore.exceptions import (
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from wfcore.protocol import common as protocol
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import Header, Payload, Payloads
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskFailedRequest,
)
from wfcore.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CANCEL = RecordActivityTaskHeartbeatResponse(cancel_requested=True)


@dataclasses.dataclass
class Order:
    id: int
    at: datetime


@pytest.fixture
def service() -> ActivityServiceStub:
    return ActivityServiceStub()


# --- results ---


@activity.defn
def order_text(order: Order, count: int) -> str:
    return f"{order.id} {order.at:%H} {count}"


@activity.defn
async def order_text_async(order: Order) -> Order:
    await asyncio.sleep(0)
    return order


def test_arguments_come_in_the_types_of_the_hints(service: ActivityServiceStub) -> None:
    a_runner(service, [order_text]).run(a_task(order_text, Order(1, NOON), 3))
    assert service.result() == "1 12 3"


def test_an_async_activity_runs_on_the_shared_loop(service: ActivityServiceStub) -> None:
    a_runner(service, [order_text_async]).run(a_task(order_text_async, Order(1, NOON)))
    assert service.result() == {"id": 1, "at": "2026-01-02T12:00:00+00:00"}


@activity.defn
def thread_name() -> str:
    return threading.current_thread().name


def test_a_sync_activity_runs_in_the_calling_thread(service: ActivityServiceStub) -> None:
    a_runner(service, [thread_name]).run(a_task(thread_name))
    assert service.result() == threading.current_thread().name


@activity.defn(dynamic=True)
def anything(args: Sequence[RawValue]) -> list[str]:
    kinds = [activity.payload_converter().from_payload(arg.payload) for arg in args]
    return [activity.info().activity_type, *map(str, kinds)]


def test_the_dynamic_activity_gets_raw_values(service: ActivityServiceStub) -> None:
    a_runner(service, [anything]).run(a_task("whatever", 1, "a"))
    assert service.result() == ["whatever", "1", "a"]


@activity.defn
def nothing() -> None:
    pass


def test_no_result_is_a_null(service: ActivityServiceStub) -> None:
    a_runner(service, [nothing]).run(a_task(nothing))
    assert service.result() is None
    assert service.report.task_token == b"token"
    assert service.report.identity == "worker-1"
    assert service.report.namespace == "default"


seen: list[Any] = []


@activity.defn
def note_info() -> None:
    seen.append(activity.info())


def test_the_info_tells_what_the_task_tells(service: ActivityServiceStub) -> None:
    seen.clear()
    a_runner(service, [note_info]).run(
        a_task(
            note_info,
            attempt=3,
            scheduled_time=NOON,
            current_attempt_scheduled_time=NOON + timedelta(seconds=1),
            started_time=NOON + timedelta(seconds=2),
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=5),
            heartbeat_details=converter.to_payloads_wrapper([4, "half"]),
            retry_policy=protocol.RetryPolicy(
                initial_interval=timedelta(seconds=1),
                backoff_coefficient=2.0,
                maximum_interval=timedelta(seconds=100),
            ),
            priority=protocol.Priority(priority_key=2),
        )
    )
    (info,) = seen
    assert info.attempt == 3
    assert info.scheduled_time == NOON
    assert info.current_attempt_scheduled_time == NOON + timedelta(seconds=1)
    assert info.started_time == NOON + timedelta(seconds=2)
    assert info.start_to_close_timeout == timedelta(seconds=30)
    assert info.schedule_to_close_timeout is None
    assert info.heartbeat_timeout == timedelta(seconds=5)
    assert info.heartbeat_details == [4, "half"]
    assert info.retry_policy.maximum_interval == timedelta(seconds=100)
    assert info.priority.priority_key == 2
    assert (info.workflow_id, info.workflow_run_id) == ("order-1", "run-1")
    assert (info.workflow_type, info.activity_type) == ("Order", "note_info")
    assert (info.task_queue, info.namespace) == ("shop", "default")


# --- failures ---


@activity.defn
def fail() -> None:
    try:
        raise KeyError("inner")
    except KeyError as err:
        raise ValueError("bad") from err


def test_an_exception_is_reported_with_its_type_and_trace(
    service: ActivityServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    a_runner(service, [fail]).run(a_task(fail))
    failure = service.failure()
    assert failure.message == "bad"
    assert failure.application_failure_info.type == "ValueError"
    assert 'raise ValueError("bad")' in failure.stack_trace
    assert failure.cause.application_failure_info.type == "KeyError"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("Completing activity as failed")
    assert "'activity_id': '7'" in record.getMessage()


@activity.defn
async def fail_benignly() -> None:
    raise ApplicationError(
        "out of stock",
        5,
        type="Stock",
        non_retryable=True,
        next_retry_delay=timedelta(seconds=9),
        category=ApplicationErrorCategory.BENIGN,
    )


def test_an_application_error_keeps_all_it_says_and_a_benign_one_is_quiet(
    service: ActivityServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        a_runner(service, [fail_benignly]).run(a_task(fail_benignly))
    info = service.failure().application_failure_info
    assert (info.type, info.non_retryable, info.next_retry_delay) == (
        "Stock",
        True,
        timedelta(seconds=9),
    )
    assert converter.from_payloads_wrapper(info.details) == [5]
    assert caplog.records == []


def test_an_unknown_activity_is_told_with_what_is_known(service: ActivityServiceStub) -> None:
    a_runner(service, [nothing, fail]).run(a_task("unheard"))
    failure = service.failure()
    assert failure.message == (
        "Activity function unheard for workflow order-1 is not registered on this worker, "
        "available activities: fail, nothing"
    )
    assert failure.application_failure_info.type == "NotFoundError"
    assert not failure.application_failure_info.non_retryable


def test_arguments_that_do_not_fit_the_hints_are_told(service: ActivityServiceStub) -> None:
    a_runner(service, [order_text]).run(a_task(order_text, {"id": "x"}, 3))
    failure = service.failure()
    assert failure.message == "Failed decoding arguments"
    assert "Failed converting field id" in failure.cause.message


def test_a_wrong_number_of_arguments_is_told_by_the_call(service: ActivityServiceStub) -> None:
    a_runner(service, [order_text]).run(a_task(order_text, 1))
    failure = service.failure()
    assert failure.application_failure_info.type == "TypeError"
    assert "missing 1 required positional argument: 'count'" in failure.message


def test_heartbeat_details_that_can_not_be_read_end_it_for_good(
    service: ActivityServiceStub,
) -> None:
    broken = Payloads(payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b"{"),))
    a_runner(service, [nothing]).run(a_task(nothing, heartbeat_details=broken))
    failure = service.failure()
    assert failure.message == "Failed decoding heartbeat details"
    assert failure.application_failure_info.non_retryable


@activity.defn
def unsuitable_result() -> object:
    return object()


def test_a_result_that_can_not_be_encoded_is_a_failure(service: ActivityServiceStub) -> None:
    a_runner(service, [unsuitable_result]).run(a_task(unsuitable_result))
    assert service.failure().message == "Object of type object is not JSON serializable"


@activity.defn
def unsuitable_details() -> None:
    raise ApplicationError("bad", object())


def test_an_error_that_can_not_be_encoded_is_a_failure_too(service: ActivityServiceStub) -> None:
    a_runner(service, [unsuitable_details]).run(a_task(unsuitable_details))
    failure = service.failure()
    assert failure.message.startswith("Failed building exception result: Object of type object")
    assert failure.application_failure_info is not None


class _RawFailures(FailureConverter):
    """One of a project's own, which keeps texts as they are."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
        info = ApplicationFailureInfo(type="T")
        return Failure(message=str(exception), application_failure_info=info)

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        return RuntimeError(failure.message)


@activity.defn
def finds_no_file() -> None:
    raise FileNotFoundError("caf\udce9")


@pytest.mark.parametrize(
    ("failures", "says"),
    [
        (DefaultFailureConverter, "caf\\udce9"),
        (_RawFailures, "Failed building exception result: message holds half of a surrogate pair"),
    ],
)
def test_an_error_whose_text_can_not_be_stored_is_reported_all_the_same(
    service: ActivityServiceStub, failures: type[FailureConverter], says: str
) -> None:
    converter = DataConverter(failure_converter_class=failures)
    a_runner(service, [finds_no_file], data_converter=converter).run(a_task(finds_no_file))
    assert service.failure().message.startswith(says)


@activity.defn
def cancels_itself() -> None:
    raise CancelledError("of my own accord")


def test_a_cancellation_that_nobody_asked_for_is_a_failure_that_the_service_takes(
    service: ActivityServiceStub,
) -> None:
    a_runner(service, [cancels_itself]).run(a_task(cancels_itself))
    failure = service.failure()
    assert failure.application_failure_info.type == "CancelledError"
    assert failure.cause.canceled_failure_info is not None


@activity.defn
def leaves() -> None:
    raise SystemExit(3)


def test_the_end_of_the_process_is_reported_and_goes_on(service: ActivityServiceStub) -> None:
    with pytest.raises(SystemExit):
        a_runner(service, [leaves]).run(a_task(leaves))
    assert service.failure().application_failure_info.type == "SystemExit"


@activity.defn
async def finishes_later() -> None:
    activity.raise_complete_async()


@activity.defn
def finishes_later_sync() -> None:
    activity.raise_complete_async()


@pytest.mark.parametrize("later", [finishes_later, finishes_later_sync])
def test_an_activity_that_is_finished_from_outside_reports_nothing(
    service: ActivityServiceStub, later: Any
) -> None:
    a_runner(service, [later]).run(a_task(later))
    assert service.reports == []


# --- reporting ---


def test_a_late_outcome_is_logged_and_dropped(
    service: ActivityServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    service.refuse = [NotFoundError("activity already timed out")]
    with caplog.at_level(logging.INFO):
        a_runner(service, [nothing]).run(a_task(nothing))
    assert service.reports == []
    (record,) = caplog.records
    assert "came too late" in record.getMessage()


def test_an_outcome_survives_a_short_outage(
    service: ActivityServiceStub,
) -> None:
    waits: list[float] = []
    service.refuse = [UnavailableError("down"), UnavailableError("down")]
    a_runner(service, [nothing], sleep=waits.append).run(a_task(nothing))
    assert service.result() is None
    assert waits == [0.1, 0.2]


def test_an_outcome_that_can_not_be_delivered_is_logged(
    service: ActivityServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    service.refuse = [UnavailableError("down") for _ in range(20)]
    a_runner(service, [nothing], sleep=waits.append).run(a_task(nothing))
    assert service.reports == []
    assert sum(waits) == pytest.approx(16.3)
    assert "could not be reported" in caplog.records[-1].getMessage()


def test_a_refused_outcome_is_logged(
    service: ActivityServiceStub, caplog: pytest.LogCaptureFixture
) -> None:
    service.refuse = [InvalidArgumentError("bad token")]
    a_runner(service, [nothing]).run(a_task(nothing))
    assert "was refused" in caplog.records[-1].getMessage()


# --- heartbeats and cancellation ---


@activity.defn
def beats_until_cancelled() -> str:
    activity.heartbeat("alive")
    activity.wait_for_cancelled_sync(10)
    return "not reached"


def _cancelling(service: ActivityServiceStub, answer: Any = CANCEL) -> None:
    service.heartbeat = lambda: answer


def test_a_sync_activity_is_cancelled_in_its_thread(service: ActivityServiceStub) -> None:
    _cancelling(service)
    a_runner(service, [beats_until_cancelled]).run(a_task(beats_until_cancelled))
    assert isinstance(service.report, RespondActivityTaskCanceledRequest)
    assert service.heartbeats == [["alive"]]


@activity.defn
async def beats_until_cancelled_async() -> None:
    activity.heartbeat("alive")
    await asyncio.sleep(10)


def test_an_async_activity_is_cancelled_at_its_await(service: ActivityServiceStub) -> None:
    _cancelling(service)
    a_runner(service, [beats_until_cancelled_async]).run(a_task(beats_until_cancelled_async))
    assert isinstance(service.report, RespondActivityTaskCanceledRequest)


@activity.defn
async def cleans_up_when_cancelled() -> str:
    activity.heartbeat()
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        assert details is not None
        await asyncio.sleep(0)
        return f"cleaned up, {activity.is_cancelled()}, {details.cancel_requested}"
    return "not reached"


def test_an_activity_may_complete_in_spite_of_a_cancellation(service: ActivityServiceStub) -> None:
    _cancelling(service)
    a_runner(service, [cleans_up_when_cancelled]).run(a_task(cleans_up_when_cancelled))
    assert service.result() == "cleaned up, True, True"


@activity.defn(no_thread_cancel_exception=True)
def watches_for_cancellation() -> str:
    activity.heartbeat()
    activity.wait_for_cancelled_sync(10)
    with activity.shield_thread_cancel_exception():
        return f"saw it: {activity.is_cancelled()}"


def test_a_sync_activity_may_ask_for_no_exception(service: ActivityServiceStub) -> None:
    _cancelling(service)
    a_runner(service, [watches_for_cancellation]).run(a_task(watches_for_cancellation))
    assert service.result() == "saw it: True"


@activity.defn
def shields_its_work() -> None:
    seen.clear()
    with activity.shield_thread_cancel_exception():
        activity.heartbeat()
        activity.wait_for_cancelled_sync(10)
        seen.append("inside")
    seen.append("after")


def test_a_shield_holds_the_exception_off_until_its_end(service: ActivityServiceStub) -> None:
    _cancelling(service)
    a_runner(service, [shields_its_work]).run(a_task(shields_its_work))
    assert seen == ["inside"]
    assert isinstance(service.report, RespondActivityTaskCanceledRequest)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (RecordActivityTaskHeartbeatResponse(activity_paused=True), "ActivityPause"),
        (RecordActivityTaskHeartbeatResponse(activity_reset=True), "ActivityReset"),
    ],
)
@pytest.mark.parametrize("running", [beats_until_cancelled, beats_until_cancelled_async])
def test_a_pause_or_reset_fails_an_attempt_that_does_not_handle_it(
    service: ActivityServiceStub, running: Any, answer: Any, kind: str
) -> None:
    _cancelling(service, answer)
    a_runner(service, [running]).run(a_task(running))
    failure = service.failure()
    assert failure.application_failure_info.type == kind
    assert failure.message.startswith("Unhandled activity cancel error produced by activity")


def test_an_attempt_that_is_over_learns_it_by_its_heartbeat(service: ActivityServiceStub) -> None:
    def gone() -> RecordActivityTaskHeartbeatResponse:
        raise NotFoundError("activity already timed out")

    service.heartbeat = gone
    a_runner(service, [beats_until_cancelled]).run(a_task(beats_until_cancelled))
    assert service.failure().cause.canceled_failure_info is not None


@activity.defn
def beats_what_can_not_be_encoded() -> None:
    activity.heartbeat(object())


def test_details_that_can_not_be_encoded_fail_the_attempt(service: ActivityServiceStub) -> None:
    runner = a_runner(service, [beats_what_can_not_be_encoded])
    runner.run(a_task(beats_what_can_not_be_encoded))
    assert service.failure().message == "Object of type object is not JSON serializable"


class BrokenForHeartbeats(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        if any(payload.data == b'"alive"' for payload in payloads):
            raise ValueError("no key")
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


@pytest.mark.parametrize("running", [beats_until_cancelled, beats_until_cancelled_async])
def test_a_codec_that_fails_on_details_fails_the_attempt(
    service: ActivityServiceStub, running: Any
) -> None:
    codec = dataclasses.replace(DataConverter.default, payload_codec=BrokenForHeartbeats())
    a_runner(service, [running], data_converter=codec).run(a_task(running))
    assert service.failure().message == "no key"
    assert service.heartbeats == []


@activity.defn
def beats_thrice_and_fails() -> None:
    for count in range(3):
        activity.heartbeat(count)
    raise ValueError("bad")


def test_the_last_details_go_with_the_failure(service: ActivityServiceStub) -> None:
    alarms = ManualAlarms()
    runner = a_runner(service, [beats_thrice_and_fails], alarms=alarms)
    runner.run(a_task(beats_thrice_and_fails))
    assert isinstance(service.report, RespondActivityTaskFailedRequest)
    assert converter.from_payloads_wrapper(service.report.last_heartbeat_details) == [2]
    alarms.advance(100)
    assert service.heartbeats == []


@activity.defn
def waits_for_its_end() -> str:
    seen.append("running")
    activity.wait_for_cancelled_sync(10)
    return "not reached"


def test_an_attempt_past_its_time_limit_is_told(service: ActivityServiceStub) -> None:
    seen.clear()
    alarms = ManualAlarms()
    runner = a_runner(service, [waits_for_its_end], alarms=alarms)
    task = a_task(
        waits_for_its_end,
        scheduled_time=NOON,
        started_time=NOON,
        start_to_close_timeout=timedelta(seconds=10),
        schedule_to_close_timeout=timedelta(seconds=60),
    )
    thread = threading.Thread(target=runner.run, args=[task])
    thread.start()
    wait_until(lambda: seen == ["running"])
    alarms.advance(14.9)
    assert service.reports == []
    alarms.advance(0.2)
    thread.join()
    assert service.failure().cause.canceled_failure_info is not None


# --- shutdown ---


@activity.defn
def waits_for_shutdown() -> str:
    seen.append("running")
    activity.wait_for_worker_shutdown_sync(10)
    return f"shutdown: {activity.is_worker_shutdown()}"


def test_a_stopping_worker_is_told_to_its_activities(service: ActivityServiceStub) -> None:
    seen.clear()
    runner = a_runner(service, [waits_for_shutdown])
    thread = threading.Thread(target=runner.run, args=[a_task(waits_for_shutdown)])
    thread.start()
    wait_until(lambda: seen == ["running"])
    runner.begin_shutdown()
    thread.join()
    assert service.result() == "shutdown: True"
    service.reports.clear()
    runner.run(a_task(waits_for_shutdown))
    assert service.result() == "shutdown: True"


def test_what_still_runs_at_the_end_of_the_grace_fails_and_can_be_retried(
    service: ActivityServiceStub,
) -> None:
    seen.clear()
    runner = a_runner(service, [waits_for_its_end])
    thread = threading.Thread(target=runner.run, args=[a_task(waits_for_its_end)])
    thread.start()
    wait_until(lambda: seen == ["running"])
    runner.cancel_all()
    thread.join()
    info = service.failure().application_failure_info
    assert (info.type, info.non_retryable) == ("WorkerShutdown", False)


# --- interceptors ---

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


class Tracing(Interceptor):
    """Sets a context variable from the header, changes arguments and result, watches calls."""

    def __init__(self) -> None:
        self.heartbeats: list[Any] = []

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _TracingInbound(next, self)


class _TracingInbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, tracing: Tracing) -> None:
        super().__init__(next)
        self.tracing = tracing

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_TracingOutbound(outbound, self.tracing))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        tenant.set(converter.from_payload(input.headers["tenant"]))
        input.args = [*input.args, "more"]
        return ["traced", await super().execute_activity(input)]


class _TracingOutbound(ActivityOutboundInterceptor):
    def __init__(self, next: ActivityOutboundInterceptor, tracing: Tracing) -> None:
        super().__init__(next)
        self.tracing = tracing

    def info(self) -> activity.Info:
        return dataclasses.replace(super().info(), activity_type="disguised")

    def heartbeat(self, *details: Any) -> None:
        self.tracing.heartbeats.append(details)
        super().heartbeat(*details, "more")


@activity.defn
def shows_itself(*args: Any) -> list[Any]:
    activity.heartbeat(1)
    names = [threading.current_thread().name, activity.info().activity_type]
    return [*names, tenant.get(), *args]


@activity.defn
async def shows_itself_async(*args: Any) -> list[Any]:
    activity.heartbeat(1)
    return ["-", activity.info().activity_type, tenant.get(), *args]


@pytest.mark.parametrize("shown", [shows_itself, shows_itself_async])
def test_interceptors_stand_around_the_call_and_what_it_calls(
    service: ActivityServiceStub, shown: Any
) -> None:
    tracing = Tracing()
    alarms = ManualAlarms()
    runner = a_runner(service, [shown], interceptors=[tracing], alarms=alarms)
    header = Header(fields={"tenant": converter.to_payload("acme")})
    runner.run(a_task(shown, "a", header=header))
    traced, result = service.result()
    assert traced == "traced"
    name = threading.current_thread().name if shown is shows_itself else "-"
    assert result == [name, "disguised", "acme", "a", "more"]
    assert tracing.heartbeats == [(1,)]
    assert tenant.get() == "none"


@pytest.mark.parametrize("running", [beats_until_cancelled, beats_until_cancelled_async])
def test_an_intercepted_activity_is_cancelled_too(
    service: ActivityServiceStub, running: Any
) -> None:
    _cancelling(service)
    a_runner(service, [running], interceptors=[Interceptor()]).run(a_task(running))
    assert isinstance(service.report, RespondActivityTaskCanceledRequest)


class Repeating(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _RepeatingInbound(next)


class _RepeatingInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except ValueError:
            return await super().execute_activity(input)


@activity.defn
def fails_once() -> int:
    seen.append("called")
    if len(seen) == 1:
        raise ValueError("once")
    return len(seen)


def test_an_interceptor_may_call_again(service: ActivityServiceStub) -> None:
    seen.clear()
    a_runner(service, [fails_once], interceptors=[Repeating()]).run(a_task(fails_once))
    assert service.result() == 2
