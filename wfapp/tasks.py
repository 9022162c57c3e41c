"""The engine's Celery tasks. Names and arguments are a wire format: docs/reference/messages.md.

They are acknowledged before they run, since leases recover what dies; they are never retried,
limited or timed by the app's settings, and their result is the history.
"""

from typing import Any

from celery import shared_task

from wfapp import wiring
from wfapp.beat import worker_ticker
from wfapp.conf import config
from wfapp.dispatch import messages
from wfapp.dispatch.celery_tasks import extend_tasks, wrap_tracers
from wfapp.dispatch.connections import keep_connections
from wfapp.dispatch.lifecycle import HOST, Hooks

_FIXED: dict[str, Any] = {
    "serializer": "json",
    "ignore_result": True,
    "store_errors_even_if_ignored": False,
    "acks_late": False,
    "reject_on_worker_lost": False,
    "track_started": False,
    "trail": False,
    "max_retries": 0,
    # Zero: none, also where the app limits all tasks. A time limit of zero would be the app's.
    "rate_limit": 0,
    "time_limit": messages.NO_TIME_LIMIT,
    "soft_time_limit": messages.NO_TIME_LIMIT,
}


@shared_task(name=messages.WORKFLOW_TASK, **_FIXED)
def workflow_task(**fields: Any) -> None:
    """Run a workflow task."""
    wiring.get_task_worker().workflow_task(fields)


@shared_task(name=messages.ACTIVITY, **_FIXED)
def activity(**fields: Any) -> None:
    """Run an attempt of an activity."""
    wiring.get_task_worker().activity(fields)


@shared_task(name=messages.QUERY, **_FIXED)
def query(**fields: Any) -> None:
    """Answer a question."""
    wiring.get_task_worker().query(fields)


@shared_task(name=messages.TICK, **_FIXED)
def tick() -> None:
    """Do what has come due; for those who tick by an entry of beat."""
    worker_ticker.get_sweep().tick()


extend_tasks()
HOST.connect(
    Hooks(
        names=wiring.get_queue_names,
        identity=wiring.get_identity,
        keeper=wiring.make_lease_keeper,
        lose_claims=wiring.lose_ended,
        ticker=worker_ticker.start,
        wrap_tasks=lambda: wrap_tracers(
            wiring.get_celery_app(), lambda hint: wiring.get_task_worker().claim_and_run(hint)
        ),
        keep_connections=keep_connections,
        workflow_queues=lambda: config().workflow_queues,
        drain=lambda: config().drain,
        fail_timed_out=lambda *given: wiring.get_task_worker().fail_timed_out(*given),
        begin_shutdown=lambda: wiring.get_task_worker().begin_shutdown(),
    )
)
