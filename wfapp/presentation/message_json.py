"""Requests from JSON, answers to JSON: Temporal's form, with user data short or long.

Reading is strict: an unknown field, a field of the wrong type or a number out of range is an error
that names the field, since what a caller misspelt would else be lost in silence. Names may be
camelCase or snake_case, null means "not given".
"""

import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from wfapp.presentation.payload_json import (
    read_bytes,
    read_payload,
    read_payloads,
    shown,
    write_payload,
    write_payloads,
)
from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol import json_form
from wfcore.protocol.common import FieldMask
from wfcore.protocol.enums import WireEnum
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads, SearchAttributes
from wfcore.protocol.rpc.info import CountWorkflowExecutionsResponseAggregationGroup

M = TypeVar("M", bound=Message)
Read = Callable[[Any, bool], Any]

#: Longest duration, 292 years: what fits into nanoseconds of 64 bits, as Temporal's server has it.
LONGEST = timedelta(seconds=2**63 // 10**9)

_INTEGER = re.compile(r"-?\d{1,20}")
_RANGES = {32: range(-(2**31), 2**31), 64: range(-(2**63), 2**63)}


# ---- reading


def read_message(kind: type[M], data: Any, *, short: bool) -> M:
    """A request from the JSON of its body.

    Raises:
        InvalidArgumentError: a field is unknown, or holds what it can't.
    """
    try:
        return _read_message(kind, data, short)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


def read_text(kind: type[Message], path: tuple[str, ...], texts: list[str]) -> Any:
    """The value of a field that a query parameter names, from its texts.

    Raises:
        InvalidArgumentError: the texts are no value of that field.
        KeyError: there is no such field, or it can't stand in a query.
    """
    field, hint = None, kind
    for name in path:
        field = (_fields(hint) if _is_message(hint) else {})[name]
        hint = field.hint
    if field is None or _is_message(hint) or get_origin(hint) is dict:
        raise KeyError(".".join(path))
    try:
        if get_origin(hint) is tuple:
            return field.read(texts, False)
        if len(texts) > 1:
            raise ValueError(f"it stands {len(texts)} times")
        return field.read(_from_text(hint, texts[0]), False)
    except ValueError as error:
        raise InvalidArgumentError(f'parsing field "{field.name}": {error}') from None


def _from_text(hint: Any, text: str) -> Any:
    """What JSON would have in the place of a text."""
    if hint is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text, text)
    if issubclass(hint, WireEnum) and text.isdecimal():
        return int(text)
    return text


class _Field(msgspec.Struct, frozen=True):
    name: str
    hint: Any
    read: Read


@cache
def _fields(kind: type[Message]) -> dict[str, _Field]:
    """Fields by both of their names."""
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, _Field] = {}
    for field in msgspec.structs.fields(kind):
        hint = _without_none(hints[field.name])
        entry = _Field(field.name, _without_bits(hint), _reader(hint))
        found[field.name] = found[field.encode_name] = entry
    return found


def _read_message(kind: type[M], data: Any, short: bool) -> M:
    if not isinstance(data, Mapping):
        raise ValueError(f"expected an object, got {shown(data)}")
    fields = _fields(kind)
    values: dict[str, Any] = {}
    for key, item in data.items():
        field = fields.get(key)
        if field is None:
            raise ValueError(f'unknown field "{key}"')
        if field.name in values:
            raise ValueError(f'duplicate field "{key}"')
        if item is not None:
            values[field.name] = _read_named(key, field.read, item, short=short)
    return kind(**values)


def _read_named(name: str, read: Read, item: Any, *, short: bool) -> Any:
    try:
        return read(item, short)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _is_message(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Message)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(arg for arg in get_args(hint) if arg is not type(None))
    return hint


