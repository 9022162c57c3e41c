"""Transactional activities: what they write stands if and only if they are done."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from wfapp import wiring
from wfapp.client import get_client
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.dispatch.transactional import transactional_activity
from wfapp.models import AuditEntry
from wfapp.testing import WorkflowEnvironment
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError
from wfcore.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)
from wfcore.protocol import events as ev
from wfcore.protocol.payloads import Payload


@activity.defn
@transactional_activity
def books(size: int) -> str:
    AuditEntry.objects.create(at=0, actor="books", action="book", namespace="default")
    return "x" * size


@workflow.defn
class Books:
    @workflow.run
    async def run(self, size: int) -> int:
        return len(
            await workflow.execute_activity(
                books, size, start_to_close_timeout=timedelta(minutes=1)
            )
        )


class Marking(PayloadCodec, WithSerializationContext):
    """Writes beside each payload of an activity which one it belongs to."""

    def __init__(self, context: SerializationContext | None = None) -> None:
        self._context = context

    def with_context(self, context: SerializationContext) -> "Marking":
        return Marking(context)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        name = getattr(self._context, "activity_type", "") or ""
        if not isinstance(self._context, ActivitySerializationContext):
            return list(payloads)
        return [
            Payload(metadata={**each.metadata, "of": name.encode()}, data=each.data)
            for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


@pytest.fixture
def environment(db: None, settings: Any) -> Iterator[WorkflowEnvironment]:
    settings.WORKFLOWS = {"PAYLOAD_CODEC": f"{__name__}.Marking"}
    registry = ProjectRegistry(wiring.get_celery_app())
    registry.add_workflow(Books)
    registry.add_activity(books)
    with wiring.replaced(registry=registry), WorkflowEnvironment() as environment:
        yield environment


def test_the_result_passes_the_codec_in_the_activitys_context(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(Books.run, 3)
    assert handle.result() == 3
    completed: Any = next(
        event.attributes
        for event in handle.fetch_history().events
        if isinstance(event.attributes, ev.ActivityTaskCompleted)
    )
    assert completed.result.payloads[0].metadata["of"] == b"books"
    assert AuditEntry.objects.filter(actor="books").count() == 1


def test_a_result_that_is_too_big_undoes_what_was_written(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(Books.run, 2 * 1024 * 1024 + 1)
    with pytest.raises(WorkflowFailureError) as caught:
        handle.result()
    reason: Any = caught.value.cause.cause  # type: ignore[union-attr]  # the activity's error has one
    assert (reason.type, reason.non_retryable) == ("PayloadTooLargeError", True)
    assert "Store the data elsewhere" in reason.message
    assert AuditEntry.objects.filter(actor="books").count() == 0
