"""From JSON values to the types that a function's hints ask for.

What Temporal's converter accepts gives the same value here. It refuses or loosely converts a few
hints that are converted as written here: named tuples, `Annotated`, generic dataclasses, type
variables, subclasses of str. Errors say of a value its type alone, where Temporal's quote it: they
are recorded and logged as plain text, also where a codec encrypts the value.
"""

import collections
import dataclasses
import enum
import inspect
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

JSONTypeConverterUnhandled = NewType("JSONTypeConverterUnhandled", object)


class JSONTypeConverter(ABC):
    """A hook that turns JSON values into types which the converter doesn't know."""

    Unhandled: ClassVar[JSONTypeConverterUnhandled] = JSONTypeConverterUnhandled(object())

    @abstractmethod
    def to_typed_value(self, hint: type, value: Any) -> Any | JSONTypeConverterUnhandled | None:
        """The value in the hint's type, or `Unhandled` if this hook doesn't know the hint."""


def value_to_type(
    hint: Any, value: Any, custom_converters: Sequence[JSONTypeConverter] = ()
) -> Any:
    """A value that `json.loads` gave, in the type that the hint asks for.

    Raises:
        TypeError: the value doesn't fit, or the hint is of no kind that JSON can be turned into.
        ValueError: an enumeration has no such member, or a UUID is malformed.
    """
    for converter in custom_converters:
        converted = converter.to_typed_value(hint, value)
        if converted is not JSONTypeConverter.Unhandled:
            return converted
    if hint is Any:
        return value
    if isinstance(hint, type) and (scalar := _SCALARS.get(hint)) is not None:
        return scalar(value)
    if hint is None:
        return _to_none(value)
    origin = get_origin(hint) or hint
    special = _special_form(hint, origin, value, custom_converters)
    if special is not _NOT_SPECIAL:
        return special
    if not inspect.isclass(origin):
        raise _unserializable(hint)
    if issubclass(origin, Mapping):
        return _to_mapping(hint, origin, value, custom_converters)
    if dataclasses.is_dataclass(origin):
        return _to_dataclass(hint, origin, value, custom_converters)
    if callable(parse := getattr(origin, "parse_obj", None)):
        return parse(value)
    if issubclass(origin, enum.Enum):
        return _to_enum(origin, value)
    if issubclass(origin, str):
        return origin(_to_str(value))
    if issubclass(origin, tuple) and hasattr(origin, "_fields"):
        return _to_named_tuple(origin, value, custom_converters)
    if issubclass(origin, Iterable):
        return _to_collection(hint, origin, value, custom_converters)
    raise _unserializable(hint)


def _unserializable(hint: Any) -> TypeError:
    return TypeError(f"Unserializable type during conversion: {hint}")


_NOT_SPECIAL: Any = object()


def _special_form(
    hint: Any, origin: Any, value: Any, custom_converters: Sequence[JSONTypeConverter]
) -> Any:
    """Convert by a hint that is no class; `_NOT_SPECIAL` if it is one."""
    if origin is Literal:
        allowed = get_args(hint)
        if value not in allowed:
            raise TypeError(f"Value of {type(value)} not in literal values {allowed}")
        return value
    if origin in (Union, types.UnionType):
        for member in get_args(hint):
            try:
                return value_to_type(member, value, custom_converters)
            except Exception:  # noqa: BLE001, S112 - a hook's error means: not this member
                continue
        raise TypeError(f"Failed converting to {hint} from {type(value)}")
    if origin is Annotated:
        return value_to_type(get_args(hint)[0], value, custom_converters)
    if isinstance(hint, NewType):
        return value_to_type(hint.__supertype__, value, custom_converters)
    if isinstance(hint, TypeVar):
        return value_to_type(hint.__bound__ or Any, value, custom_converters)
    return _NOT_SPECIAL


def _to_none(value: Any) -> None:
    if value is not None:
        raise TypeError(f"Expected None, got value of type {type(value)}")


def _to_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"Expected value to be str, was {type(value)}")
    return value


def _to_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"Expected value to be bool, was {type(value)}")
    return value


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError(f"Expected value to be int|float, was {type(value)}")
    return value


def _to_datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise TypeError(f"Expected datetime or ISO8601 string, got {type(value)}")
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise TypeError("Failed parsing datetime string") from None


def _to_uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(_to_str(value))


_SCALARS: dict[type, Callable[[Any], Any]] = {
    bool: _to_bool,
    int: lambda value: int(_number(value)),
    float: lambda value: float(_number(value)),
    str: _to_str,
    bytes: lambda value: value if isinstance(value, bytes) else bytes(value),
    type(None): _to_none,
    datetime: _to_datetime,
    UUID: _to_uuid,
}


