"""How calls are made: in threads, repeated in an outage, or in the caller's thread."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.unit.client.world import QUEUE, World
from wfcore.client import Client, InlineCalls, ThreadCalls, run_inline
from wfcore.converter import DataConverter, PayloadCodec
from wfcore.exceptions import (
    DeadlineExceededError,
    NotFoundError,
    UnavailableError,
    WaitInsideTransactionError,
)
from wfcore.protocol.payloads import Payload


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    yield_once = asyncio.sleep

    async def sleep(seconds: float) -> None:
        made.append(seconds)
        await yield_once(0)

    monkeypatch.setattr("wfcore.client._calls.asyncio.sleep", sleep)
    return made


@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_is_made_in_another_thread(waits: bool) -> None:
    main = threading.get_ident()
    found = await ThreadCalls().make(lambda _: threading.get_ident(), None, waits=waits)
    assert found != main


@pytest.mark.parametrize("waits", [False, True])
async def test_an_outage_is_waited_out(waits: bool, pauses: list[float]) -> None:
    answers: list[object] = [UnavailableError("down"), UnavailableError("down"), "there"]

    def method(request: str) -> object:
        assert request == "request"
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await ThreadCalls().make(method, "request", waits=waits) == "there"
    assert pauses == [0.1, pytest.approx(0.15)]


async def test_other_errors_are_not_repeated() -> None:
    calls: list[None] = []

    def method(request: None) -> None:
        calls.append(request)
        raise NotFoundError("nobody")

    with pytest.raises(NotFoundError):
        await ThreadCalls().make(method, None)
    assert len(calls) == 1


@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_may_have_a_limit(waits: bool) -> None:
    release = threading.Event()
    with pytest.raises(DeadlineExceededError, match="Timeout expired"):
        await ThreadCalls().make(
            lambda _: release.wait(10), None, waits=waits, time_limit=timedelta(milliseconds=20)
        )
    release.set()


# --- inline ---


class _Rot1(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data.upper()) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data.lower()) for p in payloads]


class _Slow(_Rot1):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        await asyncio.sleep(0)
        return list(payloads)


def _inline(world: World, **options: object) -> Client:
    return Client(world.service, calls=InlineCalls(), **options)  # type: ignore[arg-type]


def test_synchronous_code_starts_without_a_loop() -> None:
    world = World()
    client = _inline(world)
    handle = run_inline(client.start_workflow("Order", 1, id="o", task_queue=QUEUE))
    assert run_inline(handle.describe()).id == "o"


def test_a_start_joins_the_transaction_of_its_thread() -> None:
    world = World()
    client = _inline(world)

    def start_and_roll_back() -> None:
        with world.store.callers_transaction():
            run_inline(client.start_workflow("Order", id="o", task_queue=QUEUE))
            raise LookupError

    with pytest.raises(LookupError):
        start_and_roll_back()
    with pytest.raises(NotFoundError):
        run_inline(client.get_workflow_handle("o").describe())
    with world.store.callers_transaction():
        handle = run_inline(client.start_workflow("Order", id="o", task_queue=QUEUE))
    assert run_inline(handle.describe()).id == "o"


def test_waiting_inside_a_transaction_is_refused() -> None:
    world = World()
    client = _inline(world)
    handle = run_inline(client.start_workflow("Order", id="o", task_queue=QUEUE))
    with world.store.callers_transaction(), pytest.raises(WaitInsideTransactionError):
        run_inline(handle.result())


def test_a_codec_that_only_computes_needs_no_loop() -> None:
    world = World()
    codec = DataConverter(payload_codec=_Rot1())
    client = _inline(world, data_converter=codec)
    handle = run_inline(client.start_workflow("Order", "abc", id="o", task_queue=QUEUE))
    history = run_inline(handle.fetch_history())
    assert history.events[0].attributes.input.payloads[0].data == b'"ABC"'  # type: ignore[attr-defined]


def test_a_codec_that_waits_needs_one() -> None:
    world = World()
    client = _inline(world, data_converter=DataConverter(payload_codec=_Slow()))
    with pytest.raises(RuntimeError, match="await the asynchronous client"):
        run_inline(client.start_workflow("Order", "abc", id="o", task_queue=QUEUE))
