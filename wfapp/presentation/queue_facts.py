"""Who works on a task queue now: living worker processes, and what they are busy with."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from wfapp.conf import config
from wfapp.models import ExecutionState, PendingActivity, WorkerProcess
from wfapp.models.columns import to_micros


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueFacts:
    """A task queue and the worker processes that serve it."""

    name: str
    #: living processes, those that stop left out
    workers: int = 0
    slots: int = 0
    #: slots that hold an attempt of an activity, and those that hold a workflow task
    activities: int = 0
    workflow_tasks: int = 0

    @property
    def is_served(self) -> bool:
        """Whether anybody would take work."""
        return self.workers > 0

    @property
    def is_full(self) -> bool:
        """Whether every slot is taken."""
        return self.is_served and self.activities + self.workflow_tasks >= self.slots


def queue_facts(names: Iterable[str], now: datetime) -> Mapping[str, QueueFacts]:
    """What is known of these queues; three queries, however many queues."""
    wanted = sorted(set(names))
    alias = config().database
    rows = WorkerProcess.objects.using(alias).filter(expires_at__gte=to_micros(now), draining=False)
    living = list(rows.values_list("boot_id", "slots", "queues"))
    owners = [boot_id for boot_id, _, _ in living]
    claims = {
        model: Counter(
            dict(
                model.objects.using(alias)
                .filter(owner__in=owners)
                .values_list("owner")
                .annotate(Count("owner"))
            )
        )
        for model in (ExecutionState, PendingActivity)
    }
    found = {}
    for name in wanted:
        serving = [row for row in living if name in row[2].split("\n")]
        found[name] = QueueFacts(
            name=name,
            workers=len(serving),
            slots=sum(slots for _, slots, _ in serving),
            activities=sum(claims[PendingActivity][boot_id] for boot_id, _, _ in serving),
            workflow_tasks=sum(claims[ExecutionState][boot_id] for boot_id, _, _ in serving),
        )
    return found
