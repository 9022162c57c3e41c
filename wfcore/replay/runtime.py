"""What `wfcore.workflow` calls: hands each call to the part of the run that does it."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NoReturn

from wfcore import activity as activities
from wfcore.common import (
    UNSET,
    MetricMeter,
    SearchAttributes,
    SearchAttributeUpdate,
    WorkerDeploymentVersion,
)
from wfcore.converter import encode_search_attribute_updates, encode_search_attributes
from wfcore.protocol import commands, payloads
from wfcore.protocol.payloads import Memo, Payload
from wfcore.replay.children import OtherWorkflow
from wfcore.replay.flags import LangFlag
from wfcore.replay.handlers import Handlers
from wfcore.replay.info import change_search_attributes
from wfcore.replay.interceptors import (
    ContinueAsNewInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowOutboundInterceptor,
)
from wfcore.replay.local_activities import LocalActivities
from wfcore.replay.loop import WorkflowTask
from wfcore.replay.patches import Patches
from wfcore.replay.pending import elapsed, timer_options
from wfcore.replay.seed import random_seed
from wfcore.replay.state import RunState
from wfcore.workflow import EventGroup, Info, WorkflowDefinition
from wfcore.workflow._event_groups import markers
from wfcore.workflow._runtime import Runtime

_Handler = Callable[..., Any]


class WorkflowRuntime(Runtime):
    """The runtime of one live run; `WorkflowInstance` keeps it up to date."""

    def __init__(
        self,
        state: RunState,
        handlers: Handlers,
        extern_functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self._state = state
        self.handlers = handlers
        self.patches = Patches(state)
        self.local_activities = LocalActivities(state)
        self.outbound: WorkflowOutboundInterceptor = None  # type: ignore[assignment]  # set later
        self.workflow_object: Any = None
        self.history_length = 0
        self.history_size = 0
        self.is_continue_as_new_suggested = False
        self.is_target_worker_deployment_version_changed = False
        self.is_guarded = state.loop.guarded
        self.extern_functions = extern_functions
        self.payload_converter = state.values.payloads
        self.current_details = ""
        self.logs: list[tuple[logging.Logger, logging.LogRecord]] = []
        self._build_id = ""
        self._deployment_version: WorkerDeploymentVersion | None = None
        self._seed_text = ""
        self._seed: int | None = None
        self._random: Random | None = None
        self._on_new_seed: list[Callable[[int], None]] = []
        self._memo: dict[str, Any] | None = None

    # --- kept by the instance -------------------------------------------------------------------

    def set_worker(self, build_id: str, version: WorkerDeploymentVersion | None) -> None:
        """Say which worker ran, or runs, the current workflow task."""
        self._build_id = build_id
        self._deployment_version = version

    def set_seed(self, run_id: str) -> None:
        """Seed from this run id: the original one at first, a reset's afterwards."""
        self._seed_text = run_id
        self._seed = None
        if self._random is not None:
            self._random.seed(self.seed)
        for callback in self._on_new_seed:
            try:
                callback(self.seed)
            except Exception as error:  # noqa: BLE001 - one listener must not stop the run
                self._state.loop.report_error(
                    {"message": "A random seed callback failed", "exception": error}
                )

    # --- what it is -----------------------------------------------------------------------------

    def info(self) -> Info:
        return self.outbound.info()

    @property
    def time_ns(self) -> int:  # type: ignore[override]
        return self._state.time_ns

    @property
    def is_replaying(self) -> bool:  # type: ignore[override]
        return self._state.is_replaying

    @property
    def is_read_only(self) -> bool:  # type: ignore[override]
        return self._state.loop.read_only

    @property
    def is_replaying_history_events(self) -> bool:
        return self._state.is_replaying and not self._state.loop.read_only

    @property
    def cancellation_reason(self) -> str | None:  # type: ignore[override]
        return self._state.cancellation_reason

    @property
    def build_id(self) -> str:
        return self._build_id

    @property
    def deployment_version(self) -> WorkerDeploymentVersion | None:
        return self._deployment_version

    @property
    def metric_meter(self) -> MetricMeter:
        return MetricMeter.noop

    @property
    def seed(self) -> int:  # type: ignore[override]
        if self._seed is None:
            self._seed = random_seed(self._seed_text)
        return self._seed

    @property
    def random(self) -> Random:  # type: ignore[override]
        if self._random is None:
            self._random = Random(self.seed)  # noqa: S311 - must be repeatable
        return self._random

    def on_new_seed(self, callback: Callable[[int], None]) -> None:
        self._state.check_may_act("register a random seed callback")
        self._on_new_seed.append(callback)

    def is_failure_exception(self, error: BaseException) -> bool:
        return self._state.is_failure(error)

    def memo(self) -> Mapping[str, Any]:
        if self._memo is None:
            converter = self.payload_converter
            self._memo = {
                name: converter.from_payload(payload)
                for name, payload in self._state.info.raw_memo.items()
            }
        return self._memo

    def memo_value(self, key: str, default: Any, type_hint: Any) -> Any:
        payload = self._state.info.raw_memo.get(key)
        if payload is not None:
            return self.payload_converter.from_payload(payload, type_hint)
        if default is UNSET:
            raise KeyError(f"Memo does not have a value for key {key}")
        return default

    def has_last_completion_result(self) -> bool:
        return bool(self._last_results())

    def last_completion_result(self, type_hint: Any) -> Any:
        found = self._last_results()
        if not found:
            return None
        if len(found) > 1:
            warnings.warn(f"Expected single last completion result, got {len(found)}", stacklevel=3)
            return None
        return self.payload_converter.from_payload(found[0], type_hint)

    def last_failure(self) -> BaseException | None:
        failure = self._state.started.continued_failure
        return self._state.values.from_failure(failure) if failure is not None else None

    def _last_results(self) -> Sequence[Payload]:
        results = self._state.started.last_completion_result
        return results.payloads if results is not None else ()

    def open_tasks(self) -> list[WorkflowTask[Any]]:
        """Tasks of the code that have not ended, oldest first."""
        return self._state.loop.open_tasks()

    def log(self, logger: logging.Logger, record: logging.LogRecord) -> None:
        self.logs.append((logger, record))

    # --- what it can do -------------------------------------------------------------------------

    def set_current_details(self, details: str) -> None:
        self._state.check_may_act("set the current details")
        self.current_details = details

    def start_activity(self, activity: Any, args: Sequence[Any], **options: Any) -> Any:
        self._state.check_may_act("start an activity")
        name, arg_types, ret_type = _activity(activity, options.pop("result_type"))
        return self.outbound.start_activity(
            StartActivityInput(
                activity=name,
                args=args,
                headers={},
                disable_eager_execution=False,
                arg_types=arg_types,
                ret_type=ret_type,
                **options,
            )
        )

    def start_local_activity(self, activity: Any, args: Sequence[Any], **options: Any) -> Any:
        self._state.check_may_act("start a local activity")
        name, arg_types, ret_type = _activity(activity, options.pop("result_type"))
        return self.outbound.start_local_activity(
            StartLocalActivityInput(
                activity=name,
                args=args,
                headers={},
                arg_types=arg_types,
                ret_type=ret_type,
                **options,
            )
        )

    async def start_child_workflow(self, workflow: Any, args: Sequence[Any], **options: Any) -> Any:
        self._state.check_may_act("start a child workflow")
        result_type = options.pop("result_type")
        name, ret_type = WorkflowDefinition.name_and_result_type(workflow)
        arg_types: Sequence[Any] | None = None
        if not isinstance(workflow, str):
            arg_types = WorkflowDefinition.must_from_run_fn(workflow).arg_types
        return await self.outbound.start_child_workflow(
            StartChildWorkflowInput(
                workflow=name,
                args=args,
                headers={},
                arg_types=arg_types,
                ret_type=result_type if isinstance(workflow, str) else ret_type,
                **options,
            )
        )

    def external_workflow_handle(self, workflow_id: str, run_id: str | None) -> Any:
        return OtherWorkflow(self._state, lambda: self.outbound, workflow_id, run_id)

    def continue_as_new(
        self, args: Sequence[Any], *, workflow: _Handler | str | None, **options: Any
    ) -> NoReturn:
        self._state.check_may_act("continue as new")
        name: str | None = None
        arg_types: Sequence[Any] | None = None
        if isinstance(workflow, str):
            name = workflow
        elif callable(workflow):
            definition = WorkflowDefinition.must_from_run_fn(workflow)
            name, arg_types = definition.name, definition.arg_types
        elif workflow is not None:
            raise TypeError("Workflow must be None, a string, or callable")
        self.outbound.continue_as_new(
            ContinueAsNewInput(workflow=name, args=args, headers={}, arg_types=arg_types, **options)
        )

    async def sleep(
        self, seconds: float, summary: str | None, event_groups: Sequence[EventGroup] | None
    ) -> None:
        metadata = self._state.values.metadata(summary)
        await elapsed(self._state, seconds, markers(event_groups), metadata)

    async def wait_condition(
        self,
        condition: Callable[[], bool],
        timeout: float | None,  # noqa: ASYNC109 - Temporal's name
        timeout_summary: str | None,
        event_groups: Sequence[EventGroup] | None,
    ) -> None:
        state = self._state
        state.check_may_act("wait for a condition")
        was_cancelled = state.cancellation_reason is not None
        future = state.loop.create_future()
        state.conditions.append((condition, future))
        if timeout is None:
            await future
        else:
            await self._wait_limited(future, timeout, timeout_summary, event_groups, was_cancelled)
        self._raise_new_cancellation(was_cancelled)

    async def _wait_limited(
        self,
        future: asyncio.Future[Any],
        timeout: float,  # noqa: ASYNC109 - Temporal's name
        summary: str | None,
        event_groups: Sequence[EventGroup] | None,
        was_cancelled: bool,
    ) -> None:
        metadata = self._state.values.metadata(summary)
        token = timer_options.set((metadata, markers(event_groups)))
        try:
            # asyncio's own function: how many turns of the loop it takes must be as in Temporal's
            # SDK under the same Python, or the order of commands would differ.
            await asyncio.wait_for(future, timeout)
        except TimeoutError:
            self._raise_new_cancellation(was_cancelled)
            raise
        finally:
            timer_options.reset(token)

    def _raise_new_cancellation(self, was_cancelled: bool) -> None:
        """asyncio lets a condition that holds win over a cancellation of the same turn; where a
        task's jobs are one batch, the cancellation wins."""
        state = self._state
        if (
            not was_cancelled
            and state.cancellation_reason is not None
            and state.flags.lang(LangFlag.ONE_BATCH)
        ):
            raise asyncio.CancelledError

    def upsert_memo(
        self, updates: Mapping[str, Any], event_groups: Sequence[EventGroup] | None
    ) -> None:
        if not updates:
            return
        state = self._state
        state.check_may_act("change the memo")
        converter = self.payload_converter
        fields = {name: converter.to_payload(value) for name, value in updates.items()}
        state.commands.add(
            commands.ModifyWorkflowProperties(upserted_memo=Memo(fields=fields)),
            None,
            None,
            markers(event_groups),
        )
        self._memo = None
        for name, value in updates.items():
            if value is None:
                state.memo.pop(name, None)
            else:
                state.memo[name] = fields[name]

    def upsert_search_attributes(
        self,
        attributes: SearchAttributes | Sequence[SearchAttributeUpdate[Any]],
        event_groups: Sequence[EventGroup] | None,
    ) -> None:
        state = self._state
        state.check_may_act("change search attributes")
        if isinstance(attributes, Mapping):
            fields = encode_search_attributes(attributes).indexed_fields
        else:
            fields = encode_search_attribute_updates(attributes).indexed_fields
        state.commands.add(
            commands.UpsertWorkflowSearchAttributes(
                search_attributes=payloads.SearchAttributes(indexed_fields=fields)
            ),
            None,
            None,
            markers(event_groups),
        )
        change_search_attributes(state.info, attributes)
        for name, payload in fields.items():
            if payload.metadata.get("encoding") == b"binary/null":
                state.search_attributes.pop(name, None)
            else:
                state.search_attributes[name] = payload

    def patch(
        self, patch_id: str, *, deprecated: bool, event_groups: Sequence[EventGroup] | None
    ) -> bool:
        return self.patches.ask(patch_id, deprecated=deprecated, groups=markers(event_groups))

    # --- handlers -------------------------------------------------------------------------------

    def all_handlers_finished(self) -> bool:
        return self.handlers.finished()

    def get_signal_handler(self, name: str | None) -> _Handler | None:
        return self.handlers.get(self.handlers.signals, name)

    def set_signal_handler(self, name: str | None, handler: _Handler | None) -> None:
        self.handlers.set_signal(name, handler)

    def get_query_handler(self, name: str | None) -> _Handler | None:
        return self.handlers.get(self.handlers.queries, name)

    def set_query_handler(self, name: str | None, handler: _Handler | None) -> None:
        self.handlers.set_query(name, handler)

    def get_update_handler(self, name: str | None) -> _Handler | None:
        return self.handlers.get(self.handlers.updates, name)

    def set_update_handler(
        self,
        name: str | None,
        handler: _Handler | None,
        validator: Callable[..., None] | None,
    ) -> None:
        self.handlers.set_update(name, handler, validator)


def _activity(activity: Any, result_type: Any) -> tuple[str, Sequence[Any] | None, Any]:
    """Name, argument types and result type of an activity that is given by name or as such."""
    if isinstance(activity, str):
        return activity, None, result_type
    if not callable(activity):
        raise TypeError("Activity must be a string or callable")
    definition = activities.Definition.must_from_callable(activity)
    if definition.name is None:
        raise ValueError("Cannot invoke dynamic activity explicitly")
    return definition.name, definition.arg_types, definition.ret_type
