"""What stands for an activity, a child or another workflow in code; replay fills it in."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from wfcore.common import UNSET
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._types import AnyType, ReturnType, SelfType

if TYPE_CHECKING:

    class AsyncioTask(asyncio.Task[AnyType]):
        """`asyncio.Task` with its type parameter."""

else:

    class AsyncioTask(asyncio.Task, Generic[AnyType]):
        """`asyncio.Task` with its type parameter, as a base that runs."""


class ActivityHandle(AsyncioTask[ReturnType]):  # type: ignore[type-var]
    """A scheduled activity: a task whose result is the activity's.

    Cancelling it asks the activity to stop, in the way its cancellation type says.
    """


class ChildWorkflowHandle(AsyncioTask[ReturnType], Generic[SelfType, ReturnType]):  # type: ignore[type-var]
    """A started child workflow: a task whose result is the child's."""

    @property
    def id(self) -> str:
        """The child's workflow id."""
        raise NotImplementedError

    @property
    def first_execution_run_id(self) -> str | None:
        """The run id that the child started with."""
        raise NotImplementedError

    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        event_groups: Sequence[EventGroup] | None = None,
    ) -> None:
        """Send the child a signal and wait until it is delivered.

        Args:
            signal: the signal's name, or its handler.
            arg: the handler's only argument.
            args: its arguments, if it has several.
            event_groups: groups of this command.

        Raises:
            ApplicationError: the child is closed.
        """
        raise NotImplementedError


class ExternalWorkflowHandle(ABC, Generic[SelfType]):
    """Another workflow, known by its id."""

    @property
    @abstractmethod
    def id(self) -> str:
        """Its workflow id."""

    @property
    @abstractmethod
    def run_id(self) -> str | None:
        """The run that is meant; None means the current one."""

    @abstractmethod
    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        event_groups: Sequence[EventGroup] | None = None,
    ) -> None:
        """Send it a signal and wait until it is delivered.

        Raises:
            ApplicationError: there is no open run of it.
        """

    @abstractmethod
    async def cancel(
        self, *, reason: str = "", event_groups: Sequence[EventGroup] | None = None
    ) -> None:
        """Ask it to stop and wait until the request is delivered.

        Raises:
            ApplicationError: there is no such workflow.
        """
