"""What the demo does, on either stack: some orders, then the flights report."""

import csv
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connection

from examples.flights.workflows import FlightsReport, Report, ReportRequest
from examples.orders import services as shop
from examples.orders.models import LedgerEntry, Order, Product
from tools.demo.account import Account, Follower
from wfapp.client import get_client

LOOK_SECONDS = 0.2
LIMIT_SECONDS = 180.0
STOCK = 100
FIRST_NUMBER = 1001
#: the report is interrupted when so many months are done
MONTHS_BEFORE_THE_FAULT = 3
ALL_MONTHS = list(range(1, 13))
FLIGHTS_ID = "flights-2013"
SHOWN_LINES = 6


class DemoError(RuntimeError):
    """Something didn't end as it should; the text says what."""


@dataclass(frozen=True)
class Customer:
    """An order of the demo and its fate."""

    sku: str
    says: str
    #: None: says nothing
    approved: bool | None = None
    after: timedelta = timedelta(0)
    ends: str = ""


CUSTOMERS = (
    Customer("lamp", "is approved at once", True, timedelta(seconds=1), "shipped"),
    Customer("chair", "is approved on a reminder", True, timedelta(seconds=7), "shipped"),
    Customer("table", "is refused", False, timedelta(seconds=4), "refused"),
    Customer("lamp", "hears nothing", None, ends="expired"),
)


@dataclass
class Followed:
    """All runs that are looked at together."""

    followers: list[Follower] = field(default_factory=list)

    def until_closed(self, each_look: Callable[[], None] = lambda: None) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not all(follower.closed for follower in self.followers):
            if time.monotonic() > deadline:
                raise DemoError(f"not all runs ended within {LIMIT_SECONDS:.0f} s")
            for follower in self.followers:
                follower.look()
            each_look()
            time.sleep(LOOK_SECONDS)


def orders(account: Account) -> dict[str, Customer]:
    """Four orders with four fates, by number; each is checked at its end."""
    account.head("Orders: reserve, charge (fails twice), wait for approval, ship, or undo it all")
    for sku, price_cents in (("lamp", 4900), ("chair", 12900), ("table", 39900)):
        Product.objects.get_or_create(
            sku=sku,
            defaults={"name": sku.title(), "price_cents": price_cents, "available": STOCK},
        )
    # A database that was given may have orders of an earlier demo.
    first = FIRST_NUMBER + Order.objects.count()
    placed = {str(first + place): customer for place, customer in enumerate(CUSTOMERS)}
    timers = []
    followed = Followed()
    for number, customer in placed.items():
        account.say(f"order {number}: one {customer.sku}; it {customer.says}")
        shop.place_order(number, sku=customer.sku, quantity=1, email=f"{customer.sku}@example.org")
        followed.followers.append(follow(f"order {number}", shop.workflow_id(number), account))
        if customer.approved is not None:
            timers.append(_decide_later(number, customer, account))
    account.say()
    try:
        followed.until_closed()
    finally:
        for timer in timers:
            timer.cancel()
    for number, customer in placed.items():
        status = Order.objects.get(number=number).status
        if status != customer.ends:
            raise DemoError(f"order {number} is {status}, not {customer.ends}")
    return placed


def show_orders(account: Account, numbers: Sequence[str]) -> None:
    account.head("The shop's books")
    for number in numbers:
        state = shop.state(number)
        order = Order.objects.get(number=number)
        account.say(
            f"order {order.number}  {order.status:<9} {order.tracking or '-':<16}"
            f" reminded {state.reminders} times, decided by {state.approver or 'nobody'}"
        )
    tries = LedgerEntry.objects.filter(order_number=numbers[0]).order_by("started_at")
    account.say(f"how order {numbers[0]} went, from the ledger of its steps:")
    for entry in tries:
        end = entry.failure or ("done" if entry.ended_at else "its process died")
        account.say(f"    {entry.step:<16} attempt {entry.attempt}  {end}")


def flights(account: Account, directory: Path, fault: Callable[[], None] | None = None) -> Report:
    """The report over 336,776 flights; `fault` strikes when some of its months are done."""
    account.head("Flights: twelve months summed up side by side, then a report and a plot")
    handle = get_client().start_workflow(
        FlightsReport.run,
        ReportRequest(directory=str(directory), months=ALL_MONTHS),
        id=FLIGHTS_ID,
        task_queue="default",
    )
    follower = follow("flights", FLIGHTS_ID, account)
    pending = [fault] if fault else []

    def strike() -> None:
        if pending and len(follower.done) >= MONTHS_BEFORE_THE_FAULT:
            pending.pop()()

    Followed([follower]).until_closed(strike)
    if pending:
        raise DemoError("the report was over before the fault could strike")
    report: Report = handle.result()
    return report


def show_report(account: Account, report: Report) -> None:
    account.head("The report")
    account.say(f"{report.flights:,} flights, {report.cancelled:,} of them cancelled")
    with Path(report.csv_path).open() as file:
        lines = list(csv.DictReader(file))
    busy = [line for line in lines if int(line["flights"]) >= ALL_MONTHS[-1] * 30]
    busy.sort(key=lambda line: -float(line["mean_departure_delay_minutes"]))
    account.say("longest mean delays at departure, where there is a flight on most days:")
    for line in busy[:SHOWN_LINES]:
        account.say(
            f"    {line['carrier']} at {int(line['hour']):2d} h"
            f"  {float(line['mean_departure_delay_minutes']):5.1f} min"
            f"  {int(line['flights']):6,} flights"
        )
    account.say(f"table: {report.csv_path}")
    account.say(f"plot:  {report.svg_path}")


def follow(name: str, workflow_id: str, account: Account) -> Follower:
    """Follow a run by its history."""
    handle = get_client().get_workflow_handle(workflow_id)

    def history() -> list[Mapping[str, Any]]:
        events: list[Mapping[str, Any]] = handle.fetch_history().to_json_dict()["events"]
        return events

    return Follower(name, account, history)


def _decide_later(number: str, customer: Customer, account: Account) -> threading.Timer:
    def decide() -> None:
        words = "approved" if customer.approved else "refused"
        account.tell("the shop", f"order {number} is {words}")
        shop.decide(number, approved=bool(customer.approved), by="Ada")
        connection.close()

    timer = threading.Timer(customer.after.total_seconds(), decide)
    timer.daemon = True
    timer.start()
    return timer
