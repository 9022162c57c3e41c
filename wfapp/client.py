"""The client for Django code: `get_client()` for sync code, with a-methods for async views.

A start inside ``atomic()`` joins it: the run exists if and only if the caller's data commits, and
its id is known before. Signals and cancel requests made there are delivered after the commit. What
waits for a worker raises `WaitInsideTransactionError` there. `get_async_client()` gives Temporal's
own asynchronous client.

    handle = get_client().start_workflow(Order.run, order.pk, id=f"order-{order.pk}")
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from wfapp import wiring
from wfapp.conf import config
from wfapp.dispatch.calls import AsyncCalls, InlineCalls, deadline_in, in_thread
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE
from wfcore import client as core
from wfcore.common import UNSET
from wfcore.exceptions import (
    TransactionAliasError,
    WaitInsideTransactionError,
)
from wfcore.workflow import UpdateDefinition, WorkflowDefinition

T = TypeVar("T")


def get_client(namespace: str = "") -> "WorkflowClient":
    """The client of this process, for the namespace of the setting or the one that is named."""
    name = namespace or config().namespace
    return wiring.part(f"client {name}", lambda: WorkflowClient(name))


def get_async_client(namespace: str = "") -> core.Client:
    """Temporal's client over the project's database and broker."""
    return wiring.get_async_client(namespace or config().namespace)


class WorkflowClient:
    """Starts workflows and finds them, from sync code; each method has an async twin with an a."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._inline = wiring.make_client(namespace, InlineCalls(wiring.get_store()))

    def start_workflow(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str | None = None,  # noqa: A002 - Temporal's name
        task_queue: str = "",
        detached: bool = False,
        **options: Any,
    ) -> "WorkflowHandle":
        """Start a workflow, given by its run method or by the name of its type.

        Args:
            id: unique among open workflows; without one, a random id that begins with the type.
            task_queue: without one, that of the setting, or ``default``.
            detached: record the start at once and on its own, whatever transaction is open.
            options: as of `wfcore.client.Client.start_workflow`.

        Raises:
            WorkflowAlreadyStartedError: the id is in use and the policies allow no other run.
            TransactionAliasError: a transaction is open on another database.
        """
        name, _ = WorkflowDefinition.name_and_result_type(workflow)
        start = partial(
            self._inline.start_workflow,
            workflow,
            arg,
            args=args,
            id=id or f"{name}-{uuid.uuid4()}",
            task_queue=task_queue or config().task_queue or DEFAULT_TASK_QUEUE,
            **options,
        )
        return WorkflowHandle(self._inline, _record(lambda: core.run_inline(start()), detached))

    async def astart_workflow(self, *args: Any, **options: Any) -> "WorkflowHandle":
        """As `start_workflow`."""
        return await sync_to_async(self.start_workflow)(*args, **options)

    def execute_workflow(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        timeout: timedelta | None = None,
        **options: Any,
    ) -> Any:
        """Start a workflow and wait for its result; see `start_workflow`, `WorkflowHandle.result`.

        Raises:
            WaitInsideTransactionError: a transaction is open; nothing was started.
        """
        _refuse_to_wait("execute_workflow()")
        return self.start_workflow(workflow, arg, **options).result(timeout=timeout)

    async def aexecute_workflow(self, *args: Any, **options: Any) -> Any:
        """As `execute_workflow`."""
        timeout = options.pop("timeout", None)
        handle = await self.astart_workflow(*args, **options)
        return await handle.aresult(timeout=timeout)

    def execute_update_with_start_workflow(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        start_workflow_operation: core.WithStartWorkflowOperation[Any, Any],
        timeout: timedelta | None = None,
        **options: Any,
    ) -> Any:
        """Start a workflow unless it is open, send it an update, and wait for its result.

        Raises:
            WorkflowUpdateFailedError: the update was refused or failed.
            WorkflowAlreadyStartedError: the policies don't allow to start or use the workflow.
            WorkflowUpdateRPCTimeoutOrCancelledError: it did not end within `timeout`.
            WaitInsideTransactionError: a transaction is open; nothing was started.
        """
        _refuse_to_wait("execute_update_with_start_workflow()")
        call = partial(
            _limited(self._inline, timeout).execute_update_with_start_workflow,
            update,
            arg,
            start_workflow_operation=start_workflow_operation,
            **options,
        )
        return core.run_inline(call())

    async def aexecute_update_with_start_workflow(
        self,
        *args: Any,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        **options: Any,
    ) -> Any:
        """As `execute_update_with_start_workflow`; a wait holds a thread, not the event loop."""
        client = _asynchronous(self._inline, timeout)
        return await client.execute_update_with_start_workflow(*args, **options)

    def start_update_with_start_workflow(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        start_workflow_operation: core.WithStartWorkflowOperation[Any, Any],
        wait_for_stage: core.WorkflowUpdateStage,
        timeout: timedelta | None = None,
        **options: Any,
    ) -> "WorkflowUpdateHandle":
        """The same, waiting until the update is accepted or has ended."""
        _refuse_to_wait("start_update_with_start_workflow()")
        call = partial(
            _limited(self._inline, timeout).start_update_with_start_workflow,
            update,
            arg,
            start_workflow_operation=start_workflow_operation,
            wait_for_stage=wait_for_stage,
            **options,
        )
        return WorkflowUpdateHandle(self._inline, core.run_inline(call()))

    async def astart_update_with_start_workflow(
        self,
        *args: Any,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        **options: Any,
    ) -> "WorkflowUpdateHandle":
        """As `start_update_with_start_workflow`; a wait holds a thread, not the event loop."""
        client = _asynchronous(self._inline, timeout)
        handle = await client.start_update_with_start_workflow(*args, **options)
        return WorkflowUpdateHandle(self._inline, handle)

    def get_workflow_handle(
        self,
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
        result_type: Any = None,
    ) -> "WorkflowHandle":
        """A handle for a workflow that exists, or will; nothing is looked up."""
        handle: core.WorkflowHandle[Any, Any] = self._inline.get_workflow_handle(
            workflow_id,
            run_id=run_id,
            first_execution_run_id=first_execution_run_id,
            result_type=result_type,
        )
        return WorkflowHandle(self._inline, handle)

    def get_workflow_handle_for(
        self,
        workflow: Callable[..., Any],
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
    ) -> "WorkflowHandle":
        """A handle whose result has the type that this workflow's run method tells."""
        handle: core.WorkflowHandle[Any, Any] = self._inline.get_workflow_handle_for(
            workflow, workflow_id, run_id=run_id, first_execution_run_id=first_execution_run_id
        )
        return WorkflowHandle(self._inline, handle)

    def get_async_activity_handle(
        self,
        *,
        workflow_id: str | None = None,
        run_id: str | None = None,
        activity_id: str | None = None,
        task_token: bytes | None = None,
    ) -> "AsyncActivityHandle":
        """A handle with which to complete an activity from outside; see `wfcore.client.Client`."""
        get: Any = self._inline.get_async_activity_handle  # it checks what goes together
        names = {"workflow_id": workflow_id, "run_id": run_id, "activity_id": activity_id}
        return AsyncActivityHandle(get(task_token=task_token, **names))

    def list_workflows(
        self, query: str = "", *, limit: int | None = None, page_size: int = 1000
    ) -> Iterator[core.WorkflowExecution]:
        """Runs, newest first; pages are fetched as they are needed."""
        return _inline_items(
            self._inline.list_workflows(query or None, limit=limit, page_size=page_size)
        )

    async def alist_workflows(
        self, query: str = "", *, limit: int | None = None, page_size: int = 1000
    ) -> AsyncIterator[core.WorkflowExecution]:
        """As `list_workflows`."""
        client = _asynchronous(self._inline)
        async for found in client.list_workflows(query or None, limit=limit, page_size=page_size):
            yield found

    def count_workflows(self, query: str = "") -> core.WorkflowExecutionCount:
        """How many runs there are."""
        return core.run_inline(self._inline.count_workflows(query or None))

    async def acount_workflows(self, query: str = "") -> core.WorkflowExecutionCount:
        """As `count_workflows`."""
        return await sync_to_async(self.count_workflows)(query)


