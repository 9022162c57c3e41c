"""Handlers of signals, queries and updates: which there are, and which are running.

A signal without a handler waits until one is set. A handler may change the run only if it is a
signal's or an update's.
"""

from __future__ import annotations

import collections
import inspect
import json
import logging
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from wfcore.common import RawValue
from wfcore.exceptions import ReadOnlyContextError
from wfcore.protocol.enums import QueryResultType
from wfcore.protocol.events import WorkflowExecutionSignaled
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.info import WorkflowQuery, WorkflowQueryResult
from wfcore.replay.interceptors import (
    HandleQueryInput,
    HandleSignalInput,
    WorkflowInboundInterceptor,
)
from wfcore.replay.state import RunState
from wfcore.workflow import (
    HandlerUnfinishedPolicy,
    QueryDefinition,
    SignalDefinition,
    UnfinishedSignalHandlersWarning,
    UnfinishedUpdateHandlersWarning,
    UpdateDefinition,
    WorkflowDefinition,
)
from wfcore.workflow._event_groups import enter_signal
from wfcore.workflow._handler_definitions import HandlerDefinition

_logger = logging.getLogger(__name__)
_H = TypeVar("_H", bound=HandlerDefinition)
_NO_HEADERS: Mapping[str, Payload] = {}


class _Runner(Protocol):
    """Runs a coroutine whose end may end the run; the main one and signal handlers."""

    def __call__(
        self, body: Callable[[], Coroutine[Any, Any, None]], /
    ) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class Running:
    """A handler that has not ended."""

    name: str
    policy: HandlerUnfinishedPolicy
    id: str | None = None


