"""Collects what the witnesses say when all is over, and judges it."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Count, F, Sum

from examples.orders.models import LedgerEntry, Order, Payment, Product, Receipt, Reservation
from examples.orders.services import workflow_id
from tests.e2e.faults.customers import STOCK
from tests.e2e.faults.plan import End, Plan
from tests.e2e.faults.verdict import Execution, activities_of, judge
from wfapp.client import get_client
from wfapp.models import RunJournal

ROOT = Path(__file__).resolve().parents[3]
JUDGE = ROOT / "tests/support/replay_check.py"
TWIN = ROOT / "tests/twins/orders.py"
ATTEMPT_LOST = "attempt_lost"


@dataclass
class Evidence:
    """What was found; `findings` is empty when all is right."""

    findings: list[str] = field(default_factory=list)
    activities: int = 0
    executions: int = 0
    failures_raised: int = 0
    attempts_lost: int = 0
    #: executions without an end: their process died in them
    cut_short: int = 0
    events: int = 0
    replayed: int = 0
    journal: Counter[str] = field(default_factory=Counter)


def collect(plan: Plan, directory: Path) -> Evidence:
    """Judge all runs of the plan; histories are left in `directory`."""
    evidence = Evidence()
    directory.mkdir(exist_ok=True)
    ledger = _ledger()
    lost = _journal(evidence)
    for order in plan.orders:
        history = _history(order.number)
        (directory / f"{order.number}.json").write_text(json.dumps(history))
        run_id = history["events"][0]["workflowExecutionStartedEventAttributes"][
            "originalExecutionRunId"
        ]
        executions = ledger[run_id]
        found = judge(history, executions, lost[run_id]) + _judge_end(order.end, history)
        evidence.findings += [f"{order.number}: {finding}" for finding in found]
        evidence.activities += len(activities_of(history))
        evidence.events += len(history["events"])
        evidence.executions += len(executions)
        evidence.failures_raised += sum(bool(e.failure) for e in executions)
        evidence.cut_short += sum(not e.has_end for e in executions)
        evidence.attempts_lost += sum(lost[run_id].values())
    evidence.findings += _judge_shop(plan)
    _replay(directory, evidence)
    return evidence


def _history(number: str) -> dict[str, Any]:
    handle = get_client().get_workflow_handle(workflow_id(number))
    history: dict[str, Any] = handle.fetch_history().to_json_dict()
    return history


def _ledger() -> dict[str, list[Execution]]:
    found: dict[str, list[Execution]] = defaultdict(list)
    for entry in LedgerEntry.objects.order_by("started_at"):
        found[entry.run_id].append(
            Execution(
                activity_id=entry.activity_id,
                attempt=entry.attempt,
                has_end=entry.ended_at is not None,
                failure=entry.failure,
            )
        )
    return found


def _journal(evidence: Evidence) -> dict[str, Counter[int]]:
    lost: dict[str, Counter[int]] = defaultdict(Counter)
    for run_id, kind, event_id in RunJournal.objects.values_list(
        "run_id", "kind", "scheduled_event_id"
    ):
        evidence.journal[kind] += 1
        if kind == ATTEMPT_LOST:
            lost[str(run_id)][event_id] += 1
    return lost


def _judge_end(end: End, history: dict[str, Any]) -> list[str]:
    last = history["events"][-1]["eventType"]
    if last != "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED":
        return [f"the run ended by {last}, not {end}"]
    return []


def _judge_shop(plan: Plan) -> list[str]:
    """The shop's own books: every order at its right end, nothing done twice, nothing lacking."""
    statuses = dict(Order.objects.values_list("number", "status"))
    findings = [
        f"{order.number} is {statuses.get(order.number)}, not {order.end}"
        for order in plan.orders
        if statuses.get(order.number) != order.end
    ]
    shipped = {order.number for order in plan.orders if order.end is End.SHIPPED}
    books = {
        "have a receipt": Receipt.objects.values_list("order__number", flat=True),
        "hold stock": Reservation.objects.values_list("order__number", flat=True),
        "have paid": Payment.objects.exclude(reference="")
        .filter(refunded=False)
        .values_list("order__number", flat=True),
    }
    for what, numbers in books.items():
        wrong = set(numbers) ^ shipped
        if wrong:
            findings.append(f"{sorted(wrong)} {what} and should not, or the other way round")
    held = dict(
        Reservation.objects.values(sku=F("order__product__sku"))
        .annotate(units=Sum("quantity"), orders=Count("id"))
        .values_list("sku", "units")
    )
    for sku, available in Product.objects.values_list("sku", "available"):
        if available + held.get(sku, 0) != STOCK:
            findings.append(f"{sku}: {available} left and {held.get(sku, 0)} held of {STOCK}")
    return findings


def _replay(directory: Path, evidence: Evidence) -> None:
    """Temporal's own Replayer over every history, against the twin."""
    results = directory.parent / "replays.json"
    done = subprocess.run(
        [
            *(sys.executable, str(JUDGE), "--complete", "--quiet", "--json", str(results)),
            *(str(TWIN), str(directory)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = json.loads(results.read_text()) if results.exists() else []
    evidence.replayed = sum(row["ok"] for row in rows)
    if done.returncode or evidence.replayed < len(list(directory.iterdir())):
        evidence.findings.append(f"replay: {done.stdout[-3000:]}{done.stderr[-1000:]}")
