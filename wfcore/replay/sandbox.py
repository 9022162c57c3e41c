"""What workflow code must not touch, and what to use instead.

No module is reloaded and nothing is wrapped for others: entry points of the standard library look
whether a guarded workflow runs in this thread, which costs a tenth of a microsecond elsewhere. What
was imported by name before the guards, and `datetime.now`, which can't be replaced, is found in the
source of the workflow's class when it is prepared.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import io
import multiprocessing.process
import os
import random
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from asyncio.events import _get_running_loop
from collections.abc import Iterator
from datetime import date, datetime
from types import FrameType, ModuleType
from typing import Any

from wfcore.exceptions import RestrictedWorkflowAccessError
from wfcore.replay.loop import WorkflowLoop
from wfcore.workflow import WorkflowDefinition, unsafe

_CLOCK = "Use workflow.now() or workflow.time()."
_CHANCE = "Use workflow.random() or workflow.uuid4()."
_BLOCKING = "It would block the worker: await asyncio.sleep() or workflow.sleep()."
_IO = "Do I/O in an activity (workflow.execute_activity)."
_THREADS = "Run concurrent code as asyncio tasks, blocking code as an activity."

_RANDOM = (
    "random",
    "randint",
    "randrange",
    "randbytes",
    "getrandbits",
    "choice",
    "choices",
    "shuffle",
    "sample",
    "uniform",
    "triangular",
    "gauss",
    "normalvariate",
    "seed",
)
_ENTRIES: tuple[tuple[object, tuple[str, ...], str], ...] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns"), _CLOCK),
    (time, ("sleep",), _BLOCKING),
    (random, _RANDOM, _CHANCE),
    (uuid, ("uuid1", "uuid4"), _CHANCE),
    (os, ("urandom",), _CHANCE),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "choice", "randbelow"), _CHANCE),
    (threading.Thread, ("start",), _THREADS),
    (multiprocessing.process.BaseProcess, ("start",), _THREADS),
    (subprocess.Popen, ("__init__",), _IO),
    (os, ("system",), _IO),
    (builtins, ("open", "input"), _IO),
    (io, ("open",), _IO),
    (socket.socket, ("__init__",), _IO),
    (socket, ("getaddrinfo",), _IO),
)
#: Code between a workflow and an entry point that may use it: what it does is not replayed.
_TRUSTED = (
    "logging",
    "warnings",
    "traceback",
    "linecache",
    "importlib",
    "_frozen_importlib",
    "wfcore.converter",
    "wfcore.replay.values",
    "wfcore.workflow._logging",
)
_originals: dict[tuple[int, str], tuple[object, Any]] = {}
#: Calls that are refused where the source shows them: the object, its name, and what to use.
_forbidden: list[tuple[Any, str, str]] = []
_lock = threading.Lock()


def install() -> None:
    """Put the guards in place, once per process; they do nothing outside of guarded workflows."""
    with _lock:
        if _originals:
            return
        for owner, names, advice in _ENTRIES:
            for name in names:
                _guard(owner, name, advice)
        for kind, name in ((datetime, "now"), (datetime, "utcnow"), (datetime, "today")):
            _forbidden.append((getattr(kind, name), f"datetime.{name}()", _CLOCK))
        _forbidden.append((date.today, "date.today()", _CLOCK))


def uninstall() -> None:
    """Take the guards away again."""
    with _lock:
        for (_owner_id, name), (owner, original) in _originals.items():
            setattr(owner, name, original)
        _originals.clear()
        _forbidden.clear()
        _check.cache_clear()


def guard(owner: object, name: str, advice: str) -> None:
    """Guard one more function: of a host's framework, say, that gives the time.

    Args:
        owner: the module or class that has it.
        name: its name there.
        advice: a sentence that says what to use instead.
    """
    install()
    with _lock:
        if (id(owner), name) not in _originals:
            _guard(owner, name, advice)
            _check.cache_clear()


def prepare(definition: WorkflowDefinition) -> None:
    """Make ready to run a workflow guarded.

    Raises:
        RestrictedWorkflowAccessError: the source of its class calls what it must not.
    """
    install()
    _check(definition.cls)


# --- at run time --------------------------------------------------------------------------------


def _guard(owner: object, name: str, advice: str) -> None:
    original = getattr(owner, name)
    shown = _shown(owner, name)

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        loop = _get_running_loop()
        if type(loop) is WorkflowLoop and loop.guarded and _is_workflow_code():
            raise RestrictedWorkflowAccessError(shown, advice)
        return original(*args, **kwargs)

    _originals[id(owner), name] = (owner, original)
    _forbidden.append((original, shown, advice))
    setattr(owner, name, guarded)


def _shown(owner: object, name: str) -> str:
    if owner is builtins:
        return f"{name}()"
    label = owner.__name__ if isinstance(owner, ModuleType) else getattr(owner, "__qualname__", "")
    return f"{label}()" if name == "__init__" else f"{label}.{name}()"


def _is_workflow_code() -> bool:
    """Whether the call comes from the workflow, not from logging, converters and the like."""
    if unsafe.is_sandbox_unrestricted():
        return False
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - who called the guarded function
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_TRUSTED):
            return False
        if module.startswith("wfcore.replay."):
            return True
        frame = frame.f_back
    return True


# --- in the source ------------------------------------------------------------------------------


@functools.cache
def _check(cls: type) -> None:
    for base in inspect.getmro(cls)[:-1]:
        module = (
            importlib.import_module(base.__module__) if base.__module__ in sys.modules else None
        )
        try:
            lines, first = inspect.getsourcelines(base)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            continue  # no source to look at, such as in an interactive session
        for call in _calls(tree):
            found = _resolve(call.func, vars(module) if module else {})
            for target, shown, advice in _forbidden:
                if found is not None and found == target:
                    place = f"{inspect.getsourcefile(base)}:{first + call.lineno - 1}"
                    raise RestrictedWorkflowAccessError(
                        shown,
                        f"{advice} {base.__qualname__} calls it at {place}. If that is meant, put "
                        "it inside `with workflow.unsafe.sandbox_unrestricted():`.",
                    )


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """All calls below a node, but for those where restrictions are lifted."""
    if isinstance(node, ast.With | ast.AsyncWith) and any(
        "sandbox_unrestricted" in ast.dump(item.context_expr) for item in node.items
    ):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)


def _resolve(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a name or a dotted name stands for, as far as modules and classes go; or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, names)
        if isinstance(owner, ModuleType | type):
            return inspect.getattr_static(owner, node.attr, None) and getattr(owner, node.attr)
    return None
