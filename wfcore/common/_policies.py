"""Policies of starts, retries and queries: plain values, checked before they are used."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any, ClassVar

_ZERO = timedelta(0)


@dataclass
class RetryPolicy:
    """How failed attempts are repeated.

    Attempt *n* is followed by another after ``initial_interval * backoff_coefficient ** (n - 1)``,
    at most `maximum_interval` (unset: 100 times the initial one). `maximum_attempts` counts the
    first attempt too; 0 means no limit, 1 means no retry. A failure whose type is listed in
    `non_retryable_error_types` is not retried.
    """

    initial_interval: timedelta = timedelta(seconds=1)
    backoff_coefficient: float = 2.0
    maximum_interval: timedelta | None = None
    maximum_attempts: int = 0
    non_retryable_error_types: Sequence[str] | None = None

    @staticmethod
    def from_proto(proto: Any) -> RetryPolicy:
        """Read a `wfcore.protocol.common.RetryPolicy`."""
        return RetryPolicy(
            initial_interval=proto.initial_interval or _ZERO,
            backoff_coefficient=proto.backoff_coefficient,
            maximum_interval=proto.maximum_interval,
            maximum_attempts=proto.maximum_attempts,
            non_retryable_error_types=list(proto.non_retryable_error_types) or None,
        )

    def validate(self) -> None:
        """Check the policy as a whole.

        Raises:
            ValueError: a field is out of range; with one attempt only, nothing else is looked at.
        """
        if self.maximum_attempts == 1:
            return
        if self.initial_interval < _ZERO:
            raise ValueError("Initial interval cannot be negative")
        if self.backoff_coefficient < 1:
            raise ValueError("Backoff coefficient cannot be less than 1")
        if self.maximum_interval:
            if self.maximum_interval < _ZERO:
                raise ValueError("Maximum interval cannot be negative")
            if self.maximum_interval < self.initial_interval:
                raise ValueError("Maximum interval cannot be less than initial interval")
        if self.maximum_attempts < 0:
            raise ValueError("Maximum attempts cannot be negative")


class WorkflowIDReusePolicy(IntEnum):
    """May a workflow id be used again once its last run is closed."""

    ALLOW_DUPLICATE = 1
    ALLOW_DUPLICATE_FAILED_ONLY = 2  # only if the last run did not complete
    REJECT_DUPLICATE = 3
    TERMINATE_IF_RUNNING = 4  # deprecated: the conflict policy TERMINATE_EXISTING says the same


class WorkflowIDConflictPolicy(IntEnum):
    """What a start does when a run of the workflow id is open."""

    UNSPECIFIED = 0
    FAIL = 1
    USE_EXISTING = 2
    TERMINATE_EXISTING = 3


class ActivityIDReusePolicy(IntEnum):
    """May the id of a closed standalone activity be used again."""

    UNSPECIFIED = 0
    ALLOW_DUPLICATE = 1
    ALLOW_DUPLICATE_FAILED_ONLY = 2
    REJECT_DUPLICATE = 3


class ActivityIDConflictPolicy(IntEnum):
    """What a start does when a standalone activity of the id is open."""

    UNSPECIFIED = 0
    FAIL = 1
    USE_EXISTING = 2


class QueryRejectCondition(IntEnum):
    """In which statuses of the workflow a query is refused."""

    NONE = 1
    NOT_OPEN = 2
    NOT_COMPLETED_CLEANLY = 3


class HeaderCodecBehavior(IntEnum):
    """Whether headers pass through the payload codec."""

    NO_CODEC = 1
    CODEC = 2
    WORKFLOW_ONLY_CODEC = 3


@dataclass(frozen=True)
class Priority:
    """Order among the tasks of a queue.

    `priority_key` 1 runs first, 5 last (3 is the server's default). Tasks of one priority are
    shared out among `fairness_key` values in proportion to `fairness_weight`. What is unset is
    inherited: by an activity from its workflow, by a child from its parent.
    """

    priority_key: int | None = None
    fairness_key: str | None = None
    fairness_weight: float | None = None

    default: ClassVar[Priority]

    def __post_init__(self) -> None:
        if self.priority_key is None:
            return
        if not isinstance(self.priority_key, int):
            raise TypeError("priority_key must be an integer")
        if self.priority_key < 1:
            raise ValueError("priority_key must be a positive integer")


Priority.default = Priority()


class VersioningBehavior(IntEnum):
    """How a workflow moves between worker deployment versions."""

    UNSPECIFIED = 0
    PINNED = 1
    AUTO_UPGRADE = 2


@dataclass(frozen=True)
class WorkerDeploymentVersion:
    """A deployment's name and the build id of its code."""

    deployment_name: str
    build_id: str

    def to_canonical_string(self) -> str:
        """The name and the build id, joined by a dot."""
        return f"{self.deployment_name}.{self.build_id}"

    @staticmethod
    def from_canonical_string(canonical: str) -> WorkerDeploymentVersion:
        """Read what `to_canonical_string` writes; the name ends at the first dot.

        Raises:
            ValueError: there is no dot.
        """
        name, dot, build_id = canonical.partition(".")
        if not dot:
            raise ValueError(
                f"Cannot parse version string: {canonical}, must be in format "
                "<deployment_name>.<build_id>"
            )
        return WorkerDeploymentVersion(name, build_id)


class VersioningOverride(ABC):  # noqa: B024 - Temporal's name; the kinds share no operation
    """A start's own choice of worker version; accepted and stored, routing ignores it."""


@dataclass(frozen=True)
class PinnedVersioningOverride(VersioningOverride):
    """Stay on one version."""

    version: WorkerDeploymentVersion


@dataclass(frozen=True)
class AutoUpgradeVersioningOverride(VersioningOverride):
    """Follow the deployment's current version."""


@dataclass(frozen=True)
class OneTimeVersioningOverride(VersioningOverride):
    """Move to one version once."""

    target_version: WorkerDeploymentVersion
