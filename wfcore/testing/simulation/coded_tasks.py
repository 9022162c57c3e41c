"""Workflow tasks of real code, run by the worker's own runner over a service that can fail."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from wfcore.converter import DataConverter
from wfcore.exceptions import AbortedError, ResourceExhaustedError, UnavailableError
from wfcore.protocol.enums import CommandType
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondQueryTaskCompletedResponse,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
)
from wfcore.protocol.rpc.workflows import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
)
from wfcore.service import tokens
from wfcore.service.ports import RunKey
from wfcore.service.tokens import WorkflowToken
from wfcore.testing.simulation.errands import Errand
from wfcore.testing.simulation.faults import ConnectionLostError
from wfcore.testing.simulation.ledger import TaskAnswer, Try, may_vanish, noting
from wfcore.testing.simulation.processes import HeldTask, Worker
from wfcore.testing.simulation.world import NAMESPACE, World
from wfcore.worker import InstanceCache, Registry, WorkflowTaskRunner

T = TypeVar("T")

_PLACE = CommandType.PROTOCOL_MESSAGE
#: Live instances of one worker: few enough that some are thrown out.
_CACHED = 2


def run(world: World, worker: Worker, held: HeldTask) -> None:
    """Run a task, and those that come back with its answer."""
    if worker.runner is None:
        worker.runner = _runner(world, worker)
    worker.is_coding = True
    try:
        worker.runner.run(held.task)
    except ConnectionLostError:
        return
    finally:
        worker.is_coding = False


def key_of(task: PollWorkflowTaskQueueResponse) -> RunKey:
    """Whose task it is."""
    execution = task.workflow_execution
    if execution is None:
        raise ValueError("a task names its run")
    return RunKey(namespace=NAMESPACE, workflow_id=execution.workflow_id, run_id=execution.run_id)


def _runner(world: World, worker: Worker) -> WorkflowTaskRunner:
    cache = InstanceCache(_CACHED)
    world.caches.append(cache)
    return WorkflowTaskRunner(
        _Reported(world, worker),
        Registry([Errand]),
        DataConverter.default,
        worker.name,
        cache,
        guarded=False,
        deadlock_timeout=None,
    )


class _Reported:
    """The service as the runner sees it: each answer is noted, and an error that it would wait for
    is one that it doesn't, since nothing here passes by waiting.
    """

    def __init__(self, world: World, worker: Worker) -> None:
        self._world = world
        self._worker = worker

    def respond_workflow_task_completed(
        self, request: RespondWorkflowTaskCompletedRequest
    ) -> RespondWorkflowTaskCompletedResponse:
        own = [each for each in request.commands if each.command_type is not _PLACE]
        wish = self._wish(request.task_token, len(own))
        forced = request.force_create_new_workflow_task
        wish.may_vanish = may_vanish(len(own), request.messages, forced=forced)
        self._world.asked("complete a workflow task")
        tagged = msgspec.structs.replace(request, binary_checksum=wish.tag)
        service, owner = self._worker.service, self._worker.boot_id
        return self._noted(
            wish, lambda: service.respond_workflow_task_completed(tagged, owner=owner)
        )

    def respond_workflow_task_failed(
        self, request: RespondWorkflowTaskFailedRequest
    ) -> RespondWorkflowTaskFailedResponse:
        wish = self._wish(request.task_token, 0)
        wish.is_failure = True
        self._world.asked("fail a workflow task")
        text = request.failure.message if request.failure is not None else ""
        self._world.watch.report.fail("real code fails no task", f"{request.cause.name}: {text}")
        tagged = msgspec.structs.replace(request, binary_checksum=wish.tag)
        service = self._worker.service
        return self._noted(wish, lambda: service.respond_workflow_task_failed(tagged))

    def respond_query_task_completed(
        self, request: RespondQueryTaskCompletedRequest
    ) -> RespondQueryTaskCompletedResponse:
        self._world.asked("answer a query")
        return self._worker.service.respond_query_task_completed(request)

    def get_workflow_execution_history(
        self, request: GetWorkflowExecutionHistoryRequest
    ) -> GetWorkflowExecutionHistoryResponse:
        """A worker's reads outlive a lost connection."""
        self._world.asked("history")
        while True:
            with suppress(ConnectionLostError):
                return self._worker.service.get_workflow_execution_history(request)

    def _noted(self, wish: TaskAnswer, call: Callable[[], T]) -> T:
        try:
            with noting(wish, Try(by=self._worker.name)):
                return call()
        except (UnavailableError, ResourceExhaustedError, AbortedError) as error:
            raise ConnectionLostError(str(error)) from error

    def _wish(self, token: bytes, commands: int) -> TaskAnswer:
        wish = TaskAnswer(
            tag=self._world.tag("task"),
            token=tokens.decode(token, WorkflowToken),
            commands=commands,
        )
        self._world.ledger.task_answers[wish.tag] = wish
        return wish
