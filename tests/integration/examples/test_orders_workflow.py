"""The life of an order, from end to end, with time that is moved: three days pass at once."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from examples.orders import services as shop
from examples.orders.models import LedgerEntry, Order, Payment, Product, Receipt, Reservation
from examples.orders.workflows import OrderState
from wfapp.client import WorkflowHandle, get_client
from wfapp.testing import WorkflowEnvironment
from wfcore.client import WorkflowFailureError

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
STOCK = 10
HOUR = timedelta(hours=1)


@pytest.fixture
def environment() -> Iterator[WorkflowEnvironment]:
    Product.objects.create(sku="lamp", name="Lamp", price_cents=4900, available=STOCK)
    with WorkflowEnvironment() as found:
        yield found


def place(number: str = "1001", quantity: int = 1) -> WorkflowHandle:
    shop.place_order(number, sku="lamp", quantity=quantity, email="ada@example.org")
    return get_client().get_workflow_handle(shop.workflow_id(number))


def status(number: str = "1001") -> str:
    return Order.objects.get(number=number).status


def nothing_is_kept() -> bool:
    """Stock and money are where they were."""
    return (
        Product.objects.get().available == STOCK
        and not Reservation.objects.exists()
        and not Payment.objects.exclude(reference="").filter(refunded=False).exists()
    )


def test_an_approved_order_is_shipped(environment: WorkflowEnvironment) -> None:
    place()
    environment.sleep(HOUR)
    assert shop.state("1001") == OrderState("waiting for approval", 0, "")
    shop.decide("1001", approved=True, by="Ada")
    outcome = shop.outcome("1001")
    assert (outcome.status, outcome.receipt_to) == ("shipped", "ada@example.org")
    assert outcome.tracking == Order.objects.get().tracking
    assert status() == "shipped"
    assert Product.objects.get().available == STOCK - 1
    assert Receipt.objects.count() == 1


def test_the_charge_takes_three_attempts(environment: WorkflowEnvironment) -> None:
    place()
    environment.sleep(HOUR)
    tries = LedgerEntry.objects.filter(step="charge").order_by("attempt")
    assert [entry.attempt for entry in tries] == [1, 2, 3]
    assert [bool(entry.failure) for entry in tries] == [True, True, False]


def test_the_first_decision_counts(environment: WorkflowEnvironment) -> None:
    place()
    shop.decide("1001", approved=True, by="Ada")
    shop.decide("1001", approved=False, by="Bob")
    assert shop.outcome("1001").status == "shipped"
    assert shop.state("1001").approver == "Ada"


def test_a_refused_order_is_undone(environment: WorkflowEnvironment) -> None:
    place()
    environment.sleep(HOUR)
    shop.decide("1001", approved=False, by="Ada")
    assert shop.outcome("1001").status == "refused"
    assert status() == "refused"
    assert nothing_is_kept()


def test_after_three_days_and_two_reminders_an_order_expires(
    environment: WorkflowEnvironment,
) -> None:
    before = environment.now()
    place()
    outcome = shop.outcome("1001")
    assert (outcome.status, outcome.reminders) == ("expired", 2)
    assert timedelta(days=3) <= environment.now() - before < timedelta(days=3, hours=1)
    assert nothing_is_kept()


def test_a_cancelled_order_is_undone(environment: WorkflowEnvironment) -> None:
    handle = place()
    environment.sleep(HOUR)
    handle.cancel(reason="the customer left")
    with pytest.raises(WorkflowFailureError):
        handle.result()
    assert status() == "cancelled"
    assert nothing_is_kept()


def test_what_is_not_in_stock_fails_the_order(environment: WorkflowEnvironment) -> None:
    handle = place(quantity=STOCK + 1)
    with pytest.raises(WorkflowFailureError) as raised:
        handle.result()
    assert "10 of lamp left, 11 ordered" in str(raised.value.__cause__.__cause__)
    assert status() == "cancelled"
    assert nothing_is_kept()


def test_an_order_is_placed_once(environment: WorkflowEnvironment) -> None:
    place()
    place()
    assert Order.objects.count() == 1
    assert get_client().count_workflows().count == 1


def test_temporals_replayer_accepts_each_end(
    environment: WorkflowEnvironment, tmp_path: Path
) -> None:
    handles = {end: place(end) for end in ("shipped", "refused", "expired", "cancelled")}
    environment.sleep(HOUR)
    shop.decide("shipped", approved=True, by="Ada")
    shop.decide("refused", approved=False, by="Ada")
    handles["cancelled"].cancel()
    environment.sleep(timedelta(days=4))
    for end, handle in handles.items():
        assert status(end) == end
        (tmp_path / f"{end}.json").write_text(json.dumps(handle.fetch_history().to_json_dict()))
    judge, twin = "tests/support/replay_check.py", "tests/twins/orders.py"
    done = subprocess.run(
        [sys.executable, judge, "--complete", "--mutate", twin, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 histories as expected" in done.stdout
