"""A twin is its original: the same classes, so that what replays under the one is the other's."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: original, twin
PAIRS = [("examples/orders/workflows.py", "tests/twins/orders.py")]
#: what stands for modules in a twin
STAND_INS = {"activities", "tasks"}


def classes(path: str) -> dict[str, str]:
    tree = ast.parse((ROOT / path).read_text())
    return {
        node.name: ast.dump(node)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name not in STAND_INS
    }


@pytest.mark.parametrize(("original", "twin"), PAIRS)
def test_a_twin_differs_from_its_original_by_imports_alone(original: str, twin: str) -> None:
    ours, theirs = classes(original), classes(twin)
    assert ours
    assert ours == theirs
