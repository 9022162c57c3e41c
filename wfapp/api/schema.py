"""The OpenAPI description of the API, made from the very types that requests are read by."""

import types
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter

from wfapp.api.operations import Operation
from wfcore.protocol.common import FieldMask
from wfcore.protocol.enums import WireEnum
from wfcore.protocol.events import ATTRIBUTES, HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "string", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "byte"},
    timedelta: {"type": "string", "pattern": r"^-?\d+(\.\d{1,9})?s$"},
    datetime: {"type": "string", "format": "date-time"},
    FieldMask: {
        "type": "string",
        "description": "Names of fields: startToCloseTimeout,retryPolicy.maximumAttempts",
    },
}
_INT32 = {"type": "integer", "format": "int32"}
_USER_DATA: dict[Any, dict[str, Any]] = {
    Payload: {
        "description": "A value of JSON, or a payload: an object with metadata and data in base64."
    },
    Payloads: {
        "description": (
            "A list of values or payloads. With the content type "
            "application/json+no-payload-shorthand an object with payloads in it."
        ),
        "type": "array",
        "items": {},
    },
}
_ERROR = {
    "type": "object",
    "properties": {
        "code": {"type": "integer", "description": "The gRPC code."},
        "message": {"type": "string"},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"@type": {"type": "string"}},
                "additionalProperties": {},
            },
        },
    },
    "required": ["code", "message"],
}
_FLAGS = {
    "pretty": "Indent the answer; the value doesn't matter.",
    "noPayloadShorthand": "Write user data as payloads; the value doesn't matter.",
}


class OperationSchema(AutoSchema):
    """Describes an `Operation` of an `RpcView`."""

    @property
    def _operation(self) -> Operation:
        view: Any = self.view
        found: Operation = view.operations[self.method]
        return found

    def get_operation_id(self) -> str:
        return self._operation.name

    def get_summary(self) -> str:
        return self._operation.summary

    def get_description(self) -> str:  # type: ignore[override]  # as in AutoSchema
        needed = ", ".join(self._operation.permissions)
        return f"{self._operation.summary} Needs {needed}."

    def get_tags(self) -> list[str]:
        if any(word in self.path for word in ("activity", "activities")):
            return ["activities"]
        return ["workflows" if "workflow" in self.path else "system"]

    def get_filter_backends(self) -> list[Any]:
        return []

    def map_parsers(self) -> list[Any]:
        return ["application/json"]

    def get_request_serializer(self) -> Any:
        if self.method != "POST":
            return None
        return {"application/json": self._schema(self._operation.request)}

    def get_response_serializers(self) -> Any:
        error = self._component("ErrorAnswer", _ERROR, _ERROR)
        return {"200": self._schema(self._operation.response), "default": error}

    def get_override_parameters(self) -> list[Any]:
        if self.method == "POST":
            return []
        taken = set(self._operation.path_fields.values())
        return [
            OpenApiParameter(name=name, type=schema, location=OpenApiParameter.QUERY)
            for path, name, schema in self._query_fields(self._operation.request)
            if path not in taken
        ] + [
            OpenApiParameter(name=name, description=text, location=OpenApiParameter.QUERY)
            for name, text in _FLAGS.items()
        ]

    def _query_fields(
        self, kind: type[Message], path: tuple[str, ...] = (), prefix: str = ""
    ) -> Iterator[tuple[tuple[str, ...], str, dict[str, Any]]]:
        for field, hint in _fields(kind):
            here, name = (*path, field.name), prefix + field.encode_name
            if isinstance(hint, type) and issubclass(hint, Message):
                yield from self._query_fields(hint, here, f"{name}.")
            elif get_origin(hint) is not dict:
                yield here, name, self._schema(hint)

    # ---- types to schemas

    def _schema(self, hint: Any) -> dict[str, Any]:
        origin = get_origin(hint)
        if origin is Annotated:
            return dict(_INT32)
        if origin is tuple:
            return {"type": "array", "items": self._schema(_plain(get_args(hint)[0]))}
        if origin is dict:
            values = self._schema(_plain(get_args(hint)[1]))
            return {"type": "object", "additionalProperties": values}
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
        if hint in _USER_DATA:
            return self._component(hint.__name__, hint, _USER_DATA[hint])
        if issubclass(hint, WireEnum):
            names = [member.wire_name for member in hint]
            return self._component(hint.__name__, hint, {"type": "string", "enum": names})
        return self._message(hint)

    def _message(self, kind: type[Message]) -> dict[str, Any]:
        component = _resolved(kind.__name__, kind, {})
        if component not in self.registry:
            schema: dict[str, Any] = {"type": "object", "properties": {}}
            component.schema = schema
            self.registry.register(component)  # first, since messages hold themselves
            for field, hint in _fields(kind):
                if (kind, field.name) != (HistoryEvent, "attributes"):
                    schema["properties"][field.encode_name] = self._schema(hint)
            if kind is HistoryEvent:
                for event_type, attributes in ATTRIBUTES.items():
                    first, *rest = event_type.name.lower().split("_")
                    name = first + "".join(part.capitalize() for part in rest)
                    schema["properties"][f"{name}EventAttributes"] = self._schema(attributes)
        return dict(component.ref)

    def _component(self, name: str, owner: Any, schema: dict[str, Any]) -> dict[str, Any]:
        component = _resolved(name, owner, schema)
        self.registry.register_on_missing(component)
        return dict(component.ref)


def _resolved(name: str, owner: Any, schema: dict[str, Any]) -> Any:
    kind = ResolvedComponent.SCHEMA
    return ResolvedComponent(name=name, type=kind, object=owner, schema=schema)  # type: ignore[no-untyped-call]


def _fields(kind: type[Message]) -> Iterator[tuple[msgspec.structs.FieldInfo, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        yield field, _plain(hints[field.name])


def _plain(hint: Any) -> Any:
    """A hint without its None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(arg for arg in get_args(hint) if arg is not type(None))
    return hint
