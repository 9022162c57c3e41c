"""Whether a message can be stored and sent: types, texts and numbers that JSON, protobuf and every
database take.

Python lets callers fill fields with anything. What is found here would else fail later, in the
middle of a transaction, or be written and never be read again, as NaN is.
"""

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import IntEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from wfcore.protocol.commands import Command
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message

#: What is wrong with a value, in words that follow its name; empty when nothing is.
Check = Callable[[Any], str]
#: Name, name in JSON, default value and check of a field.
_Field = tuple[str, str, Any, Check]

NUL = "holds a NUL character, which PostgreSQL can't store: take it out"
SURROGATE = (
    "holds half of a surrogate pair, which is no text: decode the bytes that it came from with "
    "errors='replace', or take it out"
)
_INT32, _INT64 = 2**31, 2**63


def fault(message: Message) -> str:
    """What is wrong with the first field that can't be stored, beginning with the field's name;
    empty when all can.

    Commands inside a message are passed over: each is judged when it is carried out. Texts of
    failures may hold NUL, since they stand in no column and must be recorded whatever they say.
    """
    return _of_fields(message, _fields(type(message), _text))


def cleaned(text: str) -> str:
    r"""A text that can be stored: a lone surrogate, as in names of files that are no UTF-8, is
    written as ``\udce9``.
    """
    if _is_text(text):
        return text
    return text.encode(errors="backslashreplace").decode()


def _of_fields(message: Message, fields: tuple[_Field, ...]) -> str:
    for name, shown, default, check in fields:
        value = getattr(message, name)
        if value is not default and (wrong := check(value)):
            return f"{shown}{wrong}"
    return ""


@cache
def _fields(kind: type[Message], texts: Check) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, Failure):
        texts = _failure_text
    return tuple(
        (field.name, field.encode_name, field.default, _check(hints[field.name], texts))
        for field in msgspec.structs.fields(kind)
    )


def _check(hint: Any, texts: Check) -> Check:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        (only,) = (each for each in get_args(hint) if each is not type(None))
        inner = _check(only, texts)
        return lambda value: "" if value is None else inner(value)
    if origin is Annotated:
        return _int32
    if origin is tuple:
        return _each(_check(get_args(hint)[0], texts))
    if origin is dict:
        return _entries(_check(get_args(hint)[1], texts), texts)
    if issubclass(hint, Command):
        return lambda _: ""
    if issubclass(hint, Message):
        return _message(hint, texts)
    if issubclass(hint, IntEnum):
        return _instance(int)
    return texts if hint is str else _SCALARS[hint]


def _message(kind: type[Message], texts: Check) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, kind):
            return _is_no(value, kind)
        wrong = _of_fields(value, _fields(type(value), texts))
        return f".{wrong}" if wrong else ""

    return check


def _each(item: Check) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, tuple | list):
            return _is_no(value, tuple)
        for place, each in enumerate(value):
            if wrong := item(each):
                return f"[{place}]{wrong}"
        return ""

    return check


def _entries(item: Check, texts: Check) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, Mapping):
            return _is_no(value, dict)
        for key, each in value.items():
            if wrong := texts(key):
                return f": the key {key!r}{wrong}"
            if wrong := item(each):
                return f"[{key!r}]{wrong}"
        return ""

    return check


def _instance(kind: type) -> Check:
    return lambda value: "" if isinstance(value, kind) else _is_no(value, kind)


def _is_no(value: Any, kind: type) -> str:
    return f" must be of type {kind.__name__}, not {type(value).__name__}"


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return _is_no(value, str)
    if "\0" in value:
        return f" {NUL}"
    return "" if _is_text(value) else f" {SURROGATE}"


def _failure_text(value: Any) -> str:
    if not isinstance(value, str):
        return _is_no(value, str)
    return "" if _is_text(value) else f" {SURROGATE}"


def _int32(value: Any) -> str:
    return _whole(value, _INT32)


def _int64(value: Any) -> str:
    return _whole(value, _INT64)


def _whole(value: Any, bound: int) -> str:
    if not isinstance(value, int):
        return _is_no(value, int)
    if not -bound <= value < bound:
        return f" is out of range: it must fit into {bound.bit_length()} bits"
    return ""


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return _is_no(value, float)
    return "" if math.isfinite(value) else f" is {value}: it must be a finite number"


_SCALARS: dict[Any, Check] = {
    bool: _instance(bool),
    int: _int64,
    float: _number,
    bytes: _instance(bytes),
    timedelta: _instance(timedelta),
}
