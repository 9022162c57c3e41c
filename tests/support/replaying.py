"""Recorded histories and the workflows behind them, replayed by our own code.

The workflows were written against Temporal's SDK, under its own module names or behind a module
`sdk`; while their files are loaded, ours stand in for both.
"""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.json_form import history_from_json
from wfcore.replay.instance import replay_history
from wfcore.workflow import WorkflowDefinition

CONFORMANCE = Path(__file__).parents[1] / "conformance"
#: Modules of the scenarios that import each other by these names.
_SHARED = ("scenario", "shared_activities")


@dataclass(frozen=True)
class Case:
    """One line of a manifest."""

    folder: str
    file: str
    module: str
    expect: str
    shows: str
    workflow_type: str
    workflow_id: str

    @property
    def name(self) -> str:
        return f"{self.folder}/{self.file}"

    @property
    def path(self) -> Path:
        return CONFORMANCE / self.folder / self.file

    def history(self) -> list[HistoryEvent]:
        return history_from_json(json.loads(self.path.read_text()))

    def definition(self) -> WorkflowDefinition:
        found = definitions(CONFORMANCE / self.folder / self.module)
        kind = self.workflow_type or _type_of(self.history())
        return found.get(kind) or found[None]

    def replay(self) -> BaseException | None:
        return replay_history(self.definition(), self.history())


def cases(folder: str) -> list[Case]:
    """All lines of a folder's manifest."""
    manifest = json.loads((CONFORMANCE / folder / "manifest.json").read_text())
    return [
        Case(
            folder=folder,
            file=line["file"],
            module=line.get("module") or manifest["module"],
            expect=line.get("expect", "pass"),
            shows=line.get("shows", ""),
            workflow_type=line.get("workflow_type", ""),
            workflow_id=line.get("workflow_id", ""),
        )
        for line in manifest["cases"]
    ]


@cache
def definitions(path: Path) -> Mapping[str | None, WorkflowDefinition]:
    """The workflows of a file, by their type names; None is the dynamic one."""
    with _stand_ins(path.parent):
        module = _load(path, f"conformance_{path.parent.name}_{path.stem}")
    found = (
        WorkflowDefinition.from_class(value)
        for value in vars(module).values()
        if isinstance(value, type)
    )
    return {definition.name: definition for definition in found if definition is not None}


def _type_of(history: Sequence[HistoryEvent]) -> str:
    kind: Any = getattr(history[0].attributes, "workflow_type", None)
    return str(kind.name)


@contextmanager
def _stand_ins(folder: Path) -> Iterator[None]:
    """Ours under the names that the files import; afterwards all is as it was."""
    ours = {"temporalio": ModuleType("temporalio"), "sdk": _sdk()}
    for name in ("activity", "common", "exceptions", "workflow"):
        ours[f"temporalio.{name}"] = sys.modules[f"wfcore.{name}"]
        setattr(ours["temporalio"], name, sys.modules[f"wfcore.{name}"])
    before = {name: sys.modules.get(name) for name in (*ours, *_SHARED)}
    sys.modules.update(ours)
    try:
        for name in _SHARED:
            if (folder / f"{name}.py").exists():
                sys.modules[name] = _shared(folder / f"{name}.py")
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


@cache
def _shared(path: Path) -> ModuleType:
    module = _load(path, f"conformance_{path.parent.name}_{path.stem}")
    if path.stem == "scenario":
        _open_gates(module)
    return module


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Stays there: type hints of its classes are looked up through it.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _open_gates(scenario: ModuleType) -> None:
    """Nobody drives the scenarios here, so that their code never waits and never stumbles."""
    scenario.hold = lambda name="": None  # type: ignore[attr-defined]
    scenario.first_visits = lambda count, name="": False  # type: ignore[attr-defined]


@cache
def _sdk() -> ModuleType:
    """What the scenarios import as `sdk`; drivers never run here, so that theirs are no more
    than names."""
    module = ModuleType("sdk")
    for name in ("activity", "common", "exceptions", "workflow"):
        setattr(module, name, sys.modules[f"wfcore.{name}"])
    module.client = _Names()  # type: ignore[attr-defined]
    module.is_workflow = lambda value: False  # type: ignore[attr-defined]
    module.is_activity = lambda value: False  # type: ignore[attr-defined]
    return module


class _Names:
    """Has every name, for what drivers say about a client."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return _Names()  # type: ignore[return-value]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self
