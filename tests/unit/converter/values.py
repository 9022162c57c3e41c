"""Types and values that the tests of the converters share."""

import collections
import collections.abc
import dataclasses
import enum
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

T = TypeVar("T")


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1
    next: "Line | None" = None


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Line] = dataclasses.field(default_factory=list)
    at: datetime | None = None
    kind: "Kind | None" = None
    total: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass(frozen=True)
class Box(Generic[T]):
    value: T
    more: "list[T]" = dataclasses.field(default_factory=list)


class Kind(enum.IntEnum):
    NEW = 1


class Colour(enum.StrEnum):
    RED = "red"


class OldColour(str, enum.Enum):  # noqa: UP042 - the form before StrEnum
    RED = "red"


class Unsuitable(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: datetime | None = None


class Address(TypedDict):
    street: str
    line: Line


class Partial(TypedDict, total=False):
    street: str


class OldModel:
    """What pydantic's first version looks like."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @classmethod
    def parse_obj(cls, data: Any) -> "OldModel":
        return cls(data)

    def dict(self) -> Any:
        return self.data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OldModel) and other.data == self.data

    __hash__ = None  # type: ignore[assignment]


class Nothing:
    pass


OrderId = NewType("OrderId", int)
LineAlias = NewType("LineAlias", Line)

NOON = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)

#: Values that both converters must write in the same bytes.
WRITTEN: list[Any] = [
    None,
    b"abc",
    b"",
    bytearray(b"x"),
    "",
    "é😀\ud800",
    0,
    -1,
    1.5,
    1e300,
    float("inf"),
    True,
    [],
    [1, [2, None]],
    (1, "a"),
    {},
    {"b": 1, "a": {"d": 1, "c": [2]}},
    {1: 2, 3: 4},
    {None: 1},
    {True: 1},
    {Kind.NEW: 1},
    {Colour.RED: 1},
    {7},
    frozenset([7]),
    collections.deque([1]),
    range(3),
    {"k": 1}.keys(),
    Kind.NEW,
    Colour.RED,
    OldColour.RED,
    Point(1, NOON),
    Line("a"),
    Order(1, [Line("a", 2, Line("b"))], NOON, Kind.NEW),
    Box(Line("a")),
    NOON,
    datetime(2026, 1, 2),  # noqa: DTZ001 - written as it is
    datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    uuid.UUID(int=5),
    OldModel({"z": 1, "a": Line("b")}),
    {"bytes": b"x", "when": NOON, "ids": [uuid.UUID(int=1)]},
]

#: Values that neither writes.
REFUSED: list[Any] = [
    object(),
    Unsuitable.RED,
    NOON.date(),
    NOON.time(),
    timedelta(1),
    1 + 2j,
    {uuid.UUID(int=1): 1},
    {1: 1, "a": 2},
    ValueError("x"),
    Nothing(),
]

_ID = str(uuid.UUID(int=5))

#: Values that don't fit, of which Temporal's errors quote a part and ours don't: the error of the
#: same type, and what must not stand in it.
QUOTED: list[tuple[Any, Any, str]] = [
    (datetime, "pin 4711", "4711"),
    (Kind, 4711, "4711"),
    (Colour, "pin 4711", "4711"),
    (Line, {"sku": "a", "next": 4711}, "4711"),
    (dict[str, int], {"pin 4711": "b"}, "4711"),
    (dict[int, str], {"pin 4711": "a"}, "4711"),
    (dict[bool, str], {"pin 4711": "a"}, "4711"),
    (Optional[int], "pin 4711", "4711"),  # noqa: UP045
    (Literal["a"], "pin 4711", "4711"),
    (list[Colour], ["red", "pin 4711"], "4711"),
]

#: Hints with JSON values, for which both converters must agree, errors included.
READ: list[tuple[Any, Any]] = [
    (Any, {"a": 1}),
    (int, 1),
    (int, 1.5),
    (int, "1"),
    (int, True),
    (int, None),
    (float, 1),
    (float, "x"),
    (bool, True),
    (bool, 1),
    (str, "x"),
    (str, 1),
    (str, None),
    (bytes, [120]),
    (bytes, "x"),
    (type(None), None),
    (type(None), 1),
    (datetime, "2026-01-02T12:00:00Z"),
    (datetime, "2026-01-02T12:00:00.123+01:00"),
    (datetime, "2026-01-02"),
    (datetime, 5),
    (uuid.UUID, _ID),
    (uuid.UUID, "x"),
    (Kind, 1),
    (Kind, "NEW"),
    (Kind, 1.0),
    (Colour, "red"),
    (Colour, 1),
    (OldColour, "red"),
    (Unsuitable, "red"),
    (Line, {"sku": "a"}),
    (Line, {"sku": "a", "unknown": 1}),
    (Line, {"sku": "a", "next": {"sku": "b", "count": 2}}),
    (Line, {}),
    (Line, {"sku": 1}),
    (Line, 5),
    (Line, None),
    (Order, {"id": 1, "lines": [{"sku": "a"}], "at": "2026-01-02T12:00:00Z", "kind": 1}),
    (Order, {"id": 1, "total": 7}),
    (Address, {"street": "s", "line": {"sku": "a"}, "more": 3}),
    (Address, {"street": "s"}),
    (Address, [1]),
    (Partial, {}),
    (Partial, {"street": 5}),
    (OldModel, {"q": 1}),
    (Nothing, {"q": 1}),
    (OrderId, 1),
    (OrderId, "x"),
    (LineAlias, {"sku": "a"}),
    (list, [1]),
    (list, [1]),
    (list[int], [1]),
    (list[int], ["a"]),
    (list[Line], [{"sku": "a"}]),
    (list[Line], 5),
    (collections.abc.Sequence[int], [1]),
    (collections.abc.Iterable[Line], [{"sku": "a"}]),
    (collections.abc.Iterator[int], [1]),
    (set[int], [1, 1]),
    (frozenset[int], [1]),
    (collections.abc.Set[int], [1]),
    (collections.deque[int], [1]),
    (collections.deque[int], [1]),
    (tuple, [1, "a"]),
    (tuple[int, str], [1, "a"]),
    (tuple[int, str], [1]),
    (tuple[int, ...], [1, 2]),
    (tuple[int, ...], ["a"]),
    (tuple[Line, ...], [{"sku": "a"}]),
    (tuple[()], []),
    (tuple[int], [1, 2]),
    (dict, {"a": 1}),
    (dict, [1]),
    (dict[str, int], {"a": 1}),
    (dict[str, Line], {"a": {"sku": "a"}}),
    (dict[int, str], {"1": "a"}),
    (dict[float, str], {"1.5": "a"}),
    (dict[bool, str], {"true": "a", "false": "b"}),
    (dict[type(None), str], {"null": "a"}),
    (dict[Kind, int], {"1": 5}),
    (dict[Colour, int], {"red": 5}),
    (dict[uuid.UUID, int], {_ID: 5}),
    (dict[datetime, int], {"2026-01-02T12:00:00": 5}),
    (dict[int | str, int], {"1": 1}),
    (collections.abc.Mapping[str, Line], {"a": {"sku": "a"}}),
    (collections.OrderedDict[str, int], {"a": 1}),
    (collections.Counter, {"a": 1}),
    (Optional[int], None),  # noqa: UP045 - the old spelling is the point
    (Optional[int], 1),  # noqa: UP045
    (int | str, "x"),
    (Union[Line, Kind], 1),  # noqa: UP007
    (Line | None, {"sku": "a"}),
    (float | int, 1),
    (datetime | str, "q"),
    (str | datetime, "2026-01-02T12:00:00"),
    (Literal["a", "b"], "a"),
    (Literal[1], True),
    (str, ["a"]),
    (list[str], "abc"),
    (dict[str, list[Line]], {"a": [{"sku": "b"}]}),
    ("Line", {"sku": "a"}),
    (complex, 1),
    (type, 1),
    (collections.abc.Hashable, 1),
]

#: Hints that Temporal's converter refuses or converts loosely.
READ_FURTHER: list[tuple[Any, Any, Any]] = [
    (None, None, None),
    (Point, [1], Point(1)),
    (Point, [1, "2026-01-02T12:00:00.000005Z"], Point(1, NOON)),
    (Annotated[int, "a count"], 1, 1),
    (Annotated[Line, "a line"], {"sku": "a"}, Line("a")),
    (Box[int], {"value": 1, "more": [2]}, Box(1, [2])),
    (Box[Line], {"value": {"sku": "a"}, "more": [{"sku": "b"}]}, Box(Line("a"), [Line("b")])),
    (T, {"a": 1}, {"a": 1}),
]
