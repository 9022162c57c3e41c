"""JSON that every reader understands alike, in requests, answers and stored payloads.

Refused are keys that stand twice, NaN and numbers beyond a float, halves of surrogate pairs, and
what is nested so deep that another reader may give up.
"""

import json
import math
from typing import Any

#: Deepest nesting that is read.
DEPTH = 256


def read(text: str) -> Any:
    """The value of a text.

    Raises:
        ValueError: it is no JSON, or one of those that are refused.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text.count("[") + text.count("{") > DEPTH and _is_deeper(value, DEPTH):
        raise ValueError("nested too deep")
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair") from None
    return value


def write(value: Any, *, pretty: bool = False) -> bytes:
    """The text of a value, compact or indented."""
    if pretty:
        return json.dumps(value, ensure_ascii=False, indent=2).encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f'duplicate field "{key}"')
            seen.add(key)
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"invalid value {name}")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"number out of range: {text}")
    return value


def _is_deeper(value: Any, limit: int) -> bool:
    level = [value]
    while level and limit:
        limit -= 1
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
    return bool(level)
