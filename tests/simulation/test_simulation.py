"""Some thousand runs of the simulator, and that the simulator does what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.__main__ import explain, main
from tests.simulation.checks import well_formed
from wfcore.history.machines import table, workflow_task
from wfcore.history.step import Step
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import CommandType
from wfcore.testing.simulation.faults import Fault
from wfcore.testing.simulation.fibers import Turns
from wfcore.testing.simulation.tally import Tally
from wfcore.testing.simulator import Plan, simulate

RUNS_PER_BLOCK = 100
BLOCKS = 50
#: Kinds of requests that actors make.
KINDS = {
    "answer a query",
    "cancel",
    "cancel an activity",
    "change an activity's options",
    "claim a query",
    "claim a workflow task",
    "claim an activity",
    "complete a workflow task",
    "complete an activity",
    "count",
    "describe",
    "fail a workflow task",
    "fail an activity",
    "heartbeat",
    "history",
    "history awaited",
    "history backwards",
    "list",
    "lose a worker",
    "pause an activity",
    "poll an update",
    "poll for a workflow task",
    "poll for an activity",
    "query",
    "reset an activity",
    "signal",
    "signal again",
    "signal inside a transaction",
    "signal with start",
    "start",
    "start again",
    "start inside a transaction",
    "sweep",
    "terminate",
    "unpause an activity",
    "update",
    "update again",
    "update with start",
}
#: Calls that nothing here makes: another set of ports needs them, or only people do.
NOT_MADE = {
    "Dispatcher.wait_tasks",
    "Store.namespaces",
    "Store.read_inbox",
    "Store.read_journal",
}
#: Calls that only few of these runs make.
SELDOM_MADE = {"Store.requested_runs", "Transaction.memo"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_all_rules_hold(block: int) -> None:
    with Turns() as turns:
        for seed in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
            found = simulate(Plan(seed=seed), turns, checks=[well_formed])
            assert not found.violations, "\n".join(explain(found, turns))


#: Kinds of commands that the engine has carried out in the runs that are counted.
CARRIED_OUT: set[CommandType] = set()


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Counts of some hundred runs."""
    counted = Tally()
    carry_out = table.carry_out

    def counting(step: Step, command: Command, completed: int) -> None:
        carry_out(step, command, completed)
        CARRIED_OUT.add(command.command_type)

    with pytest.MonkeyPatch.context() as patch, Turns() as turns:
        patch.setattr(table, "carry_out", counting)
        for seed in range(400):
            found = simulate(Plan(seed=seed), turns)
            counted.add(found.requests, found.faults, found.workflow_runs, found.events)
    return counted


@pytest.mark.timeout(300)
def test_every_command_is_carried_out(tally: Tally) -> None:
    nexus = {CommandType.SCHEDULE_NEXUS_OPERATION, CommandType.REQUEST_CANCEL_NEXUS_OPERATION}
    assert tally.fewest > 0
    assert set(CommandType) - CARRIED_OUT == {CommandType.UNSPECIFIED, *nexus}


@pytest.mark.timeout(300)
def test_each_run_makes_enough_requests_of_every_kind(tally: Tally) -> None:
    assert tally.fewest >= 30
    shares = tally.shares()
    assert set(shares) == KINDS
    assert {kind: share for kind, share in shares.items() if share < 0.01} == {}


@pytest.mark.timeout(300)
def test_something_goes_wrong_everywhere(tally: Tally) -> None:
    assert set(tally.faults_by_kind()) == set(Fault) - {Fault.CLOCK_SKEW}
    assert set(tally.calls_without(Fault.OVERTAKEN)) - SELDOM_MADE == NOT_MADE
    for fault in (Fault.CRASH_AFTER, Fault.UNKNOWN_OUTCOME):
        where = {call for call, kind in tally.faults if kind is fault}
        assert {
            "commit of Store.put_inbox",
            "commit of Store.replace_activity",
            "commit of Transaction.save",
        } <= where


def test_a_run_repeats_itself_in_another_process() -> None:
    def trace(hash_seed: str) -> str:
        command = [
            sys.executable,
            "-m",
            "tests.simulation",
            "--runs",
            "1",
            "--seed",
            "7",
            "--trace",
        ]
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        return "\n".join(done.stdout.splitlines()[:-1])  # the last line tells how long it took

    first = trace("1")
    assert "committed:" in first
    assert trace("2") == first


def test_a_run_that_breaks_a_rule_is_told_and_shrunk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workflow_task, "is_held", lambda step, token: is_any_task(step))
    assert main(["--runs", "300", "--seed", "1"]) == 1
    told = capsys.readouterr().out
    assert "breaks a rule: an answer belongs to the claim that stands" in told
    assert "again: python -m tests.simulation --runs 1 --seed" in told
    kept = told.split("steps [")[1].split("]")[0].split(",")
    assert 1 < len(kept) < 25


def is_any_task(step: Step) -> bool:
    return step.started_task is not None