class Handlers:
    """The handlers of one run."""

    def __init__(self, state: RunState, definition: WorkflowDefinition, run_top: _Runner) -> None:
        self._state = state
        self._run_top = run_top
        self.inbound: WorkflowInboundInterceptor = None  # type: ignore[assignment]  # set later
        self.workflow: Any = None
        self.signals: dict[str | None, SignalDefinition] = dict(definition.signals)
        self.queries: dict[str | None, QueryDefinition] = dict(definition.queries)
        self.updates: dict[str | None, UpdateDefinition] = dict(definition.updates)
        self.running_signals: dict[int, Running] = {}
        self.running_updates: dict[str, Running] = {}
        self._waiting: dict[str, list[tuple[int, WorkflowExecutionSignaled]]] = {}
        self._handled = 0

    def get(self, table: Mapping[str | None, _H], name: str | None) -> Callable[..., Any] | None:
        """A handler of one of the tables, bound to the workflow's object."""
        definition = table.get(name)
        return definition.bind(self.workflow) if definition else None

    def finished(self) -> bool:
        """Whether no signal or update handler is running."""
        return not self.running_signals and not self.running_updates

    def arguments(
        self, definition: HandlerDefinition, name: str, payloads: Payloads | None
    ) -> Sequence[Any]:
        """What a handler is called with.

        Raises:
            RuntimeError: the payloads don't decode to what it takes.
        """
        values, is_failure = self._state.values, self._state.is_failure
        if definition.name is not None:
            return values.decode(payloads, definition.arg_types, is_failure)
        if definition.takes_varargs:
            types = definition.arg_types[1:] if definition.arg_types else None
            return [name, *values.decode(payloads, types, is_failure)]
        count = len(payloads.payloads) if payloads else 0
        return [name, values.decode(payloads, [RawValue] * count, is_failure)]

    # --- signals --------------------------------------------------------------------------------

    def signal(self, event_id: int, event: WorkflowExecutionSignaled) -> None:
        """A signal came: start its handler, or keep it until there is one."""
        definition = self.signals.get(event.signal_name) or self.signals.get(None)
        if definition is None:
            self._waiting.setdefault(event.signal_name, []).append((event_id, event))
        else:
            self._start_signal(definition, event_id, event)

    def set_signal(self, name: str | None, handler: Callable[..., Any] | None) -> None:
        """Set or remove a handler; signals that wait for it come at once."""
        self._state.check_may_act("set a signal handler")
        if handler is None:
            self.signals.pop(name, None)
            return
        definition = SignalDefinition(name=name, fn=handler, is_method=False)
        _warn_of_varargs(definition, "signals")
        self.signals[name] = definition
        if name is None:
            waiting = [signal for signals in self._waiting.values() for signal in signals]
            self._waiting.clear()
        else:
            waiting = self._waiting.pop(name, [])
        for event_id, event in waiting:
            self._start_signal(definition, event_id, event)

    def _start_signal(
        self, definition: SignalDefinition, event_id: int, event: WorkflowExecutionSignaled
    ) -> None:
        try:
            args = self.arguments(definition, event.signal_name, event.input)
        except Exception:
            # One sender's bad argument must not stop the run.
            _logger.exception(
                "Dropped a signal whose arguments can't be decoded",
                extra={
                    "action": "signal_dropped",
                    "signal": event.signal_name,
                    "event_id": event_id,
                    **self._state.info.logger_details(),
                },
            )
            return
        call = HandleSignalInput(
            signal=event.signal_name,
            args=args,
            headers=event.header.fields if event.header else _NO_HEADERS,
        )
        self._handled += 1
        number = self._handled
        self.running_signals[number] = Running(event.signal_name, definition.unfinished_policy)

        async def handle() -> None:
            enter_signal(event_id)
            await self.inbound.handle_signal(call)

        task = self._state.loop.create_task(
            self._run_top(handle), name=f"signal: {event.signal_name}"
        )
        task.add_done_callback(lambda _task: self.running_signals.pop(number, None))

    # --- queries --------------------------------------------------------------------------------

    def set_query(self, name: str | None, handler: Callable[..., Any] | None) -> None:
        """Set or remove a handler."""
        self._state.check_may_act("set a query handler")
        if handler is None:
            self.queries.pop(name, None)
            return
        if inspect.iscoroutinefunction(handler):
            warnings.warn(
                "Queries as async def functions are deprecated", DeprecationWarning, stacklevel=4
            )
        definition = QueryDefinition(name=name, fn=handler, is_method=False)
        _warn_of_varargs(definition, "queries")
        self.queries[name] = definition

    def answer(self, query_id: str, query: WorkflowQuery) -> WorkflowQueryResult:
        """Run a query's handler; what it raises is the answer."""
        values = self._state.values
        try:
            with read_only(self._state), self._state.loop.entered():
                answer = values.encode_one(self._run_query(query_id, query))
        except Exception as error:  # noqa: BLE001 - the asker gets whatever went wrong
            failure = values.to_failure(error)
            return WorkflowQueryResult(
                result_type=QueryResultType.FAILED,
                error_message=failure.message,
                failure=failure,
            )
        return WorkflowQueryResult(result_type=QueryResultType.ANSWERED, answer=answer)

    def _run_query(self, query_id: str, query: WorkflowQuery) -> Any:
        if self.workflow is None:
            raise RuntimeError("The workflow can't answer before its first workflow task is done")
        definition = self.queries.get(query.query_type) or self.queries.get(None)
        if definition is None:
            known = " ".join(sorted(name for name in self.queries if name))
            raise RuntimeError(
                f"Query handler for '{query.query_type}' expected but not found, "
                f"known queries: [{known}]"
            )
        call = HandleQueryInput(
            id=query_id,
            query=query.query_type,
            args=self.arguments(definition, query.query_type, query.query_args),
            headers=query.header.fields if query.header else _NO_HEADERS,
        )
        return run_at_once(self.inbound.handle_query(call), "Query handler")

    # --- updates --------------------------------------------------------------------------------

    def set_update(
        self,
        name: str | None,
        handler: Callable[..., Any] | None,
        validator: Callable[..., None] | None,
    ) -> None:
        """Set or remove a handler, with its validator."""
        self._state.check_may_act("set an update handler")
        if handler is None:
            self.updates.pop(name, None)
            return
        definition = UpdateDefinition(name=name, fn=handler, is_method=False)
        if validator is not None:
            definition.set_validator(validator)
        self.updates[name] = definition

    # --- the end --------------------------------------------------------------------------------

    def warn_of_unfinished(self) -> None:
        """The run ends: say which handlers it leaves behind."""
        updates = [u for u in self.running_updates.values() if _is_missed(u)]
        if updates:
            names = json.dumps([{"name": update.name, "id": update.id} for update in updates])
            warnings.warn(
                UnfinishedUpdateHandlersWarning(
                    "[TMPRL1102] The workflow ended while update handlers were running; their "
                    f"callers get an error. {_HOW_TO_WAIT.format('update')} Unfinished: {names}"
                ),
                stacklevel=2,
            )
        signals = [s.name for s in self.running_signals.values() if _is_missed(s)]
        if signals:
            counted = collections.Counter(signals).most_common()
            names = json.dumps([{"name": name, "count": count} for name, count in counted])
            warnings.warn(
                UnfinishedSignalHandlersWarning(
                    "[TMPRL1102] The workflow ended while signal handlers were running. "
                    f"{_HOW_TO_WAIT.format('signal')} Unfinished: {names}"
                ),
                stacklevel=2,
            )


