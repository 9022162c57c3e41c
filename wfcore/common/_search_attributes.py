"""Typed search attributes: a key fixes name and type, so that a value can't be stored wrongly."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, get_origin, overload

SearchAttributeValues: TypeAlias = list[str] | list[int] | list[float] | list[bool] | list[datetime]
SearchAttributes: TypeAlias = Mapping[str, SearchAttributeValues]
SearchAttributeValue: TypeAlias = str | int | float | bool | datetime | Sequence[str]
SearchAttributeValueType = TypeVar(
    "SearchAttributeValueType", str, int, float, bool, datetime, Sequence[str]
)
_Default = TypeVar("_Default")


class SearchAttributeIndexedValueType(IntEnum):
    """How a search attribute is indexed."""

    TEXT = 1
    KEYWORD = 2
    INT = 3
    DOUBLE = 4
    BOOL = 5
    DATETIME = 6
    KEYWORD_LIST = 7

    @property
    def metadata_type(self) -> str:
        """The name that a payload's metadata has for it."""
        return _METADATA_TYPES[self]


_METADATA_TYPES = {
    SearchAttributeIndexedValueType.TEXT: "Text",
    SearchAttributeIndexedValueType.KEYWORD: "Keyword",
    SearchAttributeIndexedValueType.INT: "Int",
    SearchAttributeIndexedValueType.DOUBLE: "Double",
    SearchAttributeIndexedValueType.BOOL: "Bool",
    SearchAttributeIndexedValueType.DATETIME: "Datetime",
    SearchAttributeIndexedValueType.KEYWORD_LIST: "KeywordList",
}


