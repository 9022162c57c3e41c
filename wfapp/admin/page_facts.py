"""What the list tells of each run besides its row: last progress and attempt trouble.

Read for a whole page at once, from columns alone: no snapshot, no payload, no query for each run.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max

from wfapp.admin.readonly import as_time
from wfapp.conf import config
from wfapp.models import (
    ExecutionState,
    HistoryEvent,
    PendingActivity,
    SearchAttribute,
    WorkflowExecution,
)
from wfapp.presentation.words import event_name
from wfcore.protocol.enums import EventType
from wfcore.service.infos import REPORTED_PROBLEMS

#: An activity's stamp rises by one with each claim and each retry: from here on it was retried.
_RETRIED_STAMP = 3


@dataclass(kw_only=True, slots=True)
class RunFacts:
    """What is known of one run of the page."""

    last_event: str = ""
    last_progress: datetime | None = None
    trouble: list[str] = field(default_factory=list)


def page_facts(runs: Sequence[WorkflowExecution]) -> dict[UUID, RunFacts]:
    """Facts of the runs of a page by run id; four queries, however many runs."""
    facts: dict[UUID, RunFacts] = defaultdict(RunFacts)
    for run in runs:
        facts[run.run_id].last_progress = as_time(run.close_time or run.start_time)
    still_open = [run for run in runs if run.close_time is None]
    if still_open:
        _add_progress(facts, still_open)
        _add_activities(facts, still_open)
        _add_problems(facts, still_open)
    return facts


def _rows(model: Any) -> Any:
    return model.objects.using(config().database)


def _add_progress(facts: dict[UUID, RunFacts], runs: Sequence[WorkflowExecution]) -> None:
    states = _rows(ExecutionState).filter(pk__in=[(run.shard, run.run_id) for run in runs])
    last = [
        (shard, run_id, next_event_id - 1)
        for shard, run_id, next_event_id in states.values_list("shard", "run_id", "next_event_id")
    ]
    events = _rows(HistoryEvent).filter(pk__in=last)
    for run_id, event_time, event_type in events.values_list("run_id", "event_time", "event_type"):
        facts[run_id].last_progress = as_time(event_time)
        facts[run_id].last_event = event_name(EventType(event_type))


def _add_activities(facts: dict[UUID, RunFacts], runs: Sequence[WorkflowExecution]) -> None:
    retried = (
        _rows(PendingActivity)
        .filter(
            shard__in=[run.shard for run in runs],
            run_id__in=[run.run_id for run in runs],
            standing=True,
            stamp__gte=_RETRIED_STAMP,
        )
        .values_list("run_id")
        .annotate(Max("stamp"))
    )
    for run_id, stamp in retried:
        facts[run_id].trouble.append(f"activity at attempt {(stamp + 1) // 2}")


def _add_problems(facts: dict[UUID, RunFacts], runs: Sequence[WorkflowExecution]) -> None:
    keys = [(run.shard, run.run_id, REPORTED_PROBLEMS) for run in runs]
    for (run_id,) in _rows(SearchAttribute).filter(pk__in=keys).values_list("run_id"):
        facts[run_id].trouble.append("workflow task fails")
