"""Recorded histories against code of today."""

import dataclasses
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.worker.world import QUEUE, World
from wfcore import activity, workflow
from wfcore.client import WorkflowHistory
from wfcore.converter import DataConverter, PayloadCodec
from wfcore.exceptions import HistoryMismatchError, MalformedHistoryError, NondeterminismError
from wfcore.protocol.payloads import Payload
from wfcore.worker import Replayer, UnsandboxedWorkflowRunner

SECONDS = timedelta(seconds=10)


@activity.defn
def charge(amount: int) -> int:
    return amount * 2


@workflow.defn
class Order:
    @workflow.run
    async def run(self, amount: int) -> int:
        return await workflow.execute_activity(charge, amount, start_to_close_timeout=SECONDS)


@workflow.defn(name="Order")
class ChangedOrder:
    @workflow.run
    async def run(self, amount: int) -> int:
        await workflow.sleep(1)
        return amount


@workflow.defn(name="Order")
class BuggyOrder:
    @workflow.run
    async def run(self, amount: int) -> int:
        raise ZeroDivisionError(amount)


@workflow.defn(name="Order")
class HangingOrder:
    @workflow.run
    async def run(self, amount: int) -> int:
        while True:
            amount += 1


async def _history(number: int = 1, converter: DataConverter = DataConverter.default) -> Any:
    world = World([Order], [charge], data_converter=converter)
    handle = await world.client.start_workflow(
        Order.run, number, id=f"order-{number}", task_queue=QUEUE
    )
    world.settle()
    return await handle.fetch_history()


async def test_unchanged_code_agrees() -> None:
    history = await _history()
    result = await Replayer(workflows=[Order]).replay_workflow(history)
    assert result.replay_failure is None
    assert result.history is history


async def test_a_history_from_a_file_is_replayed() -> None:
    text = (await _history()).to_json()
    await Replayer(workflows=[Order]).replay_workflow(WorkflowHistory.from_json("order-1", text))


async def test_changed_code_is_found_out() -> None:
    history = await _history()
    replayer = Replayer(workflows=[ChangedOrder])
    with pytest.raises(NondeterminismError) as found:
        await replayer.replay_workflow(history)
    assert isinstance(found.value, HistoryMismatchError)
    assert found.value.event_id == 5
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    assert isinstance(result.replay_failure, NondeterminismError)


async def test_code_that_fails_is_told_with_its_error() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: 1") as found:
        await Replayer(workflows=[BuggyOrder]).replay_workflow(await _history())
    assert isinstance(found.value.__cause__, ZeroDivisionError)


async def test_code_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfcore.worker._replayer.DEADLOCK_TIMEOUT", timedelta(milliseconds=50))
    with pytest.raises(RuntimeError, match="Potential deadlock detected"):
        await Replayer(workflows=[HangingOrder]).replay_workflow(await _history())


async def test_an_unknown_workflow_is_told() -> None:
    @workflow.defn
    class Other:
        @workflow.run
        async def run(self) -> None:
            pass

    with pytest.raises(RuntimeError, match=r"Order is not registered.*available workflows: Other"):
        await Replayer(workflows=[Other]).replay_workflow(await _history())


async def test_what_is_no_whole_history_is_told() -> None:
    history = await _history()
    cut = WorkflowHistory("order-1", history.events[2:])
    with pytest.raises(RuntimeError, match="begins with WORKFLOW_EXECUTION_STARTED"):
        await Replayer(workflows=[Order]).replay_workflow(cut)
    gap = WorkflowHistory("order-1", [*history.events[:2], *history.events[3:]])
    with pytest.raises(MalformedHistoryError):
        await Replayer(workflows=[Order]).replay_workflow(gap)


async def _several() -> AsyncIterator[WorkflowHistory]:
    for number in range(1, 4):
        yield await _history(number)


async def test_several_histories_give_their_failures_by_run() -> None:
    fine = await Replayer(workflows=[Order]).replay_workflows(_several())
    assert fine.replay_failures == {}
    replayer = Replayer(workflows=[ChangedOrder])
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflows(_several())
    failures = await replayer.replay_workflows(_one(), raise_on_replay_failure=False)
    ((run_id, failure),) = failures.replay_failures.items()
    assert run_id
    assert isinstance(failure, NondeterminismError)


async def _one() -> AsyncIterator[WorkflowHistory]:
    yield await _history()


async def test_results_can_be_taken_one_by_one() -> None:
    async with Replayer(workflows=[Order]).workflow_replay_iterator(_several()) as results:
        found = [result.history.workflow_id async for result in results]
    assert found == ["order-1", "order-2", "order-3"]


class Reverse(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data[::-1]) for p in payloads]

    decode = encode


async def test_a_codec_is_undone_first() -> None:
    converter = dataclasses.replace(DataConverter.default, payload_codec=Reverse())
    history = await _history(123, converter)
    assert history.events[0].attributes.input.payloads[0].data == b"321"
    await Replayer(workflows=[Order], data_converter=converter).replay_workflow(history)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workflows": []}, ValueError, "At least one workflow"),
        ({"workflows": [Order], "nonsense": 1}, TypeError, "unknown settings: nonsense"),
        ({"workflows": [Order], "plugins": [1]}, ValueError, "plugins are not supported"),
    ],
)
def test_a_bad_option_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Replayer(**options)


def test_settings_make_another_replayer() -> None:
    replayer = Replayer(workflows=[Order], runtime=None, namespace="n")
    config = replayer.config()
    assert config["namespace"] == "n"
    again = Replayer(**{**config, "workflow_runner": UnsandboxedWorkflowRunner()})
    assert again.config()["workflow_runner"].guarded is False
