"""Steps of an order: done again they change nothing, and the ledger tells how often they ran."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from examples.orders import activities, tasks
from examples.orders.models import LedgerEntry, Order, Payment, Product, Receipt, Reservation
from examples.orders.payments import PaymentDeclinedError
from wfcore.exceptions import ApplicationError

pytestmark = pytest.mark.django_db

STOCK = 10


@pytest.fixture
def order() -> Order:
    product = Product.objects.create(sku="lamp", name="Lamp", price_cents=4900, available=STOCK)
    return Order.objects.create(
        number="1001", product=product, quantity=3, amount_cents=14700, email="ada@example.org"
    )


def available() -> int:
    return Product.objects.get(sku="lamp").available


def twice(step: Callable[..., object], *arguments: object) -> None:
    step(*arguments)
    step(*arguments)


def charged(order: Order) -> str:
    """Charge until it works; gives the reference."""
    for _ in range(2):
        with pytest.raises(PaymentDeclinedError):
            activities.charge(order.number, order.amount_cents)
    return activities.charge(order.number, order.amount_cents)


def test_stock_is_taken_once(order: Order) -> None:
    twice(activities.reserve_stock, order.number)
    assert available() == STOCK - 3
    assert Reservation.objects.get().quantity == 3


def test_stock_is_given_back_once(order: Order) -> None:
    activities.reserve_stock(order.number)
    twice(activities.release_stock, order.number)
    assert available() == STOCK
    assert not Reservation.objects.exists()


def test_what_is_not_there_is_refused_for_good(order: Order) -> None:
    Product.objects.update(available=2)
    with pytest.raises(ApplicationError, match="2 of lamp left, 3 ordered") as raised:
        activities.reserve_stock(order.number)
    assert raised.value.non_retryable
    assert available() == 2


def test_a_charge_is_declined_twice_then_made_once(order: Order) -> None:
    reference = charged(order)
    assert activities.charge(order.number, order.amount_cents) == reference
    payment = Payment.objects.get()
    assert (payment.declined, payment.amount_cents, payment.refunded) == (2, 14700, False)


def test_a_refund_without_a_charge_does_nothing(order: Order) -> None:
    activities.refund(order.number)
    assert not Payment.objects.exists()
    charged(order)
    twice(activities.refund, order.number)
    assert Payment.objects.get().refunded


def test_one_receipt_is_sent(order: Order) -> None:
    twice(tasks.send_receipt, order.number)
    assert Receipt.objects.get().address == "ada@example.org"


def test_a_receipt_outlives_a_database_that_is_away(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Receipt.objects.bulk_create
    errors = iter([OperationalError("server closed the connection"), InterfaceError("closed")])

    def away_twice(*args: Any, **options: Any) -> Any:
        for error in errors:
            raise error
        return write(*args, **options)

    monkeypatch.setattr(Receipt.objects, "bulk_create", away_twice)
    assert tasks.send_receipt.apply([order.number]).get() == "ada@example.org"
    entries = LedgerEntry.objects.filter(step="send_receipt").order_by("started_at")
    assert [bool(entry.failure) for entry in entries] == [True, True, False]


def test_the_ledger_has_every_execution_and_what_it_raised(order: Order) -> None:
    charged(order)
    entries = LedgerEntry.objects.order_by("started_at")
    assert [entry.step for entry in entries] == ["charge"] * 3
    assert [bool(entry.failure) for entry in entries] == [True, True, False]
    assert entries[0].failure.startswith("PaymentDeclinedError: payment of 1001 declined")
    assert all(entry.ended_at for entry in entries)


@pytest.mark.django_db(transaction=True)
def test_the_ledger_has_a_step_whose_process_was_killed(
    order: Order, project_environment: dict[str, str]
) -> None:
    code = """
        import os, signal, django
        django.setup()
        from examples.orders.ledger import recorded

        @recorded
        def dies(order_number):
            os.kill(os.getpid(), signal.SIGKILL)

        dies("1001")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=project_environment, check=False
    )
    assert done.returncode == -9
    entry = LedgerEntry.objects.get(step="dies")
    assert (entry.ended_at, entry.failure) == (None, "")