class WorkflowHandle:
    """Names a workflow and talks to it, from sync code; each method has an async twin with an a.

    Attributes:
        id: the workflow's id.
        result_run_id: the run whose result is waited for, and those that follow it.
    """

    def __init__(self, client: core.Client, inner: core.WorkflowHandle[Any, Any]) -> None:
        self._client = client
        self._inner = inner
        self.id = inner.id
        self.run_id = inner.run_id
        self.result_run_id = inner.result_run_id
        self.first_execution_run_id = inner.first_execution_run_id

    def result(self, *, timeout: timedelta | None = None, follow_runs: bool = True) -> Any:
        """Wait for the workflow's end and give its result.

        Raises:
            WorkflowFailureError: it failed, was cancelled or terminated, or timed out.
            WaitInsideTransactionError: a transaction is open.
            DeadlineExceededError: it did not end within `timeout`.
        """
        _refuse_to_wait("result()")
        handle = _moved(self._inner, _limited(self._client, timeout))
        return core.run_inline(handle.result(follow_runs=follow_runs))

    async def aresult(
        self,
        *,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        follow_runs: bool = True,
    ) -> Any:
        """As `result`; a wait holds a thread, not the event loop."""
        handle = _moved(self._inner, _asynchronous(self._client, timeout))
        return await handle.result(follow_runs=follow_runs)

    def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        detached: bool = False,
    ) -> None:
        """Send a signal; inside a transaction it is delivered after the commit.

        Raises:
            NotFoundError: there is no such workflow, or it is closed.
            TransactionAliasError: a transaction is open on another database.
        """
        send = partial(self._inner.signal, signal, arg, args=args)
        _record(lambda: core.run_inline(send()), detached)

    async def asignal(self, *args: Any, **options: Any) -> None:
        """As `signal`."""
        await sync_to_async(self.signal)(*args, **options)

    def query(self, query: str | Callable[..., Any], arg: Any = UNSET, **options: Any) -> Any:
        """Ask the workflow; options as of `wfcore.client.WorkflowHandle.query`.

        Raises:
            WorkflowQueryFailedError: the handler failed, or there is none.
            WaitInsideTransactionError: a transaction is open.
        """
        _refuse_to_wait("query()")
        return core.run_inline(self._inner.query(query, arg, **options))

    async def aquery(self, *args: Any, **options: Any) -> Any:
        """As `query`; a wait holds a thread, not the event loop."""
        handle = _moved(self._inner, _asynchronous(self._client))
        return await handle.query(*args, **options)

    def execute_update(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        timeout: timedelta | None = None,
        **options: Any,
    ) -> Any:
        """Send an update and wait for its result.

        Args:
            timeout: how long to wait; the update goes on when it is over.
            options: as of `wfcore.client.WorkflowHandle.execute_update`.

        Raises:
            WorkflowUpdateFailedError: it was refused or failed, or the workflow ended before it.
            WorkflowUpdateRPCTimeoutOrCancelledError: it did not end within `timeout`.
            WaitInsideTransactionError: a transaction is open.
        """
        _refuse_to_wait("execute_update()")
        handle = _moved(self._inner, _limited(self._client, timeout))
        call = partial(handle.execute_update, update, arg, **options)
        return core.run_inline(call())

    async def aexecute_update(
        self,
        *args: Any,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        **options: Any,
    ) -> Any:
        """As `execute_update`; a wait holds a thread, not the event loop."""
        handle = _moved(self._inner, _asynchronous(self._client, timeout))
        return await handle.execute_update(*args, **options)

    def start_update(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        wait_for_stage: core.WorkflowUpdateStage,
        timeout: timedelta | None = None,
        **options: Any,
    ) -> "WorkflowUpdateHandle":
        """Send an update and wait until it is accepted or has ended; see `execute_update`."""
        _refuse_to_wait("start_update()")
        handle = _moved(self._inner, _limited(self._client, timeout))
        call = partial(handle.start_update, update, arg, wait_for_stage=wait_for_stage, **options)
        return WorkflowUpdateHandle(self._client, core.run_inline(call()))

    async def astart_update(
        self,
        *args: Any,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        **options: Any,
    ) -> "WorkflowUpdateHandle":
        """As `start_update`; a wait holds a thread, not the event loop."""
        handle = _moved(self._inner, _asynchronous(self._client, timeout))
        return WorkflowUpdateHandle(self._client, await handle.start_update(*args, **options))

    def get_update_handle(
        self,
        id: str,  # noqa: A002 - Temporal\'s name
        *,
        workflow_run_id: str | None = None,
        result_type: Any = None,
    ) -> "WorkflowUpdateHandle":
        """A handle for an update that was sent; nothing is looked up."""
        inner = self._inner.get_update_handle(
            id, workflow_run_id=workflow_run_id, result_type=result_type
        )
        return WorkflowUpdateHandle(self._client, inner)

    def get_update_handle_for(
        self,
        update: Callable[..., Any],
        id: str,  # noqa: A002 - Temporal\'s name
        *,
        workflow_run_id: str | None = None,
    ) -> "WorkflowUpdateHandle":
        """A handle whose result has the type that this update's method tells."""
        _, result_type = UpdateDefinition.name_and_result_type(update)
        return self.get_update_handle(id, workflow_run_id=workflow_run_id, result_type=result_type)

    def cancel(self, *, reason: str = "", detached: bool = False) -> None:
        """Ask the workflow to cancel itself; inside a transaction after the commit.

        Raises:
            NotFoundError: there is no such workflow.
            TransactionAliasError: a transaction is open on another database.
        """
        _record(lambda: core.run_inline(self._inner.cancel(reason=reason)), detached)

    async def acancel(self, **options: Any) -> None:
        """As `cancel`."""
        await sync_to_async(self.cancel)(**options)

    def terminate(self, *details: Any, reason: str = "", detached: bool = False) -> None:
        """End the workflow at once; inside a transaction if that commits.

        Raises:
            NotFoundError: there is no such workflow, or it is closed.
            TransactionAliasError: a transaction is open on another database.
        """
        end = partial(self._inner.terminate, *details, reason=reason or None)
        _record(lambda: core.run_inline(end()), detached)

    async def aterminate(self, *args: Any, **options: Any) -> None:
        """As `terminate`."""
        await sync_to_async(self.terminate)(*args, **options)

    def describe(self) -> core.WorkflowExecutionDescription:
        """What is known of the run besides its history.

        Raises:
            NotFoundError: there is no such workflow.
        """
        return core.run_inline(self._inner.describe())

    async def adescribe(self) -> core.WorkflowExecutionDescription:
        """As `describe`."""
        return await sync_to_async(self.describe)()

    def fetch_history(self) -> core.WorkflowHistory:
        """The history as it is now; its `to_json` is what Temporal's tools read."""
        return core.run_inline(self._inner.fetch_history())

    async def afetch_history(self) -> core.WorkflowHistory:
        """As `fetch_history`."""
        return await sync_to_async(self.fetch_history)()


