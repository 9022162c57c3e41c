"""Temporal's JSON, both ways: what goes out is what its tools write, what comes in may be older.

Out: lowerCamelCase names, 64-bit integers as strings, durations as ``10s`` or ``1.500s``, times as
RFC 3339 in UTC, enumerations by full name, bytes as base64, defaults left out.
In, besides: numbers for 64-bit integers, snake_case names, CamelCase enumeration names, ``+00:00``.
"""

import base64
import re
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from wfcore.protocol import commands, events
from wfcore.protocol.common import FieldMask
from wfcore.protocol.enums import CommandType, EventType, WireEnum
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker, Link, Principal
from wfcore.protocol.payloads import UserMetadata
from wfcore.protocol.updates import BODIES, ProtocolMessage, body_name

M = TypeVar("M", bound=Message)
_Convert = Callable[[Any], Any]
_TYPE_PREFIX = "type.googleapis.com/"
_DURATION = re.compile(r"(-?)(\d+)(?:\.(\d{1,9}))?s")


def format_duration(value: timedelta) -> str:
    """``10s``; a fraction has three or six digits, as protobuf writes it."""
    micros = value // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    seconds, rest = divmod(micros, 1_000_000)
    if not rest:
        return f"{sign}{seconds}s"
    if rest % 1000 == 0:
        return f"{sign}{seconds}.{rest // 1000:03d}s"
    return f"{sign}{seconds}.{rest:06d}s"


def parse_duration(text: str) -> timedelta:
    """Read ``1.5s``; digits below a microsecond are cut.

    Raises:
        ValueError: the text is no duration in seconds.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration; write seconds, such as '10s' or '1.5s'")
    sign, whole, fraction = found.groups()
    value = timedelta(seconds=int(whole), microseconds=int(((fraction or "") + "000000")[:6]))
    return -value if sign else value


def format_time(value: datetime) -> str:
    """RFC 3339 in UTC with microseconds, ``2026-03-01T12:00:00.000000Z``."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read RFC 3339; digits below a microsecond are cut.

    Raises:
        ValueError: the text is no time with an offset.
    """
    value = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    if value.tzinfo is None:
        raise ValueError(f"{text!r} has no offset; write UTC with a Z")
    return value.astimezone(UTC)


def to_json(value: Message) -> dict[str, Any]:
    """A value of the protocol in Temporal's JSON."""
    out: dict[str, Any] = {}
    for name, camel, default, small in _fields(type(value)):
        item = getattr(value, name)
        if item is not None and item != default:
            out[camel] = (list(item) if isinstance(item, tuple) else item) if small else write(item)
    if isinstance(value, ProtocolMessage) and value.body is not None:
        out["body"] = {"@type": f"{_TYPE_PREFIX}{body_name(value.body)}", **out["body"]}
    return out


def from_json(kind: type[M], data: Mapping[str, Any]) -> M:
    """Read a value of the protocol; unknown names are passed over.

    Raises:
        ValueError: a field holds something that its type doesn't allow; the text names the field.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__} must be an object, not {type(data).__name__}")
    readers = _readers(kind)
    fields: dict[str, Any] = {}
    for key, item in data.items():
        found = readers.get(key)
        if found is None or item is None:
            continue
        name, read = found
        try:
            fields[name] = read(item)
        except (ValueError, TypeError, AttributeError) as err:
            raise ValueError(f"{kind.__name__}.{name}: {err}") from err
    return kind(**fields)


def event_to_json(event: HistoryEvent) -> dict[str, Any]:
    """One event as it stands in an exported history."""
    kind = event.event_type
    out: dict[str, Any] = {
        "eventId": str(event.event_id),
        "eventTime": format_time(event.event_time),
        "eventType": kind.wire_name,
    }
    if event.version:
        out["version"] = str(event.version)
    if event.task_id:
        out["taskId"] = str(event.task_id)
    if event.worker_may_ignore:
        out["workerMayIgnore"] = True
    out[_attributes_key(kind)] = to_json(event.attributes)
    for name, value in (("userMetadata", event.user_metadata), ("principal", event.principal)):
        if value is not None:
            out[name] = to_json(value)
    if event.links:
        out["links"] = [to_json(link) for link in event.links]
    if event.event_group_markers:
        out["eventGroupMarkers"] = [to_json(marker) for marker in event.event_group_markers]
    return out


def event_from_json(data: Mapping[str, Any]) -> HistoryEvent:
    """Read one event of an exported history.

    Raises:
        ValueError: the event has no kind that is known here, or a field is malformed.
    """
    data = {_camel(key): value for key, value in data.items()}
    kind = EventType.from_wire(data.get("eventType", 0))
    if kind not in events.ATTRIBUTES:
        raise ValueError(f"event {data.get('eventId')} has no known eventType")
    optional: dict[str, Any] = {}
    if metadata := data.get("userMetadata"):
        optional["user_metadata"] = from_json(UserMetadata, metadata)
    if principal := data.get("principal"):
        optional["principal"] = from_json(Principal, principal)
    return HistoryEvent(
        event_id=int(data.get("eventId", 0)),
        event_time=parse_time(data["eventTime"])
        if data.get("eventTime")
        else datetime.fromtimestamp(0, UTC),
        attributes=from_json(events.ATTRIBUTES[kind], data.get(_attributes_key(kind)) or {}),
        version=int(data.get("version", 0)),
        task_id=int(data.get("taskId", 0)),
        worker_may_ignore=bool(data.get("workerMayIgnore", False)),
        links=tuple(from_json(Link, link) for link in data.get("links", ())),
        event_group_markers=tuple(
            from_json(EventGroupMarker, marker) for marker in data.get("eventGroupMarkers", ())
        ),
        **optional,
    )


def history_to_json(history: Iterable[HistoryEvent]) -> dict[str, Any]:
    """A history as Temporal's tools export it."""
    return {"events": [event_to_json(event) for event in history]}