def _without_bits(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _reader(hint: Any) -> Read:  # one branch a kind of field
    hint = _without_none(hint)
    origin = get_origin(hint)
    if origin is Annotated:
        return _read_int32
    if origin is tuple:
        return _list_reader(_reader(get_args(hint)[0]))
    if origin is dict:
        return _map_reader(_reader(get_args(hint)[1]), nullable=get_args(hint)[1] is Payload)
    if hint is Payloads:
        return lambda data, short: read_payloads(data, short=short)
    if hint is Payload:
        return lambda data, short: read_payload(data, short=short)
    if hint is FieldMask:
        return lambda data, _short: json_form.mask_from_json(read_string(data))
    if issubclass(hint, Message):
        return lambda data, short: _read_message(hint, data, short)
    if issubclass(hint, WireEnum):
        return lambda data, short: _read_enum(hint, data)
    return _SCALARS[hint]


def _list_reader(read: Read) -> Read:
    def read_list(data: Any, short: bool) -> tuple[Any, ...]:
        if not isinstance(data, list):
            raise ValueError(f"expected a list, got {shown(data)}")
        return tuple(read(item, short) for item in data)

    return read_list


def _map_reader(read: Read, *, nullable: bool) -> Read:
    def read_map(data: Any, short: bool) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise ValueError(f"expected an object, got {shown(data)}")
        return {
            read_string(key): _read_named(key, read, item, short=short)
            for key, item in data.items()
            if nullable or item is not None
        }

    return read_map


def _read_enum(kind: type[WireEnum], data: Any) -> WireEnum:
    if isinstance(data, bool) or not isinstance(data, int | str):
        raise ValueError(f"invalid value for enum type: {shown(data)}")
    return kind.from_wire(data)


def read_string(data: Any) -> str:
    """A text that a database can hold.

    Raises:
        ValueError: it is no text, or holds NUL.
    """
    if not isinstance(data, str):
        raise ValueError(f"invalid value for string type: {shown(data)}")
    if "\0" in data:
        raise ValueError("a text must not hold NUL")
    return data


def _read_int(data: Any, bits: int) -> int:
    if isinstance(data, float) and data.is_integer():
        data = int(data)
    if isinstance(data, str) and _INTEGER.fullmatch(data):
        data = int(data)
    if isinstance(data, bool) or not isinstance(data, int) or data not in _RANGES[bits]:
        raise ValueError(f"invalid value for int{bits} type: {shown(data)}")
    return data


def _read_int32(data: Any, _short: bool) -> int:
    return _read_int(data, 32)


def _read_float(data: Any, _short: bool) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float | str):
        raise ValueError(f"invalid value for double type: {shown(data)}")
    try:
        value = float(data)
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"invalid value for double type: {shown(data)}")
    return value


def _read_bool(data: Any, _short: bool) -> bool:
    if not isinstance(data, bool):
        raise ValueError(f"invalid value for bool type: {shown(data)}")
    return data


def _read_duration(data: Any, _short: bool) -> timedelta:
    text = read_string(data)
    try:
        value = json_form.parse_duration(text)
    except OverflowError:
        value = timedelta.max
    if abs(value) > LONGEST:
        raise ValueError(f"{text} is longer than {LONGEST.days // 365} years")
    return value


def _read_time(data: Any, _short: bool) -> datetime:
    return json_form.parse_time(read_string(data))


_SCALARS: dict[Any, Read] = {
    str: lambda data, _short: read_string(data),
    int: lambda data, _short: _read_int(data, 64),
    float: _read_float,
    bool: _read_bool,
    bytes: lambda data, _short: read_bytes(data),
    timedelta: _read_duration,
    datetime: _read_time,
}


# ---- writing

#: Never shortened: payloads with a type, for which a plain value has no room.
_ALWAYS_LONG = (SearchAttributes, CountWorkflowExecutionsResponseAggregationGroup)


def write_message(message: Message, *, short: bool) -> dict[str, Any]:
    """The JSON of an answer."""
    out = json_form.to_json(message)
    if short:
        _shorten(message, out)
    return out


def _shorten(message: Message, out: dict[str, Any]) -> None:
    """Replace the payloads in the JSON of a message by their short forms."""
    if isinstance(message, _ALWAYS_LONG):
        return
    for name, item in _children(message, out):
        if name in out:
            out[name] = _short_form(item, out[name])


def _short_form(item: Any, written: Any) -> Any:
    if isinstance(item, Payloads):
        return write_payloads(item, short=True)
    if isinstance(item, Payload):
        return write_payload(item, short=True)
    if isinstance(item, Message):
        _shorten(item, written)
    elif isinstance(item, tuple):
        return [_short_form(part, other) for part, other in zip(item, written, strict=True)]
    elif isinstance(item, dict):
        return {key: _short_form(part, written[key]) for key, part in item.items()}
    return written


def _children(message: Message, out: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a message that may hold payloads, by their names in JSON."""
    for name, encoded in _nested(type(message)):
        item = getattr(message, name)
        if item is None:
            continue
        if isinstance(message, HistoryEvent) and name == "attributes":
            # Their name tells the kind of the event.
            yield next(key for key in out if key.endswith("EventAttributes")), item
        else:
            yield encoded, item


@cache
def _nested(kind: type[Message]) -> tuple[tuple[str, str], ...]:
    hints = get_type_hints(kind)
    return tuple(
        (field.name, field.encode_name)
        for field in msgspec.structs.fields(kind)
        if _may_hold_payloads(hints[field.name])
    )


def _may_hold_payloads(hint: Any) -> bool:
    if _is_message(hint):
        return True
    return any(_may_hold_payloads(arg) for arg in get_args(hint))
