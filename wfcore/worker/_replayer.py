"""Recorded histories against today's code: does it still ask for what is recorded?"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from wfcore.common import HeaderCodecBehavior
from wfcore.converter import DataConverter, WorkflowSerializationContext
from wfcore.exceptions import NondeterminismError, TemporalError, WorkflowDeadlockError
from wfcore.protocol.common import WorkflowExecution, WorkflowType
from wfcore.protocol.events import HistoryEvent, WorkflowExecutionStarted
from wfcore.replay.instance import replay_history
from wfcore.worker._async_loop import in_daemon_thread
from wfcore.worker._interceptors import Interceptor
from wfcore.worker._registry import Registry
from wfcore.worker._runners import DEFAULT_RUNNER, WorkflowRunner
from wfcore.worker._watchdog import DEADLOCK_TIMEOUT, HungCodeInterrupt, WatchedCall
from wfcore.worker._workflow_tasks import interceptor_classes


class History(Protocol):
    """A history as `wfcore.client.WorkflowHistory` holds it."""

    @property
    def workflow_id(self) -> str: ...

    @property
    def events(self) -> Sequence[HistoryEvent]: ...

    @property
    def run_id(self) -> str: ...


class ReplayerConfig(TypedDict, total=False):
    """The settings of a replayer, as `Replayer.config` gives them and `Replayer` takes them."""

    workflows: Sequence[type]
    workflow_runner: WorkflowRunner
    namespace: str
    data_converter: DataConverter
    interceptors: Sequence[Interceptor]
    build_id: str | None
    identity: str | None
    workflow_failure_exception_types: Sequence[type[BaseException]]
    debug_mode: bool
    header_codec_behavior: HeaderCodecBehavior


@dataclass(frozen=True)
class WorkflowReplayResult:
    """The outcome of one replay; `replay_failure` is None when code and history agree."""

    history: Any
    replay_failure: Exception | None


@dataclass(frozen=True)
class WorkflowReplayResults:
    """The failures of several replays, by run id."""

    replay_failures: Mapping[str, Exception]


_WITHOUT_EFFECT = frozenset(
    {
        "disable_safe_workflow_eviction",
        "runtime",
        "unsandboxed_workflow_runner",
        "workflow_task_executor",
    }
)


class Replayer:
    """Replays histories against workflow classes; for tests of changed code.

    Args:
        workflows: classes decorated with ``@workflow.defn``.
        data_converter: the one that the histories were written with.
        without_effect: further settings of Temporal's replayer, accepted and ignored.

    Raises:
        ValueError: there are no workflows, or their names collide.

    Example:
        ``await Replayer(workflows=[Order]).replay_workflow(WorkflowHistory.from_json(id, text))``
    """

    def __init__(
        self,
        *,
        workflows: Sequence[type],
        workflow_runner: WorkflowRunner = DEFAULT_RUNNER,
        namespace: str = "ReplayNamespace",
        data_converter: DataConverter = DataConverter.default,
        interceptors: Sequence[Interceptor] = (),
        plugins: Sequence[Any] = (),
        build_id: str | None = None,
        identity: str | None = None,
        workflow_failure_exception_types: Sequence[type[BaseException]] = (),
        debug_mode: bool = False,
        header_codec_behavior: HeaderCodecBehavior = HeaderCodecBehavior.NO_CODEC,
        **without_effect: Any,
    ) -> None:
        unknown = without_effect.keys() - _WITHOUT_EFFECT
        if unknown:
            raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
        if plugins:
            raise ValueError("plugins are not supported: give the replayer what they would set")
        if not workflows:
            raise ValueError("At least one workflow must be specified")
        self._config = ReplayerConfig(
            workflows=workflows,
            workflow_runner=workflow_runner,
            namespace=namespace,
            data_converter=data_converter,
            interceptors=interceptors,
            build_id=build_id,
            identity=identity,
            workflow_failure_exception_types=workflow_failure_exception_types,
            debug_mode=debug_mode,
            header_codec_behavior=header_codec_behavior,
        )
        self._registry = Registry(workflows)

    def config(self, *, active_config: bool = False) -> ReplayerConfig:
        """The settings, with which another replayer can be made."""
        del active_config  # plugins, which could change them, are refused
        return self._config.copy()

    async def replay_workflow(
        self, history: History, *, raise_on_replay_failure: bool = True
    ) -> WorkflowReplayResult:
        """Replay one history.

        Raises:
            NondeterminismError: the code asks for something else than what is recorded.
            RuntimeError: the code failed in another way, or there is no such workflow.
        """
        failure = await self._failure(history)
        if failure is not None and raise_on_replay_failure:
            raise failure
        return WorkflowReplayResult(history=history, replay_failure=failure)

    async def replay_workflows(
        self, histories: AsyncIterator[History], *, raise_on_replay_failure: bool = True
    ) -> WorkflowReplayResults:
        """Replay several histories; the first failure is raised, unless all are to be collected."""
        failures: dict[str, Exception] = {}
        async for history in histories:
            result = await self.replay_workflow(
                history, raise_on_replay_failure=raise_on_replay_failure
            )
            if result.replay_failure is not None:
                failures[history.run_id] = result.replay_failure
        return WorkflowReplayResults(replay_failures=failures)

    @asynccontextmanager
    async def workflow_replay_iterator(
        self, histories: AsyncIterator[History]
    ) -> AsyncIterator[AsyncIterator[WorkflowReplayResult]]:
        """The results of several histories, each when it is asked for."""

        async def results() -> AsyncGenerator[WorkflowReplayResult, None]:
            async for history in histories:
                yield await self.replay_workflow(history, raise_on_replay_failure=False)

        iterator = results()
        try:
            yield iterator
        finally:
            await iterator.aclose()

    async def _failure(self, history: History) -> Exception | None:
        """What makes the replay fail, in the form in which it is raised."""
        try:
            error = await self._replay(history)
        except HungCodeInterrupt:
            error = WorkflowDeadlockError(DEADLOCK_TIMEOUT)
        except TemporalError as err:  # it is no history
            return err
        if error is None or isinstance(error, NondeterminismError):
            return error
        failure = RuntimeError(f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure

    async def _replay(self, history: History) -> BaseException | None:
        config = self._config
        started = history.events[0].attributes if history.events else None
        if not isinstance(started, WorkflowExecutionStarted):
            return ValueError("a history begins with WORKFLOW_EXECUTION_STARTED; load it whole")
        name = (started.workflow_type or WorkflowType()).name
        definition = self._registry.workflow(name)
        if definition is None:
            return LookupError(
                f"Workflow class {name} is not registered on this replayer, available workflows: "
                f"{', '.join(self._registry.workflow_names)}"
            )
        context = WorkflowSerializationContext(
            namespace=config["namespace"], workflow_id=history.workflow_id
        )
        converter = config["data_converter"].with_context(context)
        headers = config["header_codec_behavior"] is not HeaderCodecBehavior.NO_CODEC
        events = [
            await converter.decode_message(event, headers=headers) for event in history.events
        ]
        classes, extern_functions = interceptor_classes(config["interceptors"])

        def replay() -> BaseException | None:
            return replay_history(
                definition,
                events,
                namespace=config["namespace"],
                workflow_execution=WorkflowExecution(
                    workflow_id=history.workflow_id, run_id=history.run_id
                ),
                data_converter=config["data_converter"],
                interceptors=classes,
                failure_exception_types=config["workflow_failure_exception_types"],
                build_id=config["build_id"] or "",
                guarded=config["workflow_runner"].guarded,
                extern_functions=extern_functions,
            )

        if config["debug_mode"]:
            return await in_daemon_thread(replay)
        return await in_daemon_thread(
            lambda: WatchedCall(_ignore).make(replay, (), DEADLOCK_TIMEOUT)
        )


def _ignore(stack: str) -> None:
    """The error that the interrupted call raises says enough."""