_HOW_TO_WAIT = (
    "Wait for them with `await workflow.wait_condition(workflow.all_handlers_finished)`, or, if "
    "they may be left behind, say so with "
    "`@workflow.{}(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)`."
)


class read_only:  # noqa: N801 - a context manager
    """Nothing may be changed or scheduled inside the block."""

    __slots__ = ("_before", "_loop")

    def __init__(self, state: RunState) -> None:
        self._loop = state.loop

    def __enter__(self) -> None:
        self._before = self._loop.read_only
        self._loop.read_only = True

    def __exit__(self, *_error: object) -> None:
        self._loop.read_only = self._before


def run_at_once(coro: Coroutine[Any, Any, Any], what: str) -> Any:
    """The result of a coroutine that must not wait.

    Raises:
        ReadOnlyContextError: it waits.
    """
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value
    coro.close()
    raise ReadOnlyContextError(f"{what} must not wait for anything: it can only look at the state")


def _is_missed(running: Running) -> bool:
    return running.policy is HandlerUnfinishedPolicy.WARN_AND_ABANDON


def _warn_of_varargs(definition: HandlerDefinition, plural: str) -> None:
    if definition.takes_varargs:
        warnings.warn(
            f"Dynamic {plural} with vararg third param is deprecated, use Sequence[RawValue]",
            DeprecationWarning,
            stacklevel=5,
        )


class InboundRoot(WorkflowInboundInterceptor):
    """The last hook of the inbound chain: calls the code itself."""

    def __init__(self, handlers: Handlers) -> None:  # the last one has no next
        self._handlers = handlers
        self.outbound: Any = None

    def init(self, outbound: Any) -> None:
        self.outbound = outbound

    async def execute_workflow(self, input: Any) -> Any:  # noqa: A002
        return await input.run_fn(self._handlers.workflow, *input.args)

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002
        await self._call(self._handlers.signals, input.signal, input.args)

    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
        return await self._call(self._handlers.queries, input.query, input.args)

    def handle_update_validator(self, input: Any) -> None:  # noqa: A002
        # A named update without a validator must not fall back to the dynamic one's.
        definition = self._handlers.updates.get(input.update)
        if definition is None:
            definition = self._handlers.updates.get(None)
        validator = definition.bind_validator(self._handlers.workflow) if definition else None
        if validator is not None:
            validator(*input.args)

    async def handle_update_handler(self, input: Any) -> Any:  # noqa: A002
        return await self._call(self._handlers.updates, input.update, input.args)

    async def _call(
        self, table: Mapping[str | None, HandlerDefinition], name: str, args: Iterable[Any]
    ) -> Any:
        definition = table.get(name) or table[None]
        result = definition.bind(self._handlers.workflow)(*args)
        return await result if definition.is_async else result
