"""Lines of workflow code: silent on replay, held until the task is committed."""

import logging
from typing import Any

import pytest

from tests.support.live_run import LiveRun
from wfcore import workflow

own = workflow.LoggerAdapter(logging.getLogger("shop"), None)


@workflow.defn
class Talks:
    @workflow.run
    async def run(self) -> None:
        workflow.logger.info("begins with %s", "arguments")
        await workflow.sleep(1)
        own.warning("ends", extra={"order": 7})
        try:
            raise ValueError("caught")
        except ValueError:
            own.exception("an error")

    @workflow.query
    def ask(self) -> str:
        workflow.logger.info("asked")
        return "answer"

    @workflow.update
    def change(self) -> None:
        workflow.logger.info("changed")


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(" ({")[0] for record in caplog.records]


def test_lines_come_out_when_they_are_released(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.work()
    assert caplog.records == []
    run.instance.release_logs()
    assert messages(caplog) == ["begins with arguments"]
    run.instance.release_logs()
    assert len(caplog.records) == 1

    run.fire("1")
    run.work()
    run.instance.release_logs()
    assert messages(caplog) == ["begins with arguments", "ends", "an error"]


def test_lines_of_a_task_that_was_not_committed_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.instance.activate(run.begin_task())
    run.instance.evict()
    run.instance.release_logs()
    assert caplog.records == []


def test_a_line_says_where_it_comes_from(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.work()
    run.fire("1")
    run.work()
    run.instance.release_logs()
    first, second, third = caplog.records
    details: dict[str, Any] = first.temporal_workflow  # type: ignore[attr-defined]
    assert details["workflow_id"] == "order-1"
    assert first.name == "wfcore.workflow"
    assert first.pathname == __file__
    assert first.funcName == "run"
    assert "'workflow_type': 'Talks'" in first.getMessage()
    assert second.order == 7  # type: ignore[attr-defined]
    assert third.exc_info is not None
    assert isinstance(third.exc_info[1], ValueError)


def test_a_query_is_heard_even_of_a_replayed_instance(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.work()
    run.evict()
    run.answer("ask")
    run.instance.release_logs()
    assert messages(caplog) == ["asked"]


def test_an_update_is_named(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.work()
    run.update("u1", "change")
    run.work()
    run.instance.release_logs()
    record = caplog.records[-1]
    assert record.temporal_workflow["update_id"] == "u1"  # type: ignore[attr-defined]


def test_a_logger_can_be_told_to_speak_on_replay(caplog: pytest.LogCaptureFixture) -> None:
    run = LiveRun(Talks)
    run.work()
    run.evict()
    run.fire("1")
    workflow.logger.log_during_replay = True
    try:
        run.work()
    finally:
        workflow.logger.log_during_replay = False
    run.instance.release_logs()
    assert messages(caplog)[0] == "begins with arguments"


def test_outside_of_a_workflow_it_is_a_plain_logger(caplog: pytest.LogCaptureFixture) -> None:
    own.info("plain")
    (record,) = caplog.records
    assert record.getMessage() == "plain"
    assert record.pathname == __file__


def test_a_level_that_is_off_costs_nothing() -> None:
    quiet = workflow.LoggerAdapter(logging.getLogger("quiet"), None)
    quiet.base_logger.setLevel(logging.ERROR)

    class Loud:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    quiet.info(Loud())