def history_from_json(data: Mapping[str, Any]) -> list[HistoryEvent]:
    """Read an exported history.

    Raises:
        ValueError: there are no events, or one is malformed.
    """
    items = data.get("events")
    if not isinstance(items, list) or not items:
        raise ValueError("a history is an object with a list 'events' that is not empty")
    return [event_from_json(item) for item in items]


def command_from_json(data: Mapping[str, Any]) -> commands.Command:
    """Read one command of a workflow task's answer.

    Raises:
        ValueError: the command has no kind that is known here, or a field is malformed.
    """
    data = {_camel(key): value for key, value in data.items()}
    kind = CommandType.from_wire(data.get("commandType", 0))
    key = _lower_camel(kind.name) + "CommandAttributes"
    attributes = data.get(key)
    cls = commands.ATTRIBUTES.get(kind)
    metadata = data.get("userMetadata")
    return commands.Command(
        command_type=kind,
        attributes=from_json(cls, attributes) if cls and attributes is not None else None,
        user_metadata=from_json(UserMetadata, metadata) if metadata else None,
        event_group_markers=tuple(
            from_json(EventGroupMarker, marker) for marker in data.get("eventGroupMarkers", ())
        ),
    )


def write(value: Any) -> Any:
    """Any value that stands in a message, as Temporal's JSON has it; integers count as 64-bit."""
    if isinstance(value, HistoryEvent):
        return event_to_json(value)
    if isinstance(value, FieldMask):
        return ",".join(".".join(map(_camel, path.split("."))) for path in value.paths)
    if isinstance(value, Message):
        return to_json(value)
    if isinstance(value, WireEnum):
        return value.wire_name
    if isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: write(item) for key, item in value.items()}
    return [write(item) for item in value]


@cache
def _fields(kind: type[Message]) -> tuple[tuple[str, str, Any, bool], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (field.name, field.encode_name, _default(field), _is_small(hints[field.name]))
        for field in msgspec.structs.fields(kind)
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _is_small(hint: Any) -> bool:
    return get_origin(hint) is Annotated or any(map(_is_small, get_args(hint)))


@cache
def _readers(kind: type[Message]) -> dict[str, tuple[str, _Convert]]:
    hints = get_type_hints(kind)
    found: dict[str, tuple[str, _Convert]] = {}
    for field in msgspec.structs.fields(kind):
        entry = (field.name, _reader(hints[field.name]))
        found[field.encode_name] = found[field.name] = entry
    return found


def _reader(hint: Any) -> _Convert:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _reader(next(arg for arg in get_args(hint) if arg is not type(None)))
    if origin is tuple:
        item = _reader(get_args(hint)[0])
        return lambda value: tuple(item(part) for part in value)
    if origin is dict:
        item = _reader(get_args(hint)[1])
        return lambda value: {str(key): item(part) for key, part in value.items()}
    special = _SPECIAL.get(hint)
    if special is not None:
        return special
    if issubclass(hint, Message):
        return lambda value: from_json(hint, value)
    if issubclass(hint, WireEnum):
        from_wire: _Convert = hint.from_wire
        return from_wire
    return _SCALARS[hint]


def _body_from_json(data: Mapping[str, Any]) -> Message:
    """Read what a message carries, whose kind stands beside its fields."""
    name = str(data.get("@type", "")).removeprefix(_TYPE_PREFIX)
    if name not in BODIES:
        raise ValueError(f"a protocol message carries no {name!r}; known: {', '.join(BODIES)}")
    return from_json(BODIES[name], data)


def mask_from_json(value: Any) -> FieldMask:
    """Read paths in camelCase or snake_case."""
    paths = (path.strip() for path in _text(value).split(","))
    snake = (re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", path).lower() for path in paths if path)
    return FieldMask(paths=tuple(snake))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected a whole number, got {value!r}")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


def _bytes(value: Any) -> bytes:
    text = _text(value).replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


#: Values whose kind decides how they are read; a plain `Message` is a protocol message's body.
_SPECIAL: dict[Any, _Convert] = {
    HistoryEvent: event_from_json,
    commands.Command: command_from_json,
    FieldMask: mask_from_json,
    Message: _body_from_json,
}
_SCALARS: dict[Any, _Convert] = {
    str: _text,
    int: _whole,
    bool: _flag,
    float: float,
    bytes: _bytes,
    timedelta: parse_duration,
    datetime: parse_time,
}


@cache
def _attributes_key(kind: EventType) -> str:
    return _lower_camel(kind.name) + "EventAttributes"


def _lower_camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(part.capitalize() for part in rest)


def _camel(key: str) -> str:
    return _lower_camel(key) if "_" in key else key