@dataclass(frozen=True)
class SearchAttributeKey(Generic[SearchAttributeValueType]):
    """A search attribute's name and type; make one with the ``for_...`` methods.

    Example:
        ``CUSTOMER = SearchAttributeKey.for_keyword("CustomerId")``
    """

    name: str
    indexed_value_type: SearchAttributeIndexedValueType
    value_type: type[SearchAttributeValueType]

    @property
    def origin_value_type(self) -> type:
        """The class of the values: `collections.abc.Sequence` for a list of keywords."""
        return get_origin(self.value_type) or self.value_type

    def value_set(
        self, value: SearchAttributeValueType
    ) -> SearchAttributeUpdate[SearchAttributeValueType]:
        """An update that sets the attribute."""
        return SearchAttributeUpdate(self, value)

    def value_unset(self) -> SearchAttributeUpdate[SearchAttributeValueType]:
        """An update that removes the attribute."""
        return SearchAttributeUpdate(self, None)

    @staticmethod
    def for_text(name: str) -> SearchAttributeKey[str]:
        """Text, searched by its words."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.TEXT, str)

    @staticmethod
    def for_keyword(name: str) -> SearchAttributeKey[str]:
        """Text, compared as a whole."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.KEYWORD, str)

    @staticmethod
    def for_int(name: str) -> SearchAttributeKey[int]:
        """A whole number."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.INT, int)

    @staticmethod
    def for_float(name: str) -> SearchAttributeKey[float]:
        """A floating-point number."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.DOUBLE, float)

    @staticmethod
    def for_bool(name: str) -> SearchAttributeKey[bool]:
        """Yes or no."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.BOOL, bool)

    @staticmethod
    def for_datetime(name: str) -> SearchAttributeKey[datetime]:
        """A time; it must have a time zone."""
        return SearchAttributeKey(name, SearchAttributeIndexedValueType.DATETIME, datetime)

    @staticmethod
    def for_keyword_list(name: str) -> SearchAttributeKey[Sequence[str]]:
        """A list of texts, each compared as a whole."""
        return SearchAttributeKey(
            name,
            SearchAttributeIndexedValueType.KEYWORD_LIST,
            Sequence[str],  # type: ignore[type-abstract]
        )

    @staticmethod
    def from_metadata_type(name: str, metadata_type: str) -> SearchAttributeKey[Any] | None:
        """The key for a type's name in a payload's metadata; None if there is no such type."""
        make = _MAKERS.get(metadata_type)
        return make(name) if make else None

    @staticmethod
    def guess_from_untyped_values(
        name: str, values: Sequence[SearchAttributeValue]
    ) -> SearchAttributeKey[Any] | None:
        """The key that untyped values most likely belong to; None for no values."""
        if not values:
            return None
        first = values[0]
        if isinstance(first, str):
            if len(values) > 1:
                return SearchAttributeKey.for_keyword_list(name)
            return SearchAttributeKey.for_keyword(name)
        if isinstance(first, bool):
            return SearchAttributeKey.for_bool(name)
        if isinstance(first, int):
            return SearchAttributeKey.for_int(name)
        if isinstance(first, float):
            return SearchAttributeKey.for_float(name)
        if isinstance(first, datetime):
            return SearchAttributeKey.for_datetime(name)
        return None


_MAKERS: dict[str, Any] = {
    "Text": SearchAttributeKey.for_text,
    "Keyword": SearchAttributeKey.for_keyword,
    "Int": SearchAttributeKey.for_int,
    "Double": SearchAttributeKey.for_float,
    "Bool": SearchAttributeKey.for_bool,
    "Datetime": SearchAttributeKey.for_datetime,
    "KeywordList": SearchAttributeKey.for_keyword_list,
}


class SearchAttributePair(NamedTuple, Generic[SearchAttributeValueType]):
    """A key and its value."""

    key: SearchAttributeKey[SearchAttributeValueType]
    value: SearchAttributeValueType


@dataclass(frozen=True)
class SearchAttributeUpdate(Generic[SearchAttributeValueType]):
    """A key with a new value, or with None to remove it; made by the key."""

    key: SearchAttributeKey[SearchAttributeValueType]
    value: SearchAttributeValueType | None


@dataclass(frozen=True)
class TypedSearchAttributes(Collection[SearchAttributePair[Any]]):
    """Search attributes in the order of their names, each name once.

    Raises:
        ValueError: a name occurs twice.
    """

    search_attributes: Sequence[SearchAttributePair[Any]]

    empty: ClassVar[TypedSearchAttributes]

    def __post_init__(self) -> None:
        pairs = sorted(self.search_attributes, key=lambda pair: pair.key.name)
        for before, after in itertools.pairwise(pairs):
            if before.key.name == after.key.name:
                raise ValueError(
                    f"Duplicate search attribute entries found for key {after.key.name}"
                )
        object.__setattr__(self, "search_attributes", pairs)

    def __len__(self) -> int:
        return len(self.search_attributes)

    def __getitem__(
        self, key: SearchAttributeKey[SearchAttributeValueType]
    ) -> SearchAttributeValueType:
        for pair in self.search_attributes:
            if pair.key == key:
                return pair.value  # type: ignore[no-any-return]
        raise KeyError(f"no search attribute {key.name!r} of type {key.indexed_value_type.name}")

    def __iter__(self) -> Iterator[SearchAttributePair[Any]]:
        return iter(self.search_attributes)

    def __contains__(self, key: object) -> bool:
        """Whether a pair has this key; name and type must both match."""
        return any(pair.key == key for pair in self.search_attributes)

    @overload
    def get(
        self, key: SearchAttributeKey[SearchAttributeValueType]
    ) -> SearchAttributeValueType | None: ...

    @overload
    def get(
        self, key: SearchAttributeKey[SearchAttributeValueType], default: _Default
    ) -> SearchAttributeValueType | _Default: ...

    def get(
        self,
        key: SearchAttributeKey[SearchAttributeValueType],
        default: Any | None = None,
    ) -> Any:
        """The key's value, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def updated(self, *search_attributes: SearchAttributePair[Any]) -> TypedSearchAttributes:
        """A copy in which these pairs are added, replacing those of the same name."""
        pairs = {pair.key.name: pair for pair in self.search_attributes}
        pairs.update((pair.key.name, pair) for pair in search_attributes)
        return TypedSearchAttributes(list(pairs.values()))


TypedSearchAttributes.empty = TypedSearchAttributes([])