class WorkflowUpdateHandle:
    """Names an update and gives its result, to sync code; `aresult` is the async twin.

    Attributes:
        id: the update's id.
        workflow_id: the workflow's id.
        workflow_run_id: the run that has the update; None means the current one.
    """

    def __init__(self, client: core.Client, inner: core.WorkflowUpdateHandle[Any]) -> None:
        self._client = client
        self._inner = inner
        self.id = inner.id
        self.workflow_id = inner.workflow_id
        self.workflow_run_id = inner.workflow_run_id

    def result(self, *, timeout: timedelta | None = None) -> Any:
        """Wait for the update's end and give its result.

        Raises:
            WorkflowUpdateFailedError: it was refused or failed, or the workflow ended before it.
            WorkflowUpdateRPCTimeoutOrCancelledError: it did not end within `timeout`.
            WaitInsideTransactionError: a transaction is open.
        """
        _refuse_to_wait("result()")
        return core.run_inline(self._inner.over(_limited(self._client, timeout)).result())

    async def aresult(
        self,
        *,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
    ) -> Any:
        """As `result`; a wait holds a thread, not the event loop."""
        return await self._inner.over(_asynchronous(self._client, timeout)).result()


class AsyncActivityHandle:
    """An activity that is completed from outside; NotFoundError: the attempt is over.

    Inside a transaction what is said counts if that commits. Async twins begin with an a.
    """

    def __init__(self, inner: core.AsyncActivityHandle) -> None:
        self._inner = inner

    def heartbeat(self, *details: Any) -> None:
        """Say that it is alive. Raises: AsyncActivityCancelledError: it should end."""
        core.run_inline(self._inner.heartbeat(*details))

    async def aheartbeat(self, *details: Any) -> None:
        """As `heartbeat`."""
        await sync_to_async(self.heartbeat)(*details)

    def complete(self, result: Any = UNSET, *, detached: bool = False) -> None:
        """Complete the activity."""
        _record(lambda: core.run_inline(self._inner.complete(result)), detached)

    async def acomplete(self, *args: Any, **options: Any) -> None:
        """As `complete`."""
        await sync_to_async(self.complete)(*args, **options)

    def fail(self, error: Exception, *, detached: bool = False, **options: Any) -> None:
        """Fail the attempt; options as of `wfcore.client.AsyncActivityHandle.fail`."""
        _record(lambda: core.run_inline(self._inner.fail(error, **options)), detached)

    async def afail(self, *args: Any, **options: Any) -> None:
        """As `fail`."""
        await sync_to_async(self.fail)(*args, **options)

    def report_cancellation(self, *details: Any, detached: bool = False) -> None:
        """End it as cancelled. Raises: InvalidArgumentError: nobody asked for that."""
        _record(lambda: core.run_inline(self._inner.report_cancellation(*details)), detached)

    async def areport_cancellation(self, *args: Any, **options: Any) -> None:
        """As `report_cancellation`."""
        await sync_to_async(self.report_cancellation)(*args, **options)


