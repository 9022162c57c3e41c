"""What a value is converted for, so that a converter or codec can use a key per workflow."""

from abc import ABC
from dataclasses import dataclass
from typing import Self


class SerializationContext(ABC):  # noqa: B024 - Temporal's name; the kinds share no operation
    """Base of the contexts."""


@dataclass(frozen=True)
class WorkflowSerializationContext(SerializationContext):
    """A workflow's arguments, result, signals, queries, memo."""

    namespace: str
    workflow_id: str


@dataclass(frozen=True)
class ActivitySerializationContext(SerializationContext):
    """An activity's arguments, result, heartbeat details; the workflow is the calling one."""

    namespace: str
    activity_id: str | None
    activity_type: str | None
    activity_task_queue: str | None
    workflow_id: str | None
    workflow_type: str | None
    is_local: bool


class WithSerializationContext(ABC):  # noqa: B024 - Temporal's name; overriding is a choice
    """A converter or codec that wants to know the context."""

    def with_context(self, context: SerializationContext) -> Self:
        """A copy for this context; by default the object itself."""
        return self
