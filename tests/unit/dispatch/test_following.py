"""Work that follows is done without a message only by who can do it, and only one piece of it."""

from datetime import UTC, datetime

from wfapp.dispatch.following import (
    ClaimedTask,
    OwnSlot,
    chained,
    end_of_code,
    following,
    keep,
    keep_claimed,
    kept_queues,
)
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, WakeTicker
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.common import ActivityType
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse


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


def activity_command(name: str = "greet") -> ScheduleActivityTask:
    return ScheduleActivityTask(activity_id=name, activity_type=ActivityType(name=name))


def own_slot() -> OwnSlot:
    return OwnSlot(lambda activity: "default" if activity.activity_id != "foreign" else None)


def test_one_activity_comes_to_the_thread_that_schedules_it() -> None:
    slot = own_slot()
    commands = [activity_command("foreign"), activity_command("a"), activity_command("b")]
    with chained() as chain:
        assert slot.reserve(commands) == [False, True, False]
        assert slot.reserve(commands) == [False, False, False], "room for one"
        slot.run(PollActivityTaskQueueResponse(activity_id="a"))
        assert slot.reserve(commands) == [False, False, False], "one waits"
        assert [each.task.activity_id for each in chain.activities] == ["a"]
        assert chain.activities.popleft().task_queue == "default"
        assert slot.reserve(commands) == [False, True, False]
        slot.give_back(1)
        assert slot.reserve(commands) == [False, True, False]


def test_outside_of_a_chain_and_behind_its_end_there_is_no_room() -> None:
    slot = own_slot()
    assert slot.reserve([activity_command()]) == [False]
    with chained(seconds=-1.0):
        assert slot.reserve([activity_command()]) == [False]
    with chained(activities=1) as chain:
        assert slot.reserve([activity_command()]) == [True]
        slot.run(PollActivityTaskQueueResponse())
        chain.activities.clear()
        assert slot.reserve([activity_command()]) == [False]


def test_a_claimed_task_takes_the_place_of_one_that_is_announced() -> None:
    assert kept_queues() is None
    with following(lambda task_queue: task_queue == "default") as tasks:
        serves = kept_queues()
        assert serves is not None
        assert serves("default")
        assert not serves("elsewhere")
        claimed = ClaimedTask(namespace="default", task=PollWorkflowTaskQueueResponse())
        keep_claimed(claimed)
        assert kept_queues() is None
        assert not keep(task())
    assert tasks == [claimed]
