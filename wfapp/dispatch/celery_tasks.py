"""Celery tasks of the project as activities: claimed before their body, recorded after it.

The message has the task's own name, so that routes, limits, signals, base classes and Flower hold.
Celery has no veto before a task's body: its tracer is wrapped, and a message whose claim is refused
ends as IGNORED without the body. Within a claimed body `self.retry()` and `self.replace()` send no
message: what they ask for is recorded, so that a retry is a durable attempt.
"""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from billiard.einfo import ExceptionInfo
from celery import Celery, signals, states
from celery.app.task import Task
from celery.app.trace import TraceInfo, build_tracer, trace_ok_t
from celery.canvas import Signature
from celery.exceptions import Ignore

from wfapp.dispatch.messages import (
    HINT_HEADER,
    ActivityHint,
    MessageTooNewError,
    activity_task_id,
    read_activity,
)
from wfapp.dispatch.transactional import current_completion
from wfcore import activity
from wfcore.common import RetryPolicy
from wfcore.exceptions import ApplicationError, CompleteAsyncError, FailureError

logger = logging.getLogger(__name__)

#: The one argument of a call that has more than positional arguments; see `call`.
CALL = "wfapp.call"
#: Heartbeat details by which an attempt gives the next one other arguments.
NEXT_CALL = "wfapp.next_call"

Tracer = Callable[..., Any]


