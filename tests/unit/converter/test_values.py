"""Values to payloads and back; Temporal's own converter is the measure."""

from collections.abc import Callable
from typing import Any

import pytest
import temporalio.api.common.v1 as temporal_api
import temporalio.converter as temporal

from tests.unit.converter.values import QUOTED, READ, READ_FURTHER, REFUSED, WRITTEN, Line, Point
from wfcore.common import RawValue
from wfcore.converter import (
    AdvancedJSONEncoder,
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    JSONTypeConverter,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
    value_to_type,
)
from wfcore.protocol.payloads import Payload, Payloads

ours = PayloadConverter.default
theirs = temporal.PayloadConverter.default


def _json(data: bytes, **metadata: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", **metadata}, data=data)


# --- writing ---


@pytest.mark.filterwarnings("ignore:If you're using Pydantic")
@pytest.mark.parametrize("value", WRITTEN, ids=[repr(value)[:60] for value in WRITTEN])
def test_a_value_becomes_the_bytes_that_temporal_writes(value: Any) -> None:
    expected = theirs.to_payload(value)
    found = ours.to_payload(value)
    assert found.metadata == dict(expected.metadata)
    assert found.data == expected.data


@pytest.mark.parametrize("value", REFUSED, ids=[repr(value)[:60] for value in REFUSED])
def test_a_value_that_temporal_refuses_is_refused_in_the_same_words(value: Any) -> None:
    with pytest.raises(TypeError) as expected:
        theirs.to_payload(value)
    with pytest.raises(TypeError) as found:
        ours.to_payload(value)
    assert str(found.value) == str(expected.value)


def test_keys_are_sorted_and_nothing_is_spaced() -> None:
    assert ours.to_payload({"b": [1, 2], "a": None}).data == b'{"a":null,"b":[1,2]}'


def test_a_value_of_no_encoding_is_told_by_its_place() -> None:
    converter = CompositePayloadConverter(BinaryNullPayloadConverter())
    with pytest.raises(RuntimeError, match="index 1 of type <class 'int'> has no known converter"):
        converter.to_payloads([None, 5])


def test_a_raw_value_is_passed_as_it_is() -> None:
    payload = _json(b"1")
    assert ours.to_payloads([RawValue(payload), 2])[0] is payload
    assert ours.from_payload(payload, RawValue) == RawValue(payload)


# --- reading ---


def _outcome(convert: Callable[[Any, Any], Any], hint: Any, value: Any) -> tuple[Any, ...]:
    try:
        made = convert(hint, value)
    except Exception as err:  # noqa: BLE001 - whatever it is, the other must raise it too
        return ("raised", type(err), str(err), str(err.__cause__))
    return ("made", type(made), made)


@pytest.mark.parametrize(("hint", "value"), READ, ids=[f"{h}-{v}"[:80] for h, v in READ])
def test_a_hint_reads_a_value_as_temporal_does(hint: Any, value: Any) -> None:
    expected = _outcome(temporal.value_to_type, hint, value)
    assert _outcome(value_to_type, hint, value) == expected


@pytest.mark.parametrize(("hint", "value", "secret"), QUOTED)
def test_an_error_quotes_no_value(hint: Any, value: Any, secret: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - the kind is compared
        temporal.value_to_type(hint, value)
    with pytest.raises(type(theirs.value)) as found:
        value_to_type(hint, value)
    error: BaseException | None = found.value
    while error is not None:
        assert secret not in str(error)
        assert error.__cause__ is not None or error.__suppress_context__ or not error.__context__
        error = error.__cause__


@pytest.mark.parametrize(("hint", "value", "expected"), READ_FURTHER)
def test_further_hints_are_understood(hint: Any, value: Any, expected: Any) -> None:
    made = value_to_type(hint, value)
    assert (type(made), made) == (type(expected), expected)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (Point, [1, None, 3], "only expecting 2 values, got 3"),
        (Point, {"x": 1}, "Expected .*Point.*, value was <class 'dict'>"),
        (Point, ["a"], "index 0"),
    ],
)
def test_a_named_tuple_must_fit(hint: Any, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        value_to_type(hint, value)


def test_hints_may_be_fewer_than_payloads() -> None:
    payloads = ours.to_payloads([{"sku": "a"}, {"sku": "b"}])
    assert ours.from_payloads(payloads, [Line]) == [Line("a"), {"sku": "b"}]
    assert ours.from_payloads(payloads, [None, Line]) == [{"sku": "a"}, Line("b")]


@pytest.mark.parametrize(
    ("payload", "hint"),
    [
        (_json(b"{"), None),
        (Payload(metadata={"encoding": b"x/y"}), None),
        (Payload(), None),
        (Payload(metadata={"encoding": b"binary/null"}, data=b"x"), None),
        (_json(b"1"), str),
        (Payload(metadata={"encoding": b"json/protobuf"}, data=b"{}"), None),
    ],
)
def test_a_payload_that_can_not_be_read_is_told_as_temporal_tells_it(
    payload: Payload, hint: Any
) -> None:
    proto = temporal_api.Payload(metadata=payload.metadata, data=payload.data)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - the kind is compared
        theirs.from_payload(proto, hint)
    with pytest.raises(type(expected.value)) as found:
        ours.from_payload(payload, hint)
    assert str(found.value) == str(expected.value)


def test_bytes_that_are_no_text_are_malformed() -> None:
    with pytest.raises(RuntimeError, match="index 0 with encoding json/plain") as found:
        ours.from_payload(_json(b"\xff"))
    assert str(found.value.__cause__) == "Failed parsing"


def test_no_message_has_no_values() -> None:
    assert ours.from_payloads_wrapper(None) == []
    assert ours.from_payloads_wrapper(Payloads()) == []
    assert ours.from_payloads_wrapper(ours.to_payloads_wrapper([1, "a"])) == [1, "a"]


# --- hooks ---


class _Upper(JSONTypeConverter):
    def to_typed_value(self, hint: Any, value: Any) -> Any:
        return value.upper() if hint is str else JSONTypeConverter.Unhandled


def test_a_type_hook_comes_first_and_reaches_inside() -> None:
    converter = CompositePayloadConverter(
        JSONPlainPayloadConverter(custom_type_converters=[_Upper()])
    )
    assert converter.from_payload(_json(b'["a"]'), list[str]) == ["A"]
    assert converter.from_payload(_json(b"1"), int) == 1


class _Encoder(AdvancedJSONEncoder):
    def default(self, o: Any) -> Any:
        return "complex" if isinstance(o, complex) else super().default(o)


def test_an_encoder_adds_types() -> None:
    converter = JSONPlainPayloadConverter(encoder=_Encoder, encoding="json/mine")
    payload = converter.to_payload([1j, Line("a")])
    assert payload is not None
    assert payload.data == b'["complex",{"count":1,"next":null,"sku":"a"}]'
    assert payload.metadata == {"encoding": b"json/mine"}


class _Marked(EncodingPayloadConverter, WithSerializationContext):
    """Writes down for which workflow it works."""

    def __init__(self, workflow_id: str = "") -> None:
        self.workflow_id = workflow_id

    @property
    def encoding(self) -> str:
        return "test/marked"

    def with_context(self, context: SerializationContext) -> "_Marked":
        assert isinstance(context, WorkflowSerializationContext)
        return _Marked(context.workflow_id)

    def to_payload(self, value: Any) -> Payload | None:
        return Payload(metadata={"encoding": b"test/marked"}, data=self.workflow_id.encode())

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        return payload.data


def test_the_context_reaches_the_parts_that_ask_for_it() -> None:
    context = WorkflowSerializationContext(namespace="default", workflow_id="order-1")
    converter = CompositePayloadConverter(BinaryNullPayloadConverter(), _Marked())
    assert converter.with_context(context).to_payload(5).data == b"order-1"
    assert converter.to_payload(5).data == b""


def test_a_converter_without_such_parts_stays_itself() -> None:
    context = WorkflowSerializationContext(namespace="default", workflow_id="order-1")
    converter = DefaultPayloadConverter()
    assert converter.with_context(context) is converter


def test_a_protobuf_message_is_written_and_read_as_temporal_does() -> None:
    message = temporal_api.WorkflowExecution(workflow_id="w", run_id="r")
    expected = theirs.to_payload(message)
    payload = ours.to_payload(message)
    assert payload.metadata == dict(expected.metadata)
    assert payload.data == expected.data
    assert ours.from_payload(payload) == message
    assert ours.from_payload(payload, temporal_api.WorkflowExecution) == message


def test_a_binary_protobuf_message_survives() -> None:
    message = temporal_api.WorkflowExecution(workflow_id="w")
    converter = DefaultPayloadConverter().converters[b"binary/protobuf"]
    payload = converter.to_payload(message)
    assert payload is not None
    assert ours.from_payload(payload) == message
