"""While a run's code hasn't seen that it is asked to cancel, none of its activities begins."""

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import cancel_activity, timer
from wfcore.history.effects import DispatchActivity, Effect

WAIT = timer("later", 3600)


class Watched(Probe):
    """Keeps what was announced."""

    def __init__(self) -> None:
        self.sent: list[Effect] = []
        super().__init__(on_dispatch=self.sent.append)

    def announced(self) -> list[DispatchActivity]:
        """Activities, since this was asked last."""
        found = [each for each in self.sent if isinstance(each, DispatchActivity)]
        self.sent.clear()
        return found

    def has_activity(self) -> bool:
        """Whether a worker gets one."""
        return bool(self.poll_activity().task_token)


def test_an_activity_that_is_cancelled_with_its_run_never_begins() -> None:
    probe = Watched()
    workflow_id, _ = probe.with_activity()
    (message,) = probe.announced()
    probe.cancel(workflow_id)
    assert not probe.has_activity()
    assert not probe.service.claim_activity(message).task_token
    task = probe.poll()
    assert not probe.has_activity()
    probe.answer(task, cancel_activity(5))
    assert not probe.has_activity()
    assert "ACTIVITY_TASK_CANCELED" in probe.types(workflow_id)
    assert probe.announced() == []


def test_one_that_the_code_lets_live_is_announced_at_once() -> None:
    probe = Watched()
    workflow_id, _ = probe.with_activity()
    first = probe.announced()
    probe.cancel(workflow_id)
    assert not probe.has_activity()
    probe.answer(probe.poll(), WAIT)
    again = probe.announced()
    assert (
        [each.scheduled_event_id for each in again]
        == [5]
        == [each.scheduled_event_id for each in first]
    )
    assert probe.has_activity()


@pytest.mark.parametrize("what", ["signal", "failed task"])
def test_what_else_is_outstanding_holds_nothing_back(what: str) -> None:
    probe = Watched()
    workflow_id, _ = probe.with_activity()
    if what == "signal":
        probe.signal(workflow_id)
    else:
        probe.cancel(workflow_id)
        probe.fail_task(probe.poll())
    assert probe.has_activity()


def test_a_later_task_of_a_run_that_is_cancelling_holds_nothing_back() -> None:
    probe = Watched()
    workflow_id, _ = probe.with_activity()
    probe.cancel(workflow_id)
    probe.answer(probe.poll(), WAIT)
    probe.announced()
    probe.signal(workflow_id)
    assert probe.has_activity()
    probe.answer(probe.poll())
    assert probe.announced() == []


def test_a_claim_from_before_the_request_is_had_again() -> None:
    probe = Watched()
    workflow_id, _ = probe.with_activity()
    (message,) = probe.announced()
    first = probe.service.claim_activity(message, request_id="r")
    probe.cancel(workflow_id)
    assert probe.service.claim_activity(message, request_id="r") == first
    assert first.task_token
