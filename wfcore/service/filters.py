"""The part of Temporal's list filters that asks for system attributes with AND between them.

``WorkflowType = 'Order' AND ExecutionStatus IN ('Running', 'Failed') GROUP BY ExecutionStatus``
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.service.ports import RunFilter

_TOKEN = re.compile(r"""\s*(?:'(?:[^']|'')*'|"[^"]*"|[A-Za-z_][\w.]*|\d+|<=|>=|!=|[=<>(),])""")
_TEXTS = {
    "WorkflowId": "workflow_id",
    "RunId": "run_id",
    "WorkflowType": "workflow_type",
    "TaskQueue": "task_queue",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedFilter:
    """Which runs a query asks for, and whether it groups them."""

    runs: RunFilter
    group_by_status: bool = False


def parse_filter(query: str) -> ParsedFilter:
    """Read a query; an empty one asks for all.

    Raises:
        InvalidArgumentError: it is malformed, or asks for what this service can't filter by.
    """
    return _Parser(query).parse()


def _invalid(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"invalid query: {text}")


class _Parser:
    """Reads one query, word by word."""

    def __init__(self, query: str) -> None:
        self._words = list(_split(query))
        self._at = 0
        self._runs = RunFilter()

    def parse(self) -> ParsedFilter:
        grouped = False
        if self._words and not self._is("GROUP"):
            self._condition()
            while self._skip("AND"):
                self._condition()
        if self._skip("GROUP"):
            self._expect("BY")
            grouped = self._group()
        for clause in ("ORDER BY", "LIMIT"):
            if self._is(clause.split()[0]):
                raise _invalid(f"operation is not supported: '{clause}' clause")
        if self._at < len(self._words):
            raise _invalid(
                f"operation is not supported: {self._words[self._at]!r}; conditions on system "
                "attributes may be joined by AND only"
            )
        return ParsedFilter(runs=self._runs, group_by_status=grouped)

    def _condition(self) -> None:
        name = self._next()
        if name in _TEXTS:
            self._expect("=")
            self._set(**{_TEXTS[name]: self._text(name)})
        elif name == "ExecutionStatus":
            self._set(statuses=self._statuses())
        elif name == "StartTime":
            operator = self._next()
            if operator not in ("<", ">"):
                raise _invalid(f"operation is not supported: operator '{operator}' for StartTime")
            moment = _time(self._text(name))
            self._set(**{"started_after" if operator == ">" else "started_before": moment})
        else:
            raise _invalid(f"invalid search attribute: {name}")

    def _set(self, **values: object) -> None:
        for name in values:
            if getattr(self._runs, name):
                raise _invalid(f"operation is not supported: two conditions on {name}")
        self._runs = replace(self._runs, **values)  # type: ignore[arg-type]  # by field name

    def _statuses(self) -> tuple[Status, ...]:
        if self._skip("IN"):
            self._expect("(")
            found = [self._status()]
            while self._skip(","):
                found.append(self._status())
            self._expect(")")
            return tuple(found)
        if self._skip("!="):
            other = self._status()
            return tuple(s for s in Status if s not in (other, Status.UNSPECIFIED))
        self._expect("=")
        return (self._status(),)

    def _status(self) -> Status:
        word = self._next()
        text = word[1:-1] if word[0] in "'\"" else word
        try:
            return Status.from_wire(int(text) if text.isdigit() else text)
        except ValueError:
            raise _invalid(f"invalid expression: invalid ExecutionStatus value '{text}'") from None

    def _group(self) -> bool:
        name = self._next()
        if self._is(","):
            raise _invalid(
                "operation is not supported: 'GROUP BY' clause supports only a single field"
            )
        if name != "ExecutionStatus":
            raise _invalid(
                "operation is not supported: 'GROUP BY' clause is not supported for search "
                f"attribute {name}"
            )
        return True

    def _text(self, name: str) -> str:
        word = self._next()
        if word[0] not in "'\"":
            raise _invalid(f"invalid expression: the value of {name} must stand in quotes")
        return word[1:-1].replace("''", "'")

    def _next(self) -> str:
        if self._at >= len(self._words):
            raise _invalid("invalid expression: incomplete expression")
        self._at += 1
        return self._words[self._at - 1]

    def _is(self, word: str) -> bool:
        return self._at < len(self._words) and self._words[self._at].upper() == word

    def _skip(self, word: str) -> bool:
        if not self._is(word):
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise _invalid(f"malformed SQL query: '{word}' is missing after word {self._at}")


def _split(query: str) -> Iterator[str]:
    position = 0
    while query[position:].strip():
        found = _TOKEN.match(query, position)
        if found is None:
            raise _invalid(f"malformed SQL query: syntax error at position {position + 1}")
        position = found.end()
        yield found.group().strip()


def _time(text: str) -> datetime:
    fault = _invalid(f"invalid expression: unable to parse datetime '{text}'")
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise fault
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the first and the last day may have no UTC time
        raise fault from None
