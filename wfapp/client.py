"""The client for Django code: `get_client()` for sync code, with a-methods for async views.

A start inside ``atomic()`` joins it: the run exists if and only if the caller's data commits, and
its id is known before. Signals and cancel requests made there are delivered after the commit. What
waits for a worker raises `WaitInsideTransactionError` there. `get_async_client()` gives Temporal's
own asynchronous client.

    handle = get_client().start_workflow(Order.run, order.pk, id=f"order-{order.pk}")
"""

import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from wfapp import wiring
from wfapp.conf import config
from wfapp.dispatch.connections import surviving
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE
from wfapp.store import DjangoStore
from wfcore import client as core
from wfcore.common import UNSET
from wfcore.exceptions import (
    DeadlineExceededError,
    TransactionAliasError,
    WaitInsideTransactionError,
)
from wfcore.workflow import WorkflowDefinition

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
T = TypeVar("T")


def get_client(namespace: str = "") -> "WorkflowClient":
    """The client of this process, for the namespace of the setting or the one that is named."""
    name = namespace or config().namespace
    return wiring.part(f"client {name}", lambda: WorkflowClient(name))


def get_async_client(namespace: str = "") -> core.Client:
    """Temporal's client over the project's database and broker."""
    name = namespace or config().namespace
    return wiring.part(f"async client {name}", lambda: _make(name, AsyncCalls()))


def _make(namespace: str, calls: core.Calls) -> core.Client:
    return core.Client(
        wiring.get_service(),
        namespace=namespace,
        data_converter=wiring.get_converter(),
        identity=config().identity or None,
        calls=calls,
    )


class WorkflowClient:
    """Starts workflows and finds them, from sync code; each method has an async twin with an a."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._inline = _make(namespace, InlineCalls(wiring.get_store()))

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

    def list_workflows(
        self, query: str = "", *, limit: int | None = None, page_size: int = 1000
    ) -> Iterator[core.WorkflowExecution]:
        """Runs, newest first; pages are fetched as they are needed."""
        return _inline_items(
            self._inline.list_workflows(query or None, limit=limit, page_size=page_size)
        )

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
        handle = self._inner
        if timeout is not None:
            calls = InlineCalls(wiring.get_store(), deadline=monotonic() + timeout.total_seconds())
            handle = _moved(handle, _make(self._client.namespace, calls))
        return core.run_inline(handle.result(follow_runs=follow_runs))

    async def aresult(
        self,
        *,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the twin's name
        follow_runs: bool = True,
    ) -> Any:
        """As `result`; a wait holds a thread, not the event loop."""
        calls = AsyncCalls(monotonic() + timeout.total_seconds() if timeout is not None else None)
        handle = _moved(self._inner, _make(self._client.namespace, calls))
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
        handle = _moved(self._inner, _make(self._client.namespace, AsyncCalls()))
        return await handle.query(*args, **options)

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


class InlineCalls:
    """Calls in the calling thread and its transaction; outside of one they outlive an outage."""

    def __init__(self, store: DjangoStore, *, deadline: float | None = None) -> None:
        self._store = store
        self._deadline = deadline

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `wfcore.client.Calls.make`; only a call that waits can be given up."""
        call = partial(method, request)
        if not self._store.inside_callers_transaction():
            patience = config().database_wait
            call = partial(surviving, call, alias=self._store.alias, patience=patience)
        seconds = _left(self._deadline, time_limit)
        if seconds is None or not waits:
            return call()
        try:
            return _in_thread(call).result(max(seconds, 0.0))
        except TimeoutError:
            raise DeadlineExceededError("Timeout expired") from None


class AsyncCalls:
    """Calls of coroutines: short ones in Django's thread for sync code, waits in their own."""

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `wfcore.client.Calls.make`."""
        store = wiring.get_store()
        seconds = _left(self._deadline, time_limit)
        call = partial(InlineCalls(store).make, method, request)
        if not waits:
            return await sync_to_async(lambda: core.run_inline(call()))()
        waiting = _in_thread(lambda: core.run_inline(call()))
        return await _awaited(waiting, seconds)


async def _awaited(waiting: "Future[T]", seconds: float | None) -> T:
    import asyncio  # noqa: PLC0415 - here alone; sync users never need it

    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(waiting)
    except TimeoutError:
        raise DeadlineExceededError("Timeout expired") from None


def _left(deadline: float | None, time_limit: timedelta | None) -> float | None:
    """Seconds that a call may take."""
    bounds = [] if time_limit is None else [time_limit.total_seconds()]
    if deadline is not None:
        bounds.append(deadline - monotonic())
    return min(bounds) if bounds else None


def _in_thread(call: Callable[[], T]) -> "Future[T]":
    """Call in a thread with database connections of its own, which end with it."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # who gives up waiting doesn't cancel it

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is asked for
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            connections.close_all()

    threading.Thread(target=run, name="wfapp-call", daemon=True).start()
    return outcome


def _record(call: Callable[[], T], detached: bool) -> T:
    """Make a call that writes, in the caller's transaction or, detached, outside of it.

    Raises:
        TransactionAliasError: a transaction is open on another database.
    """
    if detached:
        return _in_thread(call).result()
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
