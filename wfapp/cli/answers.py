"""How verbs answer: results on stdout, errors in one line on stderr, and the code of the exit."""

import json
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol

from wfcore.exceptions import (
    AlreadyExistsError,
    DeadlineExceededError,
    FailedPreconditionError,
    MultiOperationExecutionError,
    NotFoundError,
    QueryFailedError,
    RPCError,
)


class Exit(IntEnum):
    """Exit codes. They are promised: scripts look at them."""

    DONE = 0
    ERROR = 1  # anything else, a failed workflow too
    NOT_FOUND = 2  # no such run, namespace or workflow id
    WRONG_STATE = 3  # closed, already started, or can't answer now
    TIMED_OUT = 4  # waited in vain


class VerbError(Exception):
    """A verb could not do what it was asked for."""

    def __init__(self, text: str, code: Exit = Exit.ERROR) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class WrongStateError(NotFoundError):
    """The run exists, but is closed."""


def code_of(error: RPCError) -> Exit:
    """The exit code that tells a script of an error of the service."""
    error = _reason(error)
    if isinstance(error, WrongStateError | AlreadyExistsError | FailedPreconditionError):
        return Exit.WRONG_STATE
    if isinstance(error, NotFoundError):
        return Exit.NOT_FOUND
    if isinstance(error, DeadlineExceededError):
        return Exit.TIMED_OUT
    return Exit.ERROR


def text_of_error(error: RPCError) -> str:
    """An error in one line."""
    error = _reason(error)
    if isinstance(error, QueryFailedError):
        return f"the query failed: {error.message}"
    return error.message


def _reason(error: RPCError) -> RPCError:
    """Of two operations in one call, the error of the one that failed."""
    if isinstance(error, MultiOperationExecutionError) and error.failed is not None:
        return error.failed
    return error


class Stream(Protocol):
    """As much of a stream as is written to; Django's wrapper ends lines by itself."""

    def write(self, text: str) -> Any:
        """Write a line."""


class Printer:
    """Prints what verbs answer: text for people, or JSON for scripts."""

    def __init__(self, out: Stream, err: Stream, *, as_json: bool) -> None:
        self._out = out
        self._err = err
        self.as_json = as_json

    def json(self, value: Any) -> None:
        """A document, indented; only where JSON is asked for."""
        if self.as_json:
            self._out.write(json.dumps(value, indent=2, ensure_ascii=False))

    def line(self, text: str = "") -> None:
        """A line for people."""
        if not self.as_json:
            self._out.write(text)

    def note(self, text: str) -> None:
        """What people should know besides; never mixed into results."""
        self._err.write(text)

    def error(self, text: str, code: Exit) -> None:
        """Why it was not done."""
        if self.as_json:
            self._err.write(json.dumps({"error": text, "exitCode": int(code)}, ensure_ascii=False))
        else:
            self._err.write(f"Error: {text}")

    def title(self, text: str) -> None:
        """The head of a part."""
        self.line(f"{text}:")

    def card(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Names and values below each other; what is empty is left out."""
        shown = [(name, value) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line(f"  {name:{width}}  {value}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their widest cell, two blanks between, no rules."""
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for cells in (head, *rows):
            padded = (f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
            self.line(f"  {'  '.join(padded)}".rstrip())
