"""No row of the table is forgotten, and no test shows one that doesn't exist."""

import ast
from collections import Counter
from pathlib import Path

from tests.features.rows import BY_NUMBER, GROUPS, ROWS

HERE = Path(__file__).parent


def shown() -> list[tuple[str, str]]:
    """Row and name of each test that is tied to a row."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found += [(number, node.name) for number in _rows_of(node)]
    return found


def _rows_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [
        argument.value
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "feature"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    ]


def test_each_row_has_a_test_or_a_reason() -> None:
    tested = {number for number, _ in shown()}
    owed = [row for row in ROWS if not row.later]
    missing = [row.number for row in owed if row.number not in tested]
    assert not missing, f"rows without a test or a reason: {' '.join(missing)}"


def test_what_comes_later_has_no_test() -> None:
    tested = {number for number, _ in shown()}
    assert not [row.number for row in ROWS if row.later and row.number in tested]


def test_tests_are_named_by_rows_that_exist() -> None:
    for number, name in shown():
        assert number in BY_NUMBER, name
        assert name.startswith(f"test_{number[0]}{int(number[1:]):02d}_"), name


def test_the_register_is_whole() -> None:
    numbers = Counter(row.number for row in ROWS)
    assert max(numbers.values()) == 1
    for group in GROUPS:
        count = sum(row.group == group for row in ROWS)
        assert [row.number for row in ROWS if row.group == group] == [
            f"{group}{place}" for place in range(1, count + 1)
        ]
