"""How workflow code is run: with calls that break replay refused, or without."""

from dataclasses import dataclass
from typing import Any


class WorkflowRunner:
    """Base of the two; `guarded` says whether such calls are refused."""

    guarded = True


class UnsandboxedWorkflowRunner(WorkflowRunner):
    """Workflow code may call everything; what breaks replay shows only when it is replayed."""

    guarded = False


@dataclass(frozen=True)
class SandboxedWorkflowRunner(WorkflowRunner):
    """What breaks replay is refused where it happens.

    `restrictions` and `runner_class` are Temporal's; modules are not reloaded here, so there is
    nothing to pass through, and they have no effect.
    """

    restrictions: Any = None
    runner_class: Any = None


#: What is used unless another is given.
DEFAULT_RUNNER = SandboxedWorkflowRunner()
