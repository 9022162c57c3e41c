"""Names of queues: one Celery queue for the activities of a task queue, one for its workflow tasks.

A task queue keeps its name as a Celery queue, so that people find it in Flower, in `-Q` and in the
broker. Workflow tasks and questions go to a queue of their own, or activities that run for an hour
would hold up every signal.
"""

from collections.abc import Iterable
from dataclasses import dataclass

#: The task queue of a workflow that names none; its Celery queue is the app's own default.
DEFAULT_TASK_QUEUE = "default"
WORKFLOW_SUFFIX = ".workflow"
TICK_QUEUE = "wfapp.tick"


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueNames:
    """Task queues to Celery queues and back.

    `celery_default` is the app's ``task_default_queue``. `prefix` comes before all other names, for
    several projects on one broker; the app's default queue keeps the name that the app gave it.
    """

    celery_default: str
    prefix: str = ""

    @property
    def tick(self) -> str:
        """Where a plain beat entry sends ``wfapp.tick``."""
        return self.prefix + TICK_QUEUE

    def activities(self, task_queue: str) -> str:
        """The Celery queue of a task queue's activities."""
        if task_queue == DEFAULT_TASK_QUEUE:
            return self.celery_default
        return self.prefix + task_queue

    def workflows(self, task_queue: str) -> str:
        """The Celery queue of a task queue's workflow tasks and questions."""
        return self.activities(task_queue) + WORKFLOW_SUFFIX

    def task_queue(self, celery_queue: str) -> str | None:
        """The task queue that a Celery queue serves in either way; None for queues of others."""
        name = celery_queue.removesuffix(WORKFLOW_SUFFIX)
        if name == self.celery_default:
            return DEFAULT_TASK_QUEUE
        if celery_queue == self.tick or not name.startswith(self.prefix):
            return None
        return name.removeprefix(self.prefix) or None

    def beside(self, celery_queues: Iterable[str]) -> list[str]:
        """Queues of workflow tasks that a worker of these queues should consume too."""
        given = list(celery_queues)
        return [
            beside
            for name in given
            if name != self.tick
            and not name.endswith(WORKFLOW_SUFFIX)
            and (beside := name + WORKFLOW_SUFFIX) not in given
        ]

    def serve_workflows(self, celery_queues: Iterable[str]) -> list[str]:
        """Task queues whose workflow tasks a worker of these Celery queues takes, sorted."""
        served = (self.task_queue(name) for name in celery_queues if name.endswith(WORKFLOW_SUFFIX))
        return sorted({name for name in served if name})

    def serve_activities(self, celery_queues: Iterable[str]) -> list[str]:
        """Task queues whose activities a worker of these Celery queues takes, sorted."""
        plain = (name for name in celery_queues if not name.endswith(WORKFLOW_SUFFIX))
        return sorted({name for name in map(self.task_queue, plain) if name})
