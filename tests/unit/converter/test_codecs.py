"""Codecs see all user data, and nothing else, on its way in and out."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from wfcore.common import SearchAttributeKey
from wfcore.converter import (
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
    decode_message,
    encode_message,
    encode_search_attribute_updates,
)
from wfcore.exceptions import ApplicationError
from wfcore.protocol.commands import (
    CompleteWorkflowExecution,
    ModifyWorkflowProperties,
    RecordMarker,
    ScheduleActivityTask,
    StartChildWorkflowExecution,
    UpsertWorkflowSearchAttributes,
)
from wfcore.protocol.payloads import Header, Memo, Payload, Payloads
from wfcore.protocol.rpc.workflow_tasks import RespondWorkflowTaskCompletedRequest


class Reverse(PayloadCodec):
    """Writes bytes backwards."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"test/reversed", "was": p.metadata["encoding"]},
                data=p.data[::-1],
            )
            for p in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": p.metadata["was"]}, data=p.data[::-1])
            if "was" in p.metadata
            else p
            for p in payloads
        ]


CONVERTER = dataclasses.replace(DataConverter.default, payload_codec=Reverse())


def _payloads(*values: Any) -> Payloads:
    return DataConverter.default.payload_converter.to_payloads_wrapper(values)


async def test_values_pass_the_codec_both_ways() -> None:
    (payload,) = await CONVERTER.encode(["abc"])
    assert payload.data == b'"cba"'
    assert payload.metadata["encoding"] == b"test/reversed"
    assert await CONVERTER.decode([payload], [str]) == ["abc"]
    assert await CONVERTER.decode_wrapper(await CONVERTER.encode_wrapper([1, "ab"])) == [1, "ab"]
    assert await CONVERTER.decode_wrapper(None) == []


async def test_a_payload_that_was_not_encoded_is_read_too() -> None:
    assert await CONVERTER.decode(_payloads("abc").payloads) == ["abc"]


async def test_the_failures_details_pass_the_codec() -> None:
    inner = ApplicationError("inner", "abc", type="T")
    outer = ApplicationError("outer", type="T")
    outer.__cause__ = inner
    failure = await CONVERTER.encode_failure(outer)
    assert failure.message == "outer"
    assert failure.cause is not None
    assert failure.cause.application_failure_info is not None
    assert failure.cause.application_failure_info.details is not None
    assert failure.cause.application_failure_info.details.payloads[0].data == b'"cba"'
    error = await CONVERTER.decode_failure(failure)
    assert isinstance(error.__cause__, ApplicationError)
    assert list(error.__cause__.details) == ["abc"]


@pytest.mark.parametrize(
    "message",
    [
        ScheduleActivityTask(activity_id="1", input=_payloads("abc", 12)),
        CompleteWorkflowExecution(result=_payloads("abc")),
        ModifyWorkflowProperties(upserted_memo=Memo(fields={"a": _payloads("abc").payloads[0]})),
        StartChildWorkflowExecution(
            input=_payloads("abc"), memo=Memo(fields={"a": _payloads("abc").payloads[0]})
        ),
        RecordMarker(marker_name="core_local_activity", details={"result": _payloads("abc")}),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_the_user_data_of_a_message_passes_the_codec(message: Any) -> None:
    encoded = await encode_message(Reverse(), message)
    assert encoded != message
    assert b'"abc"' not in str(encoded).encode()
    assert await decode_message(Reverse(), encoded) == message


@pytest.mark.parametrize(
    "message",
    [
        UpsertWorkflowSearchAttributes(
            search_attributes=encode_search_attribute_updates(
                [SearchAttributeKey.for_keyword("Colour").value_set("red")]
            )
        ),
        RecordMarker(marker_name="core_patch", details={"patch-data": _payloads({"id": "p"})}),
        RecordMarker(marker_name="core_local_activity", details={"data": _payloads({"seq": 1})}),
        ScheduleActivityTask(header=Header(fields={"trace": _payloads("abc").payloads[0]})),
        ScheduleActivityTask(activity_id="1"),
    ],
    ids=["search attributes", "patch", "local activity", "header", "nothing"],
)
async def test_what_the_engine_reads_stays_as_it_is(message: Any) -> None:
    assert await encode_message(Reverse(), message) == message


async def test_headers_pass_the_codec_when_asked_for() -> None:
    message = ScheduleActivityTask(header=Header(fields={"trace": _payloads("abc").payloads[0]}))
    encoded = await encode_message(Reverse(), message, headers=True)
    assert encoded.header is not None
    assert encoded.header.fields["trace"].data == b'"cba"'


async def test_lists_of_messages_are_reached() -> None:
    from wfcore.protocol.commands import Command
    from wfcore.protocol.enums import CommandType

    command = Command(
        command_type=CommandType.COMPLETE_WORKFLOW_EXECUTION,
        attributes=CompleteWorkflowExecution(result=_payloads("abc")),
    )
    request = RespondWorkflowTaskCompletedRequest(task_token=b"abc", commands=(command,))
    encoded = await CONVERTER.encode_message(request)
    assert encoded.task_token == b"abc"
    assert encoded != request
    assert await CONVERTER.decode_message(encoded) == request
    assert await DataConverter.default.encode_message(request) is request


async def test_a_memo_is_read_whole_or_by_key() -> None:
    memo = await CONVERTER.encode_memo({"owner": "ann", "count": 3})
    assert await CONVERTER.decode_memo(memo) == {"owner": "ann", "count": 3}
    assert await CONVERTER.decode_memo(None) == {}
    assert await CONVERTER.decode_memo_field(memo, "owner", type_hint=str) == "ann"
    assert await CONVERTER.decode_memo_field(memo, "missing", None) is None
    with pytest.raises(KeyError, match="missing"):
        await CONVERTER.decode_memo_field(memo, "missing")


class PerWorkflow(Reverse, WithSerializationContext):
    """A codec with a key for each workflow."""

    def __init__(self, key: str = "") -> None:
        self.key = key

    def with_context(self, context: SerializationContext) -> "PerWorkflow":
        assert isinstance(context, WorkflowSerializationContext)
        return PerWorkflow(context.workflow_id)


def test_the_context_reaches_the_codec() -> None:
    context = WorkflowSerializationContext(namespace="default", workflow_id="order-1")
    converter = dataclasses.replace(DataConverter.default, payload_codec=PerWorkflow())
    changed = converter.with_context(context)
    assert isinstance(changed.payload_codec, PerWorkflow)
    assert changed.payload_codec.key == "order-1"
    assert changed.payload_converter is converter.payload_converter
    assert DataConverter.default.with_context(context) is DataConverter.default