def _limited(client: core.Client, timeout: timedelta | None) -> core.Client:
    """The same client, whose calls are given up after that time."""
    if timeout is None:
        return client
    return wiring.make_client(
        client.namespace, InlineCalls(wiring.get_store(), deadline_in(timeout))
    )


def _asynchronous(client: core.Client, timeout: timedelta | None = None) -> core.Client:
    """A client for coroutines."""
    return wiring.make_client(client.namespace, AsyncCalls(wiring.get_store, deadline_in(timeout)))


def _record(call: Callable[[], T], detached: bool) -> T:
    """Make a call that writes, in the caller's transaction or, detached, outside of it.

    Raises:
        TransactionAliasError: a transaction is open on another database.
    """
    if detached:
        return in_thread(call).result()
    store = wiring.get_store()
    if not store.inside_callers_transaction() and (elsewhere := store.open_elsewhere()):
        raise TransactionAliasError(elsewhere, store.alias)
    return call()


def _refuse_to_wait(what: str) -> None:
    """Raises: WaitInsideTransactionError: a worker would not see what this transaction wrote."""
    store = wiring.get_store()
    if store.inside_callers_transaction() or store.open_elsewhere():
        raise WaitInsideTransactionError(what)


def _moved(
    handle: core.WorkflowHandle[Any, Any], client: core.Client
) -> core.WorkflowHandle[Any, Any]:
    """The same handle over a client whose calls are made in another way."""
    moved: core.WorkflowHandle[Any, Any] = core.WorkflowHandle(
        client,
        handle.id,
        run_id=handle.run_id,
        result_run_id=handle.result_run_id,
        first_execution_run_id=handle.first_execution_run_id,
        result_type=handle._result_type,  # noqa: SLF001 - it has no public name
    )
    return moved


def _inline_items(items: AsyncIterator[T]) -> Iterator[T]:
    while True:
        try:
            yield core.run_inline(_next(items))
        except StopAsyncIteration:
            return


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
