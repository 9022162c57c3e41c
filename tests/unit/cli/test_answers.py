import io
import json
from datetime import timedelta
from typing import Any

import pytest

from wfapp.cli.answers import Exit, Printer, WrongStateError, code_of
from wfcore.exceptions import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NamespaceNotFoundError,
    NotFoundError,
    QueryFailedError,
    RPCError,
    StartContendedError,
    UnavailableError,
    WorkflowExecutionAlreadyStartedError,
    WorkflowNotReadyError,
)


class Lines(io.StringIO):
    """A stream that ends lines as Django's does."""

    def write(self, text: str) -> int:
        return super().write(f"{text}\n")


@pytest.fixture
def streams() -> tuple[Lines, Lines]:
    return Lines(), Lines()


def test_the_codes_are_promised() -> None:
    assert {code.name: code.value for code in Exit} == {
        "DONE": 0,
        "ERROR": 1,
        "NOT_FOUND": 2,
        "WRONG_STATE": 3,
        "TIMED_OUT": 4,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError("x"), 2),
        (NamespaceNotFoundError("x"), 2),
        (WrongStateError("x"), 3),
        (WorkflowExecutionAlreadyStartedError("x"), 3),
        (FailedPreconditionError("x"), 3),
        (WorkflowNotReadyError("x"), 3),
        (DeadlineExceededError("x"), 4),
        (InvalidArgumentError("x"), 1),
        (QueryFailedError("x"), 1),
        (UnavailableError("x"), 1),
        (StartContendedError("x", timedelta(seconds=5)), 1),
    ],
)
def test_each_error_has_its_code(error: RPCError, code: int) -> None:
    assert code_of(error) == code


def test_text_is_for_people(streams: Any) -> None:
    out, err = streams
    printer = Printer(out, err, as_json=False)
    printer.title("Info")
    printer.card([("Name", "a"), ("Empty", ""), ("LongName", "b")])
    printer.table(("A", "Bcd"), [("1", "2"), ("333", "")])
    printer.json({"never": "shown"})
    printer.note("by the way")
    printer.error("not done", Exit.ERROR)
    assert out.getvalue() == ("Info:\n  Name      a\n  LongName  b\n  A    Bcd\n  1    2\n  333\n")
    assert err.getvalue() == "by the way\nError: not done\n"


def test_json_is_for_scripts(streams: Any) -> None:
    out, err = streams
    printer = Printer(out, err, as_json=True)
    printer.title("Info")
    printer.line("text")
    printer.table(("A",), [])
    printer.json({"ü": 1})
    printer.error("not done", Exit.NOT_FOUND)
    assert json.loads(out.getvalue()) == {"ü": 1}
    assert json.loads(err.getvalue()) == {"error": "not done", "exitCode": 2}