def call(
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The argument for `execute_activity` that calls a Celery task with keyword arguments too.

    `request` overrides fields of the task's ``self.request``, such as ``root_id`` or ``headers``.

    Example:
        ``await workflow.execute_activity(send_receipt, call([order_id], {"copy": True}), ...)``
    """
    content: dict[str, Any] = {"args": list(args), "kwargs": dict(kwargs or {})}
    if request:
        content["request"] = dict(request)
    return {CALL: content}


@dataclass
class _Body:
    """One run of a task's body for a claimed attempt."""

    task_id: str
    state: str | None = None
    value: Any = None
    retry: Any = None
    #: the other arguments that a retry asked for
    next_call: Mapping[str, Any] | None = None
    replacement: Signature[Any] | None = None


@dataclass(frozen=True)
class _Delivery:
    """The message that brought a claimed attempt, and Celery's verdict on it in the end."""

    task_id: str
    request: Mapping[str, Any]
    verdict: list[Any] = field(default_factory=list)
    #: the process is being ended within the body
    ending: list[SystemExit] = field(default_factory=list)


_body: ContextVar[_Body | None] = ContextVar("wfapp_celery_body", default=None)
_delivery: ContextVar[_Delivery | None] = ContextVar("wfapp_celery_delivery", default=None)

#: Runs a canvas in the place of the task that replaced itself with it, and completes its activity.
#: Set by the layer that runs canvases; gets the signature and the activity's task token.
run_replacement: Callable[[Mapping[str, Any], bytes], None] | None = None


# --- the worker's side of a message ------------------------------------------------------------


class HintedTracer:
    """Celery's tracer of one task, which for a message with our header claims first.

    `claim_and_run` claims the attempt, runs it as an activity, which comes to `CeleryTaskActivity`,
    and gives False when the claim was refused.
    """

    def __init__(
        self, task: Any, plain: Tracer, claim_and_run: Callable[[ActivityHint], bool]
    ) -> None:
        self.task = task
        self.plain = plain
        self._claim_and_run = claim_and_run

    def __call__(
        self, task_id: str, args: Any, kwargs: Any, request: dict[str, Any] | None = None
    ) -> Any:
        fields = (request or {}).get(HINT_HEADER)
        if fields is None:
            return self.plain(task_id, args, kwargs, request)
        try:
            hint = read_activity(fields, self.task.name)
        except MessageTooNewError as error:
            logger.error("%s", error, extra={"action": "message_too_new"})
            return _ignored("the message is of a newer release")
        delivery = _Delivery(task_id=task_id, request=request or {})
        reset = _delivery.set(delivery)
        try:
            taken = self._claim_and_run(hint)
        finally:
            _delivery.reset(reset)
        if delivery.ending:
            raise delivery.ending[-1]
        if delivery.verdict:
            return delivery.verdict[-1]
        return _ignored("the attempt was not begun" if taken else "the claim was refused")


def wrap_tracers(app: Celery, claim_and_run: Callable[[ActivityHint], bool]) -> None:
    """Wrap the tracers that Celery has built for the tasks of this process."""
    for name, task in app.tasks.items():
        if not name.startswith("wfapp.") and not isinstance(task.__trace__, HintedTracer):
            task.__trace__ = HintedTracer(task, plain_tracer(app, task), claim_and_run)


def plain_tracer(app: Celery, task: Any) -> Tracer:
    """Celery's own tracer of a task."""
    tracer = task.__trace__
    if isinstance(tracer, HintedTracer):
        return tracer.plain
    if tracer is None:
        tracer = task.__trace__ = build_tracer(task.name, task, app=app)
    plain: Tracer = tracer
    return plain


def _ignored(reason: str) -> Any:
    try:
        raise Ignore(reason)
    except Ignore as error:
        return trace_ok_t(ExceptionInfo(internal=True), TraceInfo(states.IGNORED, error), 0.0, None)


# --- the activity's side -------------------------------------------------------------------------


class CeleryTaskActivity:
    """The function of the activity that a Celery task is: runs the body under Celery's tracer."""

    def __init__(self, app: Celery, name: str) -> None:
        self._app = app
        self._name = name

    def __call__(self, *values: Any) -> Any:
        completion = current_completion()
        if completion is not None:
            completion.gives_result = True  # Celery's own hooks are to see it
        info = activity.info()
        asked = _asked(values, info.heartbeat_details)
        name, task_id = self._name, _task_id(info)
        request = self._request(info, task_id, asked)
        while True:
            body = self._run(name, task_id, asked, request)
            if completion is not None and completion.done:
                raise CompleteAsyncError
            if body.replacement is None:
                return _outcome(body, info)
            name, asked = self._replacement(body.replacement, info)
            request = {
                **request,
                **asked.request,
                "replaced_task_nesting": request.get("replaced_task_nesting", 0) + 1,
            }

    def _run(self, name: str, task_id: str, asked: "_Asked", request: dict[str, Any]) -> _Body:
        body = _Body(task_id=task_id)
        delivery = _delivery.get()
        tracer = plain_tracer(self._app, self._app.tasks[name])
        reset = _body.set(body)
        try:
            request = {**request, "task": name, "args": asked.args, "kwargs": asked.kwargs}
            traced = tracer(task_id, asked.args, asked.kwargs, request)
        except SystemExit as ending:
            # By the pool, for a time limit or a shutdown: the parent knows which, and reports it.
            if delivery is None:
                raise
            delivery.ending.append(ending)
            raise CompleteAsyncError from ending
        finally:
            _body.reset(reset)
        if delivery is not None:
            delivery.verdict.append(traced)
        if body.state is None and traced.info is not None:  # an error outside of the body
            body.state, body.value = traced.info.state, traced.info.retval
        return body

    def _request(self, info: activity.Info, task_id: str, asked: "_Asked") -> dict[str, Any]:
        """What becomes ``self.request``: the message's, with the attempt's number and no canvas."""
        delivery = _delivery.get()
        sent = dict(delivery.request) if delivery else {"delivery_info": {}, "lang": "py"}
        return {
            "hostname": None,
            "is_eager": False,
            **sent,
            "id": task_id,
            "correlation_id": task_id,
            "root_id": task_id,
            "retries": info.attempt - 1,
            "ignore_result": True,
            **dict.fromkeys(("callbacks", "errbacks", "chain", "chord")),
            **asked.request,
        }

    def _replacement(self, signature: Signature[Any], info: activity.Info) -> "tuple[str, _Asked]":
        """The task that takes the place of one that replaced itself."""
        if signature.subtask_type is None and signature.task in self._app.tasks:
            request = {"callbacks": _listed(signature.options.get("link"))}
            return str(signature.task), _Asked(
                args=list(signature.args), kwargs=dict(signature.kwargs), request=request
            )
        if run_replacement is None:
            raise ApplicationError(
                f"{self._name} replaced itself with {signature.task}, which nothing here can run: "
                "only a plain task can take the place of an activity",
                type="ReplacementError",
                non_retryable=True,
            )
        run_replacement(dict(signature), info.task_token)
        raise CompleteAsyncError


@dataclass(frozen=True)
class _Asked:
    args: list[Any]
    kwargs: dict[str, Any]
    request: Mapping[str, Any] = field(default_factory=dict)


def _asked(values: Sequence[Any], heartbeat_details: Sequence[Any]) -> _Asked:
    """The arguments: of a retry that changed them, of a `call`, or plain positional ones."""
    for content in (*heartbeat_details[:1], *(values if len(values) == 1 else ())):
        if isinstance(content, dict) and len(content) == 1:
            found = content.get(NEXT_CALL, content.get(CALL))
            if isinstance(found, dict):
                return _Asked(
                    args=list(found.get("args", ())),
                    kwargs=dict(found.get("kwargs", {})),
                    request=found.get("request", {}),
                )
    return _Asked(args=list(values), kwargs={})


def _task_id(info: activity.Info) -> str:
    """The activity's id if a caller chose a task id for it, else the message's, else its own."""
    try:
        return str(uuid.UUID(info.activity_id))
    except ValueError:
        delivery = _delivery.get()
        if delivery is not None:
            return delivery.task_id
        number = int(info.activity_id) if info.activity_id.isdigit() else 0
        return activity_task_id(info.workflow_run_id or "", number)


def _outcome(body: _Body, info: activity.Info) -> Any:
    """The value of a body, or its failure with what Celery says of another attempt."""
    if body.retry is not None:
        raise _next_attempt(body, info)
    if body.state == states.SUCCESS:
        return body.value
    error = body.value
    if isinstance(error, FailureError | CompleteAsyncError):
        raise error
    failure = ApplicationError(
        str(error),
        type=type(error).__name__,
        # Celery repeats a task only when the task asks for it; a policy of its own asks too.
        non_retryable=body.state != states.FAILURE or is_default_policy(info.retry_policy),
    )
    if isinstance(error, BaseException):
        failure.__cause__ = error.__cause__
        raise failure.with_traceback(error.__traceback__)
    raise failure


def _next_attempt(body: _Body, info: activity.Info) -> ApplicationError:
    if body.next_call is not None:
        if info.is_local:  # which has no heartbeats to carry them
            return ApplicationError(
                f"{info.activity_type} asked for a retry with other arguments, which a local "
                "activity can't have: use workflow.execute_activity",
                type="RetryError",
                non_retryable=True,
            )
        activity.heartbeat({NEXT_CALL: body.next_call})
    reason = body.retry.exc
    failure = ApplicationError(
        str(reason or body.retry),
        type=type(reason or body.retry).__name__,
        next_retry_delay=_delay(body.retry.when),
    )
    failure.__cause__ = getattr(reason, "__cause__", None)
    return failure


def _delay(when: Any) -> timedelta:
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(aware - datetime.now(UTC), timedelta())
    return timedelta(seconds=float(when or 0))


def is_default_policy(policy: RetryPolicy | None) -> bool:
    """Whether the caller asked for no retries of its own: then those of the Celery task hold."""
    return policy is None or (
        policy.initial_interval == timedelta(seconds=1)
        and policy.backoff_coefficient == 2.0
        and policy.maximum_interval in (None, timedelta(seconds=100))
        and policy.maximum_attempts == 0
        and not policy.non_retryable_error_types
    )


def _listed(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


# --- Celery's Task class -------------------------------------------------------------------------


def extend_tasks() -> None:
    """Make every Celery task an activity, and let `retry` and `replace` know of claimed bodies."""
    if hasattr(Task, "__wfcore_activity_definition__"):
        return
    definition = property(lambda task: activity.Definition(name=task.name, fn=task, is_async=False))
    setattr(Task, "__wfcore_activity_definition__", definition)  # noqa: B010 - unknown to stubs
    _around("retry", _retry)
    _around("on_replace", _on_replace)
    _around("update_state", _update_state)
    signals.task_postrun.connect(
        _note_outcome, weak=False, dispatch_uid="wfapp.dispatch.celery_tasks"
    )


def _around(name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(Task, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        body = _body.get()
        if body is None or self.request.called_directly or self.request.id != body.task_id:
            return original(self, *args, **kwargs)
        return wrapper(self, body, original, *args, **kwargs)

    method.__name__, method.__doc__ = name, original.__doc__
    setattr(Task, name, method)


def _retry(task: Any, body: _Body, original: Any, *args: Any, **kwargs: Any) -> Any:
    request = task.request
    request.is_eager = True  # so Celery counts and raises as ever, and sends nothing
    try:
        retry: Any = original(task, *args, **{**kwargs, "throw": False})
    finally:
        request.is_eager = False
    retry.is_eager = False
    body.retry = retry
    asked = {"args": list(retry.sig.args), "kwargs": dict(retry.sig.kwargs)}
    if asked != {"args": list(request.args), "kwargs": dict(request.kwargs)}:
        body.next_call = asked
    if kwargs.get("throw", True):
        raise retry
    return retry


def _on_replace(task: Any, body: _Body, original: Any, signature: Signature[Any]) -> Any:
    body.replacement = signature
    raise Ignore("Replaced by new task")


def _update_state(
    task: Any,
    body: _Body,
    original: Any,
    task_id: Any = None,
    state: Any = None,
    meta: Any = None,
    **kwargs: Any,
) -> Any:
    if task_id in (None, body.task_id):
        activity.heartbeat({"state": state, "meta": meta})
    return original(task, task_id, state, meta, **kwargs)


def _note_outcome(task_id: str, state: Any, retval: Any, **_: Any) -> None:
    body = _body.get()
    if body is not None and body.task_id == task_id:
        body.state, body.value = state, retval
