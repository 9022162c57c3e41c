"""Activities that heartbeat, within a transaction that no other thread sees into."""

from datetime import timedelta

import pytest

from wfapp import wiring
from wfapp.client import get_client
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.testing import WorkflowEnvironment
from wfcore import activity, workflow


@activity.defn
def counts_up() -> int:
    begun = activity.info().heartbeat_details
    reached = begun[0] if begun else 0
    for number in range(reached + 1, reached + 3):
        activity.heartbeat(number)
        # As long as it takes another thread to look.
        assert not activity.is_cancelled()
        activity.wait_for_cancelled_sync(timeout=0.05)
    if not begun:
        raise RuntimeError("it goes on in the next attempt")
    return number


@workflow.defn
class Counts:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(
            counts_up,
            start_to_close_timeout=timedelta(minutes=1),
            heartbeat_timeout=timedelta(seconds=10),
        )


@pytest.mark.timeout(30)
def test_heartbeats_cancel_nothing_and_reach_the_next_attempt(db: None) -> None:
    registry = ProjectRegistry(wiring.get_celery_app())
    registry.add_workflow(Counts)
    registry.add_activity(counts_up)
    with wiring.replaced(registry=registry), WorkflowEnvironment():
        assert get_client().start_workflow(Counts.run).result() == 4
