"""Ways around the guards: for code that knows that a replay will not notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Flag, auto

from wfcore.workflow import _runtime

_unrestricted: ContextVar[bool] = ContextVar("wfcore_sandbox_unrestricted", default=False)
_passed_through: ContextVar[bool] = ContextVar("wfcore_imports_passed_through", default=False)
_policy: ContextVar[SandboxImportNotificationPolicy | None] = ContextVar(
    "wfcore_import_policy", default=None
)


class SandboxImportNotificationPolicy(Flag):
    """How imports are reported; accepted, since no module is reloaded here."""

    SILENT = auto()
    WARN_ON_DYNAMIC_IMPORT = auto()
    WARN_ON_UNINTENTIONAL_PASSTHROUGH = auto()
    RAISE_ON_UNINTENTIONAL_PASSTHROUGH = auto()


@contextmanager
def _set(variable: ContextVar[bool]) -> Iterator[None]:
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


class unsafe:  # noqa: N801 - Temporal's name
    """A namespace, never an object."""

    def __init__(self) -> None:
        raise NotImplementedError("workflow.unsafe is a namespace; call its functions")

    @staticmethod
    def in_sandbox() -> bool:
        """Whether the running code is guarded."""
        runtime = _runtime.maybe_current()
        return runtime is not None and runtime.is_guarded

    @staticmethod
    def is_replaying() -> bool:
        """Whether the running code repeats what it did before."""
        return _runtime.current().is_replaying

    @staticmethod
    def is_replaying_history_events() -> bool:
        """`is_replaying`, but false in query handlers and validators, which are always new."""
        return _runtime.current().is_replaying_history_events

    @staticmethod
    def is_read_only() -> bool:
        """Whether a query handler or validator is running."""
        return _runtime.current().is_read_only

    @staticmethod
    def is_sandbox_unrestricted() -> bool:
        """Whether `sandbox_unrestricted` is on."""
        return _unrestricted.get()

    @staticmethod
    @contextmanager
    def sandbox_unrestricted() -> Iterator[None]:
        """Guard nothing in the block: what it does must not change what the workflow does."""
        with _set(_unrestricted):
            yield

    @staticmethod
    def is_imports_passed_through() -> bool:
        """Whether `imports_passed_through` is on."""
        return _passed_through.get()

    @staticmethod
    @contextmanager
    def imports_passed_through() -> Iterator[None]:
        """Accepted: modules are never reloaded here, so each import is passed through."""
        with _set(_passed_through):
            yield

    @staticmethod
    def current_import_notification_policy_override() -> SandboxImportNotificationPolicy | None:
        """The policy of the innermost `sandbox_import_notification_policy`."""
        return _policy.get()

    @staticmethod
    @contextmanager
    def sandbox_import_notification_policy(
        policy: SandboxImportNotificationPolicy,
    ) -> Iterator[None]:
        """Accepted and remembered; nothing is reported."""
        token = _policy.set(policy)
        try:
            yield
        finally:
            _policy.reset(token)
