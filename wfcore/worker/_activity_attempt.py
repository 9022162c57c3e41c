"""One attempt of an activity: call the function, in the thread or on the shared loop.

The function of a sync activity runs in the thread that runs the attempt, so that thread-bound
things (a database connection, a transaction) are that thread's. Interceptors are coroutines and run
on the shared loop; they send the call of the function back to the thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from wfcore.activity import (
    ActivityCancellationDetails,
    Context,
    Definition,
    Info,
    entered,
)
from wfcore.converter import PayloadConverter
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.worker._alarms import Alarm, Alarms
from wfcore.worker._async_loop import shared_loop
from wfcore.worker._heartbeats import Heartbeats
from wfcore.worker._interceptors import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)
from wfcore.worker._thread_cancellation import ThreadCancellation

#: How long after its time limit an attempt that still runs is told, lest clocks differ.
LOCAL_TIMEOUT_BUFFER = timedelta(seconds=5)


class Attempt:
    """A running attempt, as the worker and the service's answers steer it.

    Attributes:
        heartbeat_error: why heartbeat details could not be sent; the attempt fails with it.
    """

    def __init__(
        self,
        *,
        definition: Definition,
        info: Info,
        payload_converter: PayloadConverter,
        client: Any,
        interceptors: Sequence[Interceptor],
        alarms: Alarms,
    ) -> None:
        self.definition = definition
        self.info = info
        self.heartbeat_error: Exception | None = None
        self.heartbeats: Heartbeats | None = None
        self._payload_converter = payload_converter
        self._interceptors = interceptors
        self._alarms = alarms
        self._task: asyncio.Task[Any] | None = None
        self._thread = ThreadCancellation()
        raises = not definition.is_async and not definition.no_thread_cancel_exception
        self.context = Context(
            info=lambda: self.info,
            heartbeat=self._heartbeat,
            payload_converter=payload_converter,
            shield=self._thread.shield if raises else None,
            client=client if definition.is_async else None,
        )

    @property
    def details(self) -> ActivityCancellationDetails | None:
        """Why the attempt was told to end, if it was."""
        return self.context.cancellation_details

    def cancel(self, details: ActivityCancellationDetails) -> None:
        """Tell the code to end; only the first reason counts."""
        if self.context.cancelled.is_set():
            return
        self.context.cancel(details)
        self._interrupt()

    def fail_heartbeats(self, error: Exception) -> None:
        """End the code, since its heartbeat details can't be sent."""
        self.heartbeat_error = error
        self.context.cancelled.set()
        self._interrupt()

    def _interrupt(self) -> None:
        if self.definition.is_async:
            shared_loop().call_soon_threadsafe(self._cancel_task)
        elif self.context.shield is not None:
            self._thread.cancel()

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel("Activity cancelled")

    def _heartbeat(self, *details: Any) -> None:
        if self.heartbeats is None:
            return
        payloads: Payloads | None = None
        if details:
            payloads = self._payload_converter.to_payloads_wrapper(details)
        self.heartbeats.record(payloads)

    def run(self, args: Sequence[Any], headers: Mapping[str, Payload]) -> Any:
        """Call the function and give its result, or raise what it raised."""
        alarm = self._local_timeout()
        try:
            if self.definition.is_async or self._interceptors:
                return self._run_on_loop(args, headers)
            with entered(self.context):
                return self._call_in_thread(self.definition.fn, args)
        finally:
            if alarm:
                alarm.cancel()

    def _local_timeout(self) -> Alarm | None:
        """The service ends an attempt that is late; its code hears of it from here.

        A local one is ended by the worker, which tells it too.
        """
        if self.info.is_local:
            return None
        limits = [
            limit
            for limit in (self.info.start_to_close_timeout, self._until_schedule_to_close())
            if limit
        ]
        if not limits:
            return None
        seconds = (min(limits) + LOCAL_TIMEOUT_BUFFER).total_seconds()
        return self._alarms.call_at(
            self._alarms.now() + seconds,
            lambda: self.cancel(ActivityCancellationDetails(timed_out=True)),
        )

    def _until_schedule_to_close(self) -> timedelta | None:
        limit = self.info.schedule_to_close_timeout
        return limit - (self.info.started_time - self.info.scheduled_time) if limit else None

    def _call_in_thread(self, fn: Callable[..., Any], args: Sequence[Any]) -> Any:
        return fn(*args) if self.context.shield is None else self._thread.call(fn, args)

    def _run_on_loop(self, args: Sequence[Any], headers: Mapping[str, Payload]) -> Any:
        calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        chain = self._chain(calls)
        execute = ExecuteActivityInput(
            fn=self.definition.fn, args=args, executor=None, headers=headers
        )
        outcome: Future[Any] = Future()
        outcome.add_done_callback(lambda _: calls.put(None))
        asyncio.run_coroutine_threadsafe(self._drive(chain, execute, outcome), shared_loop())
        while (call := calls.get()) is not None:
            call.make(self._call_in_thread)
        return outcome.result()

    async def _drive(
        self, chain: ActivityInboundInterceptor, execute: ExecuteActivityInput, outcome: Future[Any]
    ) -> None:
        """Run the chain; only its end gives the outcome, however often it is cancelled."""
        self._task = asyncio.current_task()
        if self.context.cancelled.is_set():
            self._cancel_task()
        try:
            with entered(self.context):
                result = await chain.execute_activity(execute)
        except BaseException as err:  # noqa: BLE001 - it is raised in the attempt's thread
            outcome.set_exception(err)
        else:
            outcome.set_result(result)

    def _chain(self, calls: queue.SimpleQueue[_Call | None]) -> ActivityInboundInterceptor:
        chain: ActivityInboundInterceptor = _Root(self, calls)
        for interceptor in reversed(self._interceptors):
            chain = interceptor.intercept_activity(chain)
        chain.init(_RootOutbound(self))
        return chain

    def use(self, outbound: ActivityOutboundInterceptor) -> None:
        """Let what the activity calls pass the interceptors."""
        self.context.info = outbound.info
        self.context.heartbeat = outbound.heartbeat

    def base_heartbeat(self, *details: Any) -> None:
        """A heartbeat behind all interceptors."""
        self._heartbeat(*details)


class _Call:
    """A function to be called in the attempt's thread, and who waits for its outcome."""

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any]) -> None:
        self._fn = fn
        self._args = args
        self._context = contextvars.copy_context()
        self.outcome: Future[Any] = Future()

    def make(self, call: Callable[[Callable[..., Any], Sequence[Any]], Any]) -> None:
        try:
            result = self._context.run(call, self._fn, self._args)
        except BaseException as err:  # noqa: BLE001 - it is raised where the call was ordered
            self.outcome.set_exception(err)
        else:
            self.outcome.set_result(result)


class _Root(ActivityInboundInterceptor):
    """Behind all interceptors: the function itself."""

    def __init__(self, attempt: Attempt, calls: queue.SimpleQueue[_Call | None]) -> None:
        self._attempt = attempt
        self._calls = calls

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._attempt.use(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - Temporal's name
        if self._attempt.definition.is_async:
            return await input.fn(*input.args)
        call = _Call(input.fn, input.args)
        self._calls.put(call)
        # A sync function is interrupted in its own thread; waiting for it is never given up.
        return await asyncio.wrap_future(call.outcome)


class _RootOutbound(ActivityOutboundInterceptor):
    """Behind all interceptors: the attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def info(self) -> Info:
        return self._attempt.info

    def heartbeat(self, *details: Any) -> None:
        self._attempt.base_heartbeat(*details)
