"""What activity code may ask for, inside an activity and outside of one."""

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wfcore import activity
from wfcore.activity import ActivityCancellationDetails, Context, Info, Signal
from wfcore.common import MetricMeter, Priority
from wfcore.converter import PayloadConverter
from wfcore.exceptions import CompleteAsyncError

NOW = datetime(2026, 1, 2, tzinfo=UTC)
INFO = Info(
    activity_id="7",
    activity_type="charge",
    attempt=2,
    current_attempt_scheduled_time=NOW,
    heartbeat_details=[3],
    heartbeat_timeout=None,
    is_local=False,
    namespace="default",
    schedule_to_close_timeout=None,
    scheduled_time=NOW,
    start_to_close_timeout=timedelta(seconds=5),
    started_time=NOW,
    task_queue="shop",
    task_token=b"token",
    workflow_id="order-1",
    workflow_namespace="default",
    workflow_run_id="run-1",
    workflow_type="Order",
    priority=Priority.default,
    retry_policy=None,
)


def _context(**fields: Any) -> Context:
    beats: list[tuple[Any, ...]] = fields.pop("beats", [])
    return Context(
        info=lambda: INFO,
        heartbeat=lambda *details: beats.append(details),
        payload_converter=PayloadConverter.default,
        **fields,
    )


@pytest.mark.parametrize(
    "ask",
    [
        activity.info,
        activity.heartbeat,
        activity.is_cancelled,
        activity.is_worker_shutdown,
        activity.cancellation_details,
        activity.payload_converter,
        activity.metric_meter,
        activity.client,
        activity.wait_for_cancelled_sync,
        activity.wait_for_worker_shutdown_sync,
        activity.shield_thread_cancel_exception,
    ],
    ids=lambda ask: ask.__name__,
)
def test_outside_of_an_activity_nothing_can_be_asked(ask: Callable[[], Any]) -> None:
    assert not activity.in_activity()
    with pytest.raises(RuntimeError, match="Not in activity context"):
        ask()


async def test_outside_of_an_activity_nothing_can_be_waited_for() -> None:
    with pytest.raises(RuntimeError, match="Not in activity context"):
        await activity.wait_for_cancelled()
    with pytest.raises(RuntimeError, match="Not in activity context"):
        await activity.wait_for_worker_shutdown()


def test_inside_of_an_activity_everything_is_there() -> None:
    beats: list[tuple[Any, ...]] = []
    with activity.entered(_context(beats=beats, client="the client")):
        assert activity.in_activity()
        assert activity.info() is INFO
        assert activity.info().in_workflow
        assert activity.client() == "the client"
        assert activity.payload_converter() is PayloadConverter.default
        assert activity.metric_meter() is MetricMeter.noop
        assert not activity.is_cancelled()
        assert not activity.is_worker_shutdown()
        assert activity.cancellation_details() is None
        activity.heartbeat(1, "a")
        with activity.shield_thread_cancel_exception():
            pass
    assert beats == [(1, "a")]
    assert not activity.in_activity()


def test_a_sync_activity_has_no_client() -> None:
    with activity.entered(_context()), pytest.raises(RuntimeError, match="No client available"):
        activity.client()


def test_the_first_reason_of_a_cancellation_stays() -> None:
    context = _context()
    with activity.entered(context):
        context.cancel(ActivityCancellationDetails(cancel_requested=True))
        context.cancel(ActivityCancellationDetails(paused=True))
        assert activity.is_cancelled()
        assert activity.cancellation_details() == ActivityCancellationDetails(cancel_requested=True)
        activity.wait_for_cancelled_sync(timedelta(seconds=10))


def test_waiting_ends_with_its_timeout() -> None:
    with activity.entered(_context()):
        activity.wait_for_cancelled_sync(0.001)
        activity.wait_for_worker_shutdown_sync(timedelta(milliseconds=1))
        assert not activity.is_cancelled()


def test_a_shield_is_the_workers() -> None:
    entered: list[str] = []

    @contextmanager
    def shield() -> Iterator[None]:
        entered.append("in")
        yield
        entered.append("out")

    with activity.entered(_context(shield=shield)), activity.shield_thread_cancel_exception():
        assert entered == ["in"]
    assert entered == ["in", "out"]


def test_a_copied_context_carries_the_activity_to_another_thread() -> None:
    seen: list[Any] = []
    with activity.entered(_context()):
        copied = contextvars.copy_context()
    thread = threading.Thread(target=lambda: seen.append(copied.run(activity.info)))
    thread.start()
    thread.join()
    assert seen == [INFO]


def test_completing_later_is_no_exception_that_code_would_catch() -> None:
    def careless() -> None:
        with contextlib.suppress(Exception):
            activity.raise_complete_async()

    with pytest.raises(CompleteAsyncError):
        careless()


# --- signals ---


async def test_a_signal_wakes_tasks_of_any_loop() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    threading.Thread(target=signal.set).start()
    await asyncio.gather(*waiting)
    await signal.wait()
    assert signal.is_set()
    assert signal.wait_sync(0)


async def test_who_gives_up_waiting_is_forgotten() -> None:
    signal = Signal()
    task = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    signal.set()


def test_a_loop_that_is_gone_does_no_harm() -> None:
    signal = Signal()
    loop = asyncio.new_event_loop()
    task = loop.create_task(signal.wait())
    loop.run_until_complete(asyncio.sleep(0, loop))
    task.cancel()
    signal.set()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


# --- logging ---

_DETAILS = {
    "activity_id": "7",
    "activity_type": "charge",
    "attempt": 2,
    "namespace": "default",
    "task_queue": "shop",
    "workflow_id": "order-1",
    "workflow_run_id": "run-1",
    "workflow_type": "Order",
}


def test_a_log_line_says_which_activity_it_is_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), activity.entered(_context()):
        activity.logger.info("charged", extra={"amount": 5})
    (record,) = caplog.records
    assert record.getMessage() == f"charged ({_DETAILS})"
    assert vars(record)["temporal_activity"] == _DETAILS
    assert vars(record)["amount"] == 5
    assert "activity_info" not in vars(record)


def test_what_a_log_line_says_can_be_chosen(caplog: pytest.LogCaptureFixture) -> None:
    logger = activity.LoggerAdapter(logging.getLogger("shop"), {"shop": "a"})
    logger.activity_info_on_message = False
    logger.activity_info_on_extra = False
    logger.full_activity_info_on_extra = True
    with caplog.at_level(logging.INFO), activity.entered(_context()):
        logger.info("charged")
    (record,) = caplog.records
    assert record.getMessage() == "charged"
    assert vars(record)["activity_info"] is INFO
    assert vars(record)["shop"] == "a"
    assert "temporal_activity" not in vars(record)
    assert logger.base_logger.name == "shop"


def test_outside_of_an_activity_a_log_line_stays_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        activity.logger.info("charged")
    assert caplog.records[0].getMessage() == "charged"
