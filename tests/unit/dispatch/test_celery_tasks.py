"""Celery tasks as activities: claimed first, run under Celery's tracer, recorded as they end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery, Task, chain, signals
from celery.app.trace import build_tracer
from celery.exceptions import Ignore

from wfapp.dispatch import celery_tasks, messages
from wfapp.dispatch.celery_tasks import CeleryTaskActivity, call, extend_tasks, wrap_tracers
from wfapp.dispatch.messages import ActivityHint
from wfcore.activity import Definition
from wfcore.converter import DataConverter
from wfcore.history.effects import DispatchActivity
from wfcore.protocol.common import ActivityType, RetryPolicy, WorkflowExecution, WorkflowType
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.worker import ActivityTaskRunner, Registry

extend_tasks()

DEFAULT_POLICY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=100),
)
OWN_POLICY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=100),
    maximum_attempts=4,
)


class Recorder:
    """Stands for the service: keeps what is reported."""

    def __init__(self) -> None:
        self.completed: list[Any] = []
        self.failed: list[Any] = []
        self.heartbeats: list[Any] = []

    def record_activity_task_heartbeat(self, request: Any) -> Any:
        from wfcore.protocol.rpc.activity_tasks import RecordActivityTaskHeartbeatResponse

        self.heartbeats.append(request)
        return RecordActivityTaskHeartbeatResponse()

    def respond_activity_task_completed(self, request: Any) -> None:
        self.completed.append(request)

    def respond_activity_task_failed(self, request: Any) -> None:
        self.failed.append(request)

    def respond_activity_task_canceled(self, request: Any) -> None:
        raise AssertionError("nothing is cancelled here")


class World:
    """An app with tasks, a worker's tracers around them, and a service that records."""

    def __init__(self) -> None:
        self.app = Celery("test", broker="memory://", set_as_current=False)
        self.app.conf.task_ignore_result = True
        self.recorder = Recorder()
        self.refuse = False
        self.attempt = 1
        self.policy = DEFAULT_POLICY
        self.values: tuple[Any, ...] = ()
        self.details: Any = None
        self.activity_id = "5"

    def task(self, **options: Any) -> Any:
        """A task of this app alone."""
        return self.app.task(shared=False, **options)

    def deliver(self, task: Any, *values: Any) -> Any:
        """A message for the task arrives; what Celery's tracer gives back."""
        self.values = values
        self.app.finalize()
        for each in self.app.tasks.values():
            each.__trace__ = build_tracer(each.name, each, app=self.app)
        wrap_tracers(self.app, self._claim_and_run)
        effect = DispatchActivity(
            namespace="default",
            workflow_id="w",
            run_id="0190f3c4-1111-7000-8000-000000000001",
            task_queue="default",
            scheduled_event_id=5,
            activity_type=task.name,
            attempt=self.attempt,
            stamp=1,
        )
        message = messages.celery_task_message(effect, "celery")
        request = {
            "id": message.task_id,
            "task": message.task,
            "retries": 0,
            "delivery_info": {},
            "is_eager": False,
            "hostname": "worker",
            "timelimit": [None, None],
            **message.headers,
        }
        return task.__trace__(message.task_id, (), {}, request)

    def _claim_and_run(self, hint: ActivityHint) -> bool:
        if self.refuse:
            return False
        registry = Registry()
        registry.activity = lambda name: Definition(  # type: ignore[method-assign]  # as the project's
            name=name, fn=CeleryTaskActivity(self.app, name), is_async=False
        )
        converter = DataConverter.default
        encode = converter.payload_converter.to_payloads_wrapper
        now = datetime.now(UTC)
        ActivityTaskRunner(self.recorder, registry, converter, "worker").run(
            PollActivityTaskQueueResponse(
                task_token=b"token",
                workflow_namespace="default",
                workflow_type=WorkflowType(name="W"),
                workflow_execution=WorkflowExecution(workflow_id="w", run_id=hint.run_id),
                activity_type=ActivityType(name=hint.activity_type),
                activity_id=self.activity_id,
                input=encode(self.values),
                heartbeat_details=encode([self.details]) if self.details else None,
                scheduled_time=now,
                current_attempt_scheduled_time=now,
                started_time=now,
                attempt=hint.attempt,
                retry_policy=self.policy,
                start_to_close_timeout=timedelta(seconds=10),
            )
        )
        return True

    @property
    def result(self) -> Any:
        """The value that was recorded."""
        (request,) = self.recorder.completed
        assert not self.recorder.failed
        return DataConverter.default.payload_converter.from_payloads_wrapper(request.result)[0]

    @property
    def failure(self) -> Any:
        """The failure that was recorded."""
        (request,) = self.recorder.failed
        assert not self.recorder.completed
        return request.failure

    @property
    def details_for_next(self) -> Any:
        """The heartbeat details that the next attempt finds."""
        sent = [request.last_heartbeat_details for request in self.recorder.failed]
        sent = [each for each in sent if each] or [
            request.details for request in self.recorder.heartbeats
        ]
        return DataConverter.default.payload_converter.from_payloads_wrapper(sent[-1])[0]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Messages that Celery would send: there must be none."""
    found: list[Any] = []
    monkeypatch.setattr(Celery, "send_task", lambda *args, **kwargs: found.append(args))
    return found


def test_the_value_of_a_task_is_the_result_of_the_activity(world: World) -> None:
    @world.task()
    def add(a: int, b: int) -> int:
        return a + b

    traced = world.deliver(add, 2, 3)
    assert world.result == 5
    assert traced.info is None


def test_a_refused_claim_ends_as_ignored_without_body_or_signal(world: World) -> None:
    ran: list[str] = []

    @world.task()
    def never() -> None:
        ran.append("body")

    def prerun(**_: Any) -> None:
        ran.append("prerun")

    world.refuse = True
    signals.task_prerun.connect(prerun)
    try:
        traced = world.deliver(never)
    finally:
        signals.task_prerun.disconnect(prerun)
    assert ran == []
    assert traced.info.state == "IGNORED"
    assert isinstance(traced.retval.exception.exc, Ignore)


def test_a_message_of_a_newer_release_is_left_to_it(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @world.task()
    def never() -> None:
        raise AssertionError("it was run")

    monkeypatch.setattr(messages, "FORMAT", 2)
    sent = messages.celery_task_message

    def old_reader(*given: Any) -> Any:
        message = sent(*given)
        monkeypatch.setattr(messages, "FORMAT", 1)
        return message

    monkeypatch.setattr(messages, "celery_task_message", old_reader)
    traced = world.deliver(never)
    assert traced.info.state == "IGNORED"
    assert "Upgrade the workers" in caplog.text
    assert not world.recorder.failed


def test_an_ordinary_message_of_the_task_runs_as_ever(world: World) -> None:
    @world.task()
    def plain(value: int) -> int:
        return value * 2

    world.deliver(plain, 1)
    traced = plain.__trace__("id", (21,), {}, {"id": "id", "delivery_info": {}})
    assert traced.retval == 42
    assert len(world.recorder.completed) == 1


def test_a_bound_task_sees_its_request(world: World) -> None:
    @world.task(bind=True)
    def show(self: Task[Any, Any]) -> list[Any]:
        request = self.request
        return [request.id, request.retries, request.root_id, request.is_eager, request.args]

    world.attempt = 3
    world.deliver(show)
    task_id = messages.activity_task_id("0190f3c4-1111-7000-8000-000000000001", 5)
    assert world.result == [task_id, 2, task_id, False, []]


def test_a_task_id_chosen_as_activity_id_is_the_request_id(world: World) -> None:
    @world.task(bind=True)
    def show(self: Task[Any, Any]) -> str:
        return str(self.request.id)

    world.activity_id = "7b0c0f0e-2222-4000-8000-000000000002"
    world.deliver(show)
    assert world.result == world.activity_id


def test_keyword_arguments_travel_in_a_call(world: World) -> None:
    @world.task(bind=True)
    def join(self: Task[Any, Any], *parts: str, end: str) -> list[str]:
        return [" ".join(parts) + end, self.request.root_id]

    world.deliver(join, call(["a", "b"], {"end": "!"}, {"root_id": "root"}))
    assert world.result == ["a b!", "root"]


def test_base_class_hooks_and_signals_run_around_the_body(world: World) -> None:
    seen: list[str] = []

    class Base(Task):  # type: ignore[type-arg]  # Celery's own stubs
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            seen.append("call")
            return super().__call__(*args, **kwargs)

        def before_start(self, *_: Any) -> None:
            seen.append("before_start")

        def on_success(self, *_: Any) -> None:
            seen.append("on_success")

        def after_return(self, *_: Any) -> None:
            seen.append("after_return")

    def success(sender: Any, result: Any, **_: Any) -> None:
        seen.append(f"task_success {result}")

    @world.task(base=Base)
    def work() -> str:
        seen.append("body")
        return "done"

    signals.task_success.connect(success)
    try:
        world.deliver(work)
    finally:
        signals.task_success.disconnect(success)
    assert seen == [
        "before_start", "call", "body", "on_success", "task_success done", "after_return",
    ]  # fmt: skip
    assert world.result == "done"


def failing(world: World) -> Any:
    @world.task()
    def fail() -> None:
        raise ValueError("no good")

    return fail


def test_an_error_is_final_as_in_celery(world: World) -> None:
    traced = world.deliver(failing(world))
    failure = world.failure
    assert (failure.message, failure.application_failure_info.type) == ("no good", "ValueError")
    assert failure.application_failure_info.non_retryable
    assert "raise ValueError" in failure.stack_trace
    assert traced.info.state == "FAILURE"


def test_an_error_is_repeated_by_a_retry_policy_of_the_caller(world: World) -> None:
    world.policy = OWN_POLICY
    world.deliver(failing(world))
    assert not world.failure.application_failure_info.non_retryable


def test_retry_becomes_an_attempt_with_that_delay_and_sends_nothing(
    world: World, sent: list[Any]
) -> None:
    @world.task(bind=True, max_retries=3)
    def later(self: Task[Any, Any]) -> None:
        raise self.retry(exc=KeyError("busy"), countdown=17)

    traced = world.deliver(later)
    info = world.failure.application_failure_info
    assert (info.type, info.next_retry_delay) == ("KeyError", timedelta(seconds=17))
    assert not info.non_retryable
    assert traced.info.state == "RETRY"
    assert sent == []


def test_autoretry_backs_off_as_celery_does(world: World, sent: list[Any]) -> None:
    @world.task(autoretry_for=(OSError,), retry_backoff=2, retry_jitter=False, max_retries=5)
    def flaky() -> None:
        raise OSError("down")

    world.attempt = 3
    world.deliver(flaky)
    info = world.failure.application_failure_info
    assert (info.type, info.next_retry_delay) == ("OSError", timedelta(seconds=8))
    assert sent == []


def test_max_retries_end_it_with_the_error(world: World) -> None:
    @world.task(autoretry_for=(OSError,), max_retries=2)
    def flaky() -> None:
        raise OSError("down")

    world.attempt = 3
    world.deliver(flaky)
    assert world.failure.application_failure_info.type == "OSError"
    assert world.failure.application_failure_info.non_retryable


def test_max_retries_without_an_error_end_it_with_celerys_own(world: World) -> None:
    @world.task(bind=True, max_retries=0)
    def once(self: Task[Any, Any]) -> None:
        self.retry(countdown=1)

    world.deliver(once)
    assert world.failure.application_failure_info.type == "MaxRetriesExceededError"


def test_a_retry_with_other_arguments_gives_them_to_the_next_attempt(world: World) -> None:
    @world.task(bind=True)
    def shrink(self: Task[Any, Any], size: int, unit: str = "kB") -> int:
        if size > 1:
            raise self.retry(args=[size // 2], countdown=0)
        return size

    world.deliver(shrink, 2)
    next_call = world.details_for_next
    world.recorder = Recorder()
    world.details, world.attempt = next_call, 2
    world.deliver(shrink, 2)
    assert world.result == 1


def test_a_retry_at_a_time_waits_until_then(world: World) -> None:
    @world.task(bind=True)
    def later(self: Task[Any, Any]) -> None:
        raise self.retry(eta=datetime.now(UTC) + timedelta(hours=1))

    world.deliver(later)
    delay = world.failure.application_failure_info.next_retry_delay
    assert timedelta(minutes=59) < delay <= timedelta(hours=1)


def test_a_retry_that_does_not_throw_still_repeats(world: World, sent: list[Any]) -> None:
    @world.task(bind=True)
    def quiet(self: Task[Any, Any]) -> str:
        self.retry(countdown=3, throw=False)
        return "went on"

    world.deliver(quiet)
    assert world.failure.application_failure_info.next_retry_delay == timedelta(seconds=3)
    assert sent == []


def test_retry_outside_of_an_activity_is_celerys(world: World) -> None:
    @world.task(bind=True)
    def later(self: Task[Any, Any]) -> None:
        raise self.retry(exc=KeyError("direct"))

    world.app.finalize()
    with pytest.raises(KeyError):
        later()


def test_a_task_takes_the_place_of_another(world: World, sent: list[Any]) -> None:
    @world.task(bind=True)
    def second(self: Task[Any, Any], value: int) -> list[Any]:
        return [value, self.request.id, self.request.replaced_task_nesting]

    @world.task(bind=True)
    def first(self: Task[Any, Any], value: int) -> Any:
        return self.replace(second.s(value + 1))

    world.deliver(first, 1)
    task_id = messages.activity_task_id("0190f3c4-1111-7000-8000-000000000001", 5)
    assert world.result == [2, task_id, 1]
    assert sent == []


def test_a_canvas_takes_the_place_of_a_task_where_something_can_run_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    @world.task()
    def step(value: int) -> int:
        return value

    @world.task(bind=True)
    def first(self: Task[Any, Any]) -> Any:
        return self.replace(chain(step.s(1), step.s()))

    world.deliver(first)
    assert world.failure.application_failure_info.type == "ReplacementError"

    world.recorder = Recorder()
    taken: list[Any] = []
    monkeypatch.setattr(celery_tasks, "run_replacement", lambda *given: taken.append(given))
    world.deliver(first)
    ((signature, token),) = taken
    assert (signature["task"], token) == ("celery.chain", b"token")
    assert not world.recorder.completed
    assert not world.recorder.failed


def test_progress_is_a_heartbeat(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    @world.task(bind=True)
    def long(self: Task[Any, Any]) -> None:
        self.update_state(state="PROGRESS", meta={"done": 3})

    world.deliver(long)
    # A heartbeat is sent by another thread, and not at all when the attempt ends first.
    assert world.result is None


@pytest.mark.parametrize("raising", [Ignore("not now")])
def test_a_task_that_gives_no_value_fails_the_activity(world: World, raising: Exception) -> None:
    @world.task()
    def none() -> None:
        raise raising

    world.deliver(none)
    assert world.failure.application_failure_info.type == "Ignore"
    assert world.failure.application_failure_info.non_retryable


def test_a_celery_task_is_an_activity_where_one_is_asked_for(world: World) -> None:
    @world.task(name="shop.send")
    def send() -> None: ...

    assert Definition.get_name_and_result_type(send)[0] == "shop.send"
