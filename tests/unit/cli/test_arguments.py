import argparse
from datetime import timedelta
from pathlib import Path

import pytest

from wfapp.cli.answers import VerbError
from wfapp.cli.arguments import choices, duration, named_values, values
from wfcore.protocol.enums import WorkflowIdConflictPolicy


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("2d", 172_800), ("250ms", 0.25), ("1.5h", 5400), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "1h-5m", "-5s", "1y", "5sx", "1e3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 90s, 1h30m or 2d"):
        duration(text)


def test_a_duration_that_no_clock_holds() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="longer than any clock"):
        duration("99999999999999d")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_bytes(b'"caf\xe9"')
    with pytest.raises(VerbError, match="is no UTF-8"):
        values({"input_file": [str(file)]})


def test_json_that_is_nested_beyond_reason() -> None:
    with pytest.raises(VerbError, match="takes JSON"):
        values({"input": ["[" * 100_000]})


def test_arguments_are_json_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text('{"a": [1]}')
    options = {"input": ['"text"', "5"], "input_file": [str(file)]}
    assert values(options) == ["text", 5, {"a": [1]}]
    assert values({}) == []


def test_a_text_without_quotes_is_told_how_to_be_written() -> None:
    with pytest.raises(VerbError, match="a string needs its quotes") as caught:
        values({"input": ["text"]})
    assert caught.value.code == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VerbError, match=r"can't be read: No such file"):
        values({"input_file": [str(tmp_path / "absent")]})


def test_named_values() -> None:
    assert named_values(["a=1", 'b="x=y"'], "--memo") == {"a": 1, "b": "x=y"}
    for pair in ("a", "=1"):
        with pytest.raises(VerbError, match="takes KEY=JSON"):
            named_values([pair], "--memo")


def test_policies_have_temporals_names() -> None:
    assert choices(WorkflowIdConflictPolicy) == ["Fail", "UseExisting", "TerminateExisting"]
