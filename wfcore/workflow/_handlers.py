"""Handlers that workflow code reads, sets and removes while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wfcore.workflow import _runtime

_Handler = Callable[..., Any]


def all_handlers_finished() -> bool:
    """Whether no signal or update handler is still running.

    Example:
        ``await workflow.wait_condition(workflow.all_handlers_finished)`` before the end.
    """
    return _runtime.current().all_handlers_finished()


def get_signal_handler(name: str) -> _Handler | None:
    """The handler of a signal."""
    return _runtime.current().get_signal_handler(name)


def set_signal_handler(name: str, handler: _Handler | None) -> None:
    """Set or, with None, remove the handler of a signal; waiting signals come at once."""
    _runtime.current().set_signal_handler(name, handler)


def get_dynamic_signal_handler() -> _Handler | None:
    """The handler of signals that have no other."""
    return _runtime.current().get_signal_handler(None)


def set_dynamic_signal_handler(handler: _Handler | None) -> None:
    """Set or remove the handler of signals that have no other; waiting signals come at once."""
    _runtime.current().set_signal_handler(None, handler)


def get_query_handler(name: str) -> _Handler | None:
    """The handler of a query."""
    return _runtime.current().get_query_handler(name)


def set_query_handler(name: str, handler: _Handler | None) -> None:
    """Set or, with None, remove the handler of a query."""
    _runtime.current().set_query_handler(name, handler)


def get_dynamic_query_handler() -> _Handler | None:
    """The handler of queries that have no other."""
    return _runtime.current().get_query_handler(None)


def set_dynamic_query_handler(handler: _Handler | None) -> None:
    """Set or remove the handler of queries that have no other."""
    _runtime.current().set_query_handler(None, handler)


def get_update_handler(name: str) -> _Handler | None:
    """The handler of an update."""
    return _runtime.current().get_update_handler(name)


def set_update_handler(
    name: str, handler: _Handler | None, *, validator: Callable[..., None] | None = None
) -> None:
    """Set or, with None, remove the handler of an update, with its validator."""
    _runtime.current().set_update_handler(name, handler, validator)


def get_dynamic_update_handler() -> _Handler | None:
    """The handler of updates that have no other."""
    return _runtime.current().get_update_handler(None)


def set_dynamic_update_handler(
    handler: _Handler | None, *, validator: Callable[..., None] | None = None
) -> None:
    """Set or remove the handler of updates that have no other, with its validator."""
    _runtime.current().set_update_handler(None, handler, validator)
