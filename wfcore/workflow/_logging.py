"""The logger of workflow code: silent on replay, and heard only once the task is committed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

from wfcore.workflow import _runtime
from wfcore.workflow._context import current_update_info
from wfcore.workflow._unsafe import unsafe


class LoggerAdapter(logging.LoggerAdapter[logging.Logger]):
    """Adds what run a line comes from.

    A line of a workflow task that is repeated, because its worker was lost or its answer refused,
    would be written twice; so lines wait for the commit.

    Attributes:
        workflow_info_on_message: append the run's details to the text. On.
        workflow_info_on_extra: give them as ``temporal_workflow`` in `extra`. On.
        full_workflow_info_on_extra: give the whole `Info` as ``workflow_info`` in `extra`. Off.
        log_during_replay: write lines on replay too. Off.
        disable_sandbox: allow the logger's handlers what workflow code may not do. Off.
    """

    def __init__(self, logger: logging.Logger, extra: Mapping[str, Any] | None) -> None:
        super().__init__(logger, extra or {})
        self.workflow_info_on_message = True
        self.workflow_info_on_extra = True
        self.full_workflow_info_on_extra = False
        self.log_during_replay = False
        self.disable_sandbox = False

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the details to the text and to `extra`; what the call gave in `extra` wins."""
        runtime = _runtime.maybe_current()
        details: dict[str, Any] = {}
        if runtime is not None:
            details.update(runtime.info().logger_details())
        update = current_update_info()
        if update is not None:
            details.update(update.logger_details())
        extra: dict[str, Any] = {}
        if details and self.workflow_info_on_extra:
            extra["temporal_workflow"] = details
        if runtime is not None and self.full_workflow_info_on_extra:
            extra["workflow_info"] = runtime.info()
        if details and self.workflow_info_on_message:
            msg = f"{msg} ({details})"
        kwargs["extra"] = {**extra, **(kwargs.get("extra") or {})}
        return msg, kwargs

    def log(
        self, level: int, msg: object, *args: object, stacklevel: int = 1, **kwargs: Any
    ) -> None:
        """Write the line, or keep it until the workflow task is committed."""
        if not self.isEnabledFor(level):
            return
        with unsafe.sandbox_unrestricted():
            text, options = self.process(msg, kwargs)
            runtime = _runtime.maybe_current()
            if runtime is None:
                self.logger.log(level, text, *args, stacklevel=stacklevel + 1, **options)
                return
            record = self._record(level, text, args, stacklevel + 1, options)
            runtime.log(self.logger, record)

    def _record(
        self,
        level: int,
        msg: object,
        args: tuple[object, ...],
        stacklevel: int,
        options: MutableMapping[str, Any],
    ) -> logging.LogRecord:
        exc_info = options.get("exc_info")
        if isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        elif exc_info and not isinstance(exc_info, tuple):
            exc_info = sys.exc_info()
        path, line, function, stack = self.logger.findCaller(
            options.get("stack_info", False), stacklevel + 1
        )
        return self.logger.makeRecord(
            self.logger.name,
            level,
            path,
            line,
            msg,
            args,
            exc_info or None,
            function,
            options["extra"],
            stack,
        )

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        """Whether a line of this level is written; never on replay, unless told so."""
        if not self.log_during_replay:
            runtime = _runtime.maybe_current()
            if runtime is not None and runtime.is_replaying_history_events:
                return False
        return super().isEnabledFor(level)

    @property
    def base_logger(self) -> logging.Logger:
        """The logger that this one writes to."""
        return self.logger

    def unsafe_disable_sandbox(self, value: bool = True) -> None:
        """Accepted: logging is never restricted here."""
        self.disable_sandbox = value


#: The logger for workflow code.
logger = LoggerAdapter(logging.getLogger("wfcore.workflow"), None)
