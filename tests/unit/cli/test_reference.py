"""docs/reference/commands.md names every verb, flag and exit code."""

import argparse
import re
from pathlib import Path

import pytest

from wfapp.cli.answers import Exit
from wfapp.cli.verbs import VERBS

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "commands.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w -]+)` \|(.*)\|$", REFERENCE, re.MULTILINE))


def test_every_verb_is_explained() -> None:
    assert list(ROWS) == list(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_every_flag_of_a_verb_is_named(name: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    VERBS[name].add_options(parser)
    flags = {
        max(action.option_strings, key=len) for action in parser._actions if action.option_strings
    }
    assert set(re.findall(r"--[a-z-]+", ROWS[name].rpartition("|")[2])) == flags


def test_every_exit_code_is_explained() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d) \|", REFERENCE, re.MULTILINE)] == list(Exit)


def test_every_verb_has_help() -> None:
    assert all(verb.help for verb in VERBS.values())
