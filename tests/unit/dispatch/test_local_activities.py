"""Celery tasks as local activities: their body runs inside the workflow task, without a message."""

from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer

from tests.unit.worker.world import QUEUE, World, kinds
from wfapp.dispatch.celery_tasks import CeleryTaskActivity, extend_tasks
from wfcore import workflow
from wfcore.activity import Definition
from wfcore.exceptions import FailureError
from wfcore.protocol.enums import EventType

extend_tasks()
seen: list[Any] = []


@workflow.defn
class Near:
    @workflow.run
    async def run(self, task: str, value: int) -> Any:
        try:
            return await workflow.execute_local_activity(
                task, value, start_to_close_timeout=timedelta(seconds=10)
            )
        except FailureError as error:
            return str(error)


@pytest.fixture
def app() -> Celery:
    seen.clear()
    app = Celery("test", broker="memory://", set_as_current=False)
    app.conf.task_ignore_result = True

    @app.task(name="double", shared=False)
    def double(value: int) -> int:
        return value * 2

    @app.task(name="retries", shared=False, bind=True)
    def retries(self: Any, value: int) -> str:
        seen.append(self.request.retries)
        if self.request.retries < 2:
            raise self.retry(countdown=0.01)
        return f"retry {self.request.retries}"

    @app.task(name="changes", shared=False, bind=True)
    def changes(self: Any, value: int) -> None:
        seen.append(value)
        raise self.retry(args=[value + 1], countdown=0)

    @app.task(name="breaks", shared=False)
    def breaks(value: int) -> None:
        seen.append(value)
        raise ValueError("broken")

    app.finalize()
    for each in app.tasks.values():
        each.__trace__ = build_tracer(each.name, each, app=app)
    return app


async def _result(app: Celery, task: str) -> tuple[Any, list[EventType]]:
    world = World([Near], guarded=False)
    world.registry.activity = lambda name: Definition(  # type: ignore[method-assign]  # as the project's
        name=name, fn=CeleryTaskActivity(app, name), is_async=False
    )
    handle = await world.client.start_workflow(
        Near.run, args=[task, 4], id="order-1", task_queue=QUEUE
    )
    world.settle()
    return await handle.result(), await kinds(handle)


async def test_its_body_runs_inside_the_workflow_task(app: Celery) -> None:
    result, events = await _result(app, "double")
    assert result == 8
    assert EventType.MARKER_RECORDED in events
    assert EventType.ACTIVITY_TASK_SCHEDULED not in events


async def test_its_own_retries_are_attempts_in_the_worker(app: Celery) -> None:
    result, events = await _result(app, "retries")
    assert result == "retry 2"
    assert seen == [0, 1, 2]
    assert events.count(EventType.MARKER_RECORDED) == 1


async def test_an_error_is_final_unless_the_task_retries(app: Celery) -> None:
    result, _ = await _result(app, "breaks")
    assert result == "ValueError: broken"
    assert seen == [4]


async def test_other_arguments_for_a_retry_are_refused(app: Celery) -> None:
    result, _ = await _result(app, "changes")
    assert "use workflow.execute_activity" in result
    assert seen == [4]
