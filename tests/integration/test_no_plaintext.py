"""With a codec no user data stands readable in the database or in our logs; neither do failures, if
the failure converter encodes what they say.
"""

import base64
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps

from wfapp import conf, wiring
from wfapp.client import get_client
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.testing import WorkflowEnvironment
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError
from wfcore.common import RetryPolicy
from wfcore.converter import (
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
)
from wfcore.exceptions import ApplicationError
from wfcore.protocol.payloads import Payload

SECRET = "PIN-4711-of-Ada"
_KEY = 0x5A


class Scrambler(PayloadCodec):
    """No encryption, but nothing that one could read."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"binary/scrambled", "was": payload.metadata["encoding"]},
                data=bytes(byte ^ _KEY for byte in payload.data),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": payload.metadata["was"]},
                data=bytes(byte ^ _KEY for byte in payload.data),
            )
            if payload.metadata["encoding"] == b"binary/scrambled"
            else payload
            for payload in payloads
        ]


converter = dataclasses.replace(
    DataConverter.default, failure_converter_class=DefaultFailureConverterWithEncodedAttributes
)


@activity.defn
def fails_first(text: str) -> str:
    activity.heartbeat(text)
    if activity.info().attempt == 1:
        raise ApplicationError(text, text, type="First")
    assert activity.info().heartbeat_details == [SECRET]
    return text


@activity.defn
def counts(number: int) -> int:
    return number


@workflow.defn
class Keeps:
    """Has the secret everywhere."""

    def __init__(self) -> None:
        self.signalled = ""

    @workflow.run
    async def run(self, text: str) -> str:
        workflow.upsert_memo({"later": text})
        await workflow.wait_condition(lambda: bool(self.signalled))
        found = await workflow.execute_activity(
            fails_first, text, start_to_close_timeout=timedelta(seconds=10)
        )
        try:
            await workflow.execute_activity(
                "counts",
                text,
                start_to_close_timeout=timedelta(seconds=10),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        except Exception as error:
            raise ApplicationError(found, self.signalled) from error
        return found

    @workflow.signal
    def tell(self, text: str) -> None:
        self.signalled = text

    @workflow.query
    def told(self, text: str) -> str:
        return text + self.signalled


@pytest.fixture
def environment(db: None, settings: Any) -> Iterator[WorkflowEnvironment]:
    settings.WORKFLOWS = {
        "DATA_CONVERTER": f"{__name__}.converter",
        "PAYLOAD_CODEC": f"{__name__}.Scrambler",
    }
    conf.config.cache_clear()
    wiring.reset()
    registry = ProjectRegistry(wiring.get_celery_app())
    registry.add_workflow(Keeps)
    registry.add_activity(fails_first)
    registry.add_activity(counts)
    with wiring.replaced(registry=registry), WorkflowEnvironment() as environment:
        yield environment
    wiring.reset()


def readable(data: bytes) -> bool:
    """Whether the secret stands in the bytes, plain or within base64."""
    secret = SECRET.encode()
    forms = [secret]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret)
        forms.append(encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4])
    return any(form in data for form in forms)


def test_the_measure_itself() -> None:
    assert readable(SECRET.encode())
    for shift in range(3):
        assert readable(base64.b64encode(b"x" * shift + SECRET.encode() + b"y"))
    assert not readable(bytes(byte ^ _KEY for byte in SECRET.encode()))


def test_no_user_data_can_be_read(
    environment: WorkflowEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    client = get_client()
    with caplog.at_level(logging.DEBUG):
        handle = client.start_workflow(
            Keeps.run, SECRET, memo={"first": SECRET}, static_summary=SECRET
        )
        environment.run_until_idle()
        handle.signal(Keeps.tell, SECRET)
        with pytest.raises(WorkflowFailureError) as caught:
            handle.result()
        assert handle.query(Keeps.told, SECRET) == SECRET * 2
    failed = caught.value.cause
    assert isinstance(failed, ApplicationError)
    assert (failed.message, list(failed.details)) == (SECRET, [SECRET])
    wrong = failed.cause.cause  # type: ignore[union-attr]  # the activity's error has one
    assert wrong.message == "Failed decoding arguments"

    for model in apps.get_app_config("wfapp").get_models():
        for row in model._default_manager.values_list():
            for value in row:
                data = (
                    bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                )
                assert not readable(data), (model.__name__, row)
    # What the code's own error says is logged as it is: of our lines none quotes user data.
    ours = [record for record in caplog.records if record.name.startswith(("wfcore", "wfapp"))]
    assert ours
    for record in ours:
        assert SECRET not in record.getMessage()
