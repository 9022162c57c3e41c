"""Work that follows is done without a message only by who can do it, and only one piece of it."""

from datetime import UTC, datetime

from wfapp.dispatch.following import end_of_code, following, keep
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, WakeTicker


def task(run_id: str = "r", task_queue: str = "default", sent: int = 0) -> DispatchWorkflowTask:
    return DispatchWorkflowTask(
        namespace="default",
        workflow_id="w",
        run_id=run_id,
        task_queue=task_queue,
        scheduled_event_id=8,
        attempt=1,
        sent=sent,
    )


def test_nothing_is_kept_outside_of_a_block() -> None:
    assert not keep(task())


def test_the_first_workflow_task_of_a_served_queue_is_kept() -> None:
    with following(lambda task_queue: task_queue == "default") as tasks:
        end_of_code()
        assert not keep(task(task_queue="elsewhere"))
        assert keep(task("first"))
        assert not keep(task("second"))
    assert [each.run_id for each in tasks] == ["first"]
    assert not keep(task())


def test_what_the_activity_makes_ready_itself_goes_out_at_once() -> None:
    with following(lambda task_queue: True) as tasks:
        assert not keep(task("started by the activity, which may wait for it"))
        end_of_code()
        assert keep(task("its own"))
    assert [each.run_id for each in tasks] == ["its own"]
    end_of_code()
    assert not keep(task())


def test_what_is_announced_again_and_what_is_no_workflow_task_goes_out() -> None:
    activity = DispatchActivity(
        namespace="default",
        workflow_id="w",
        run_id="r",
        task_queue="default",
        scheduled_event_id=5,
        activity_type="greet",
        attempt=1,
        stamp=1,
    )
    with following(lambda task_queue: True) as tasks:
        end_of_code()
        assert not keep(task(sent=1))
        assert not keep(activity)
        assert not keep(WakeTicker(at=datetime.now(UTC)))
    assert tasks == []