def _to_enum(kind: type[enum.Enum], value: Any) -> enum.Enum:
    if issubclass(kind, enum.IntEnum):
        if not isinstance(value, int):
            raise TypeError(
                f"Cannot convert to enum {kind}, value not an integer, value is {type(value)}"
            )
        return _member(kind, value)
    if issubclass(kind, str):
        if not isinstance(value, str):
            raise TypeError(
                f"Cannot convert to enum {kind}, value not a string, value is {type(value)}"
            )
        return _member(kind, value)
    raise _unserializable(kind)


def _member(kind: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{kind} has no member of this value") from None


@lru_cache(maxsize=1024)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _substituted(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """A generic class's field hint with the type variables of the alias filled in."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if parameters and get_origin(hint) is not None:
        return hint[tuple(variables.get(parameter, parameter) for parameter in parameters)]
    return hint


def _to_dataclass(
    hint: Any, kind: Any, value: Any, custom_converters: Sequence[JSONTypeConverter]
) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"Cannot convert to dataclass {hint}, value is {type(value)} not dict")
    variables = dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))
    hints = _hints(kind)
    given: dict[str, Any] = {}
    set_later: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in value:
            continue
        field_hint = hints[field.name]
        if variables:
            field_hint = _substituted(field_hint, variables)
        try:
            converted = value_to_type(field_hint, value[field.name], custom_converters)
        except Exception as err:
            raise TypeError(f"Failed converting field {field.name} on dataclass {hint}") from err
        (given if field.init else set_later)[field.name] = converted
    made = kind(**given)
    for name, converted in set_later.items():
        object.__setattr__(made, name, converted)
    return made


def _to_named_tuple(kind: Any, value: Any, custom_converters: Sequence[JSONTypeConverter]) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError(f"Expected {kind}, value was {type(value)}")
    if len(value) > len(kind._fields):
        raise TypeError(f"Type {kind} only expecting {len(kind._fields)} values, got {len(value)}")
    hints = _hints(kind)
    return kind(
        *(
            _converted_item(kind, index, hints.get(name, Any), item, custom_converters)
            for index, (name, item) in enumerate(zip(kind._fields, value, strict=False))
        )
    )


def _to_mapping(
    hint: Any, kind: type, value: Any, custom_converters: Sequence[JSONTypeConverter]
) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"Expected {hint}, value was {type(value)}")
    by_key: Mapping[str, Any] = _hints(kind) if is_typeddict(kind) else {}
    key_hint, value_hint = (
        (*get_args(hint), Any, Any)[:2] if len(get_args(hint)) == 2 else (Any, Any)
    )
    converted: dict[Any, Any] = {}
    for key, item in value.items():
        try:
            typed_key = _to_key(key_hint, key, custom_converters)
        except Exception:  # noqa: BLE001 - whatever it is, it may quote the key
            raise TypeError(
                f"Failed converting a key to type {key_hint} in mapping {hint}"
            ) from None
        try:
            converted[typed_key] = value_to_type(
                by_key.get(key, value_hint), item, custom_converters
            )
        except Exception as err:
            where = f"for key {key!r}" if key in by_key else "of a key"
            raise TypeError(f"Failed converting value {where} in mapping {hint}") from err
    return converted


_KEY_WORDS = {"true": True, "false": False}


def _to_key(hint: Any, key: Any, custom_converters: Sequence[JSONTypeConverter]) -> Any:
    """A key, which JSON has made text, in its type."""
    if not isinstance(key, str):
        return value_to_type(hint, key, custom_converters)
    if hint is int or hint is float:
        return hint(key)
    if hint is bool:
        return _KEY_WORDS[key]
    if hint is None or hint is type(None):
        return {"null": None}.get(key, key)
    if inspect.isclass(hint) and issubclass(hint, enum.IntEnum):
        return hint(int(key))
    return value_to_type(hint, key, custom_converters)


def _to_collection(
    hint: Any, kind: type, value: Any, custom_converters: Sequence[JSONTypeConverter]
) -> Any:
    if not isinstance(value, Iterable):
        raise TypeError(f"Expected {hint}, value was {type(value)}")
    args = get_args(hint)
    fixed = issubclass(kind, tuple) and bool(args) and args[-1] is not Ellipsis
    converted = []
    for index, item in enumerate(value):
        if fixed and index >= len(args):
            raise TypeError(
                f"Type {hint} only expecting {len(args)} values, got at least {index + 1}"
            )
        item_hint = args[index] if fixed else args[0] if args else Any
        converted.append(_converted_item(hint, index, item_hint, item, custom_converters))
    for made in (set, frozenset, tuple, collections.deque):
        if kind is made:
            return made(converted)
    return converted


def _converted_item(
    hint: Any,
    index: int,
    item_hint: Any,
    item: Any,
    custom_converters: Sequence[JSONTypeConverter],
) -> Any:
    try:
        return value_to_type(item_hint, item, custom_converters)
    except Exception as err:
        raise TypeError(f"Failed converting {hint} index {index}") from err
