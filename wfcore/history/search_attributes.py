"""Which search attributes a run may have, and what becomes of them when some are changed.

The engine looks at names, types and sizes; the values stay payloads.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from wfcore.history.limits import Limits
from wfcore.protocol.enums import IndexedValueType as Type
from wfcore.protocol.payloads import Payload, SearchAttributes

#: Attributes that the engine computes: nobody sets them.
SYSTEM = frozenset(
    {
        "WorkflowId",
        "RunId",
        "WorkflowType",
        "StartTime",
        "ExecutionTime",
        "CloseTime",
        "ExecutionStatus",
        "TaskQueue",
        "HistoryLength",
        "ExecutionDuration",
        "StateTransitionCount",
        "HistorySizeBytes",
        "ParentWorkflowId",
        "ParentRunId",
        "RootWorkflowId",
        "RootRunId",
    }
)
#: Attributes that need no registration.
PREDEFINED: Mapping[str, Type] = {
    "TemporalChangeVersion": Type.KEYWORD_LIST,
    "BuildIds": Type.KEYWORD_LIST,
    "BinaryChecksums": Type.KEYWORD_LIST,
    "TemporalScheduledStartTime": Type.DATETIME,
    "TemporalScheduledById": Type.KEYWORD,
    "TemporalSchedulePaused": Type.BOOL,
    "TemporalPauseInfo": Type.KEYWORD_LIST,
    "TemporalReportedProblems": Type.KEYWORD_LIST,
    "TemporalNamespaceDivision": Type.KEYWORD,
}
_RESERVED_PREFIX = "Temporal"
_TYPE_NAMES: Mapping[str, Type] = {
    "".join(part.capitalize() for part in kind.name.split("_")): kind
    for kind in Type
    if kind is not Type.UNSPECIFIED
}
_NAMES_OF_TYPES: Mapping[Type, str] = {kind: name for name, kind in _TYPE_NAMES.items()}
_PYTHON_TYPES: Mapping[Type, tuple[type, ...]] = {
    Type.TEXT: (str,),
    Type.KEYWORD: (str,),
    Type.INT: (int,),
    Type.DOUBLE: (int, float),
    Type.BOOL: (bool,),
    Type.DATETIME: (str,),
}


def name_fault(values: SearchAttributes, namespace: str, limits: Limits) -> str:
    """What is wrong with names or types, in Temporal's words; empty when all is good."""
    if len(values.indexed_fields) > limits.search_attribute_keys:
        return (
            f"number of search attributes {len(values.indexed_fields)} exceeds limit "
            f"{limits.search_attribute_keys}"
        )
    for name, payload in values.indexed_fields.items():
        if (length := len(name.encode())) > limits.id_bytes:
            return (
                "the name of a search attribute exceeds maximum allowed length "
                f"({length}/{limits.id_bytes})"
            )
        if name in SYSTEM:
            return f"{name} attribute can't be set in SearchAttributes"
        if not _is_known(name, limits):
            return f"Namespace {namespace} has no mapping defined for search attribute {name}"
        if fault := _type_fault(name, payload, limits):
            return fault
    return ""


def size_fault(values: SearchAttributes, limits: Limits) -> str:
    """What is too big; empty when nothing is."""
    total = 0
    for name, payload in values.indexed_fields.items():
        size = len(payload.data)
        if size > limits.search_attribute_bytes:
            return (
                f"search attribute {name} value size {size} exceeds size limit "
                f"{limits.search_attribute_bytes}"
            )
        total += len(name.encode()) + size
    if total > limits.search_attributes_bytes:
        return (
            f"total size {total} of search attributes exceeds size limit "
            f"{limits.search_attributes_bytes}"
        )
    return ""


def typed(values: SearchAttributes, limits: Limits) -> SearchAttributes:
    """The same with the type named in each payload, where it is known and the payload has none."""
    return SearchAttributes(
        indexed_fields={
            name: _with_type(payload, _registered(name, limits))
            for name, payload in values.indexed_fields.items()
        }
    )


def merged(current: SearchAttributes | None, changed: SearchAttributes) -> SearchAttributes:
    """The map after a change by key; an empty value takes a key away."""
    fields = dict(current.indexed_fields) if current is not None else {}
    for name, payload in changed.indexed_fields.items():
        if payload.data in (b"", b"null"):
            fields.pop(name, None)
        else:
            fields[name] = payload
    return SearchAttributes(indexed_fields=fields)


def _registered(name: str, limits: Limits) -> Type | None:
    if name in PREDEFINED:
        return PREDEFINED[name]
    return (limits.search_attributes or {}).get(name)


def _is_known(name: str, limits: Limits) -> bool:
    if _registered(name, limits) is not None:
        return True
    return limits.search_attributes is None and not name.startswith(_RESERVED_PREFIX)


def _type_fault(name: str, payload: Payload, limits: Limits) -> str:
    if payload.data in (b"", b"null"):
        return ""
    kind = _registered(name, limits)
    if kind is None:
        named = payload.metadata.get("type", b"").decode(errors="replace")
        kind = _TYPE_NAMES.get(named)
        if kind is None:
            return f"invalid search attribute type: {named}" if named else ""
    try:
        value = msgspec.json.decode(payload.data)
    except msgspec.DecodeError:
        shown = payload.data.decode(errors="replace")
    else:
        if _is_of(value, kind):
            return ""
        shown = f"[{' '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return f"invalid value for search attribute {name} of type {_NAMES_OF_TYPES[kind]}: {shown}"


def _is_of(value: Any, kind: Type) -> bool:
    if kind is Type.KEYWORD_LIST:
        return isinstance(value, str) or (
            isinstance(value, list) and all(isinstance(each, str) for each in value)
        )
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # a list of one stands for its element
    if isinstance(value, bool) and kind is not Type.BOOL:
        return False
    if not isinstance(value, _PYTHON_TYPES[kind]):
        return False
    return kind is not Type.DATETIME or _is_time(value)


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _with_type(payload: Payload, kind: Type | None) -> Payload:
    if kind is None or "type" in payload.metadata:
        return payload
    name = _NAMES_OF_TYPES[kind].encode()
    return msgspec.structs.replace(payload, metadata={**payload.metadata, "type": name})
