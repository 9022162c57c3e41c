"""User data to payloads and back: converters, codecs, failures."""

from wfcore.converter._codecs import PayloadCodec, decode_message, encode_message
from wfcore.converter._data_converter import DataConverter, default
from wfcore.converter._encodings import (
    AdvancedJSONEncoder,
    BinaryNullPayloadConverter,
    BinaryPlainPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
)
from wfcore.converter._failures import (
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    FailureConverter,
)
from wfcore.converter._payload_converters import (
    CompositePayloadConverter,
    DefaultPayloadConverter,
    PayloadConverter,
)
from wfcore.converter._policies import (
    priority_from_protocol,
    priority_to_protocol,
    retry_policy_to_protocol,
    versioning_override_to_protocol,
)
from wfcore.converter._protobuf import BinaryProtoPayloadConverter, JSONProtoPayloadConverter
from wfcore.converter._search_attributes import (
    decode_search_attributes,
    decode_typed_search_attributes,
    encode_search_attribute_updates,
    encode_search_attribute_values,
    encode_search_attributes,
    encode_typed_search_attribute_value,
)
from wfcore.converter._serialization_context import (
    ActivitySerializationContext,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from wfcore.converter._typed_values import (
    JSONTypeConverter,
    JSONTypeConverterUnhandled,
    value_to_type,
)

__all__ = [
    "ActivitySerializationContext",
    "AdvancedJSONEncoder",
    "BinaryNullPayloadConverter",
    "BinaryPlainPayloadConverter",
    "BinaryProtoPayloadConverter",
    "CompositePayloadConverter",
    "DataConverter",
    "DefaultFailureConverter",
    "DefaultFailureConverterWithEncodedAttributes",
    "DefaultPayloadConverter",
    "EncodingPayloadConverter",
    "FailureConverter",
    "JSONPlainPayloadConverter",
    "JSONProtoPayloadConverter",
    "JSONTypeConverter",
    "JSONTypeConverterUnhandled",
    "PayloadCodec",
    "PayloadConverter",
    "SerializationContext",
    "WithSerializationContext",
    "WorkflowSerializationContext",
    "decode_message",
    "decode_search_attributes",
    "decode_typed_search_attributes",
    "default",
    "encode_message",
    "encode_search_attribute_updates",
    "encode_search_attribute_values",
    "encode_search_attributes",
    "encode_typed_search_attribute_value",
    "priority_from_protocol",
    "priority_to_protocol",
    "retry_policy_to_protocol",
    "value_to_type",
    "versioning_override_to_protocol",
]
