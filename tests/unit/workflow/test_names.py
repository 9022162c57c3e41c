"""The public names: those of Temporal's module, apart from what is listed as left out."""

import ast
import re
from pathlib import Path

import wfcore.workflow

#: Names that this module has besides, for the packages around it.
OWN = {"WorkflowDefinition", "SignalDefinition", "QueryDefinition", "UpdateDefinition"}


def test_all_is_what_the_package_imports() -> None:
    path = wfcore.workflow.__file__
    assert path is not None
    tree = ast.parse(Path(path).read_text())
    imported = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == set(wfcore.workflow.__all__)
    assert set(wfcore.workflow.__all__) > OWN


def test_every_public_function_says_what_it_does() -> None:
    silent = [
        name
        for name in wfcore.workflow.__all__
        if callable(getattr(wfcore.workflow, name))
        and re.match(r"[a-z]", name)
        and not (getattr(wfcore.workflow, name).__doc__ or "").strip()
    ]
    assert silent == []
