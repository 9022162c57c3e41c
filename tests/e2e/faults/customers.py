"""Places the planned orders and decides them, each at its time, whatever is down meanwhile."""

import threading
import time

from django.db import connection

from examples.orders import services
from tests.e2e.faults.patience import patiently
from tests.e2e.faults.plan import End, Plan, PlannedOrder

SKUS = ("lamp", "chair", "table", "shelf")
PRICE_CENTS = 1999
STOCK = 1_000_000


class Customers(threading.Thread):
    """One thread, so that orders come in the plan's order; `error` has what ended it early."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(name="customers", daemon=True)
        self.placed = 0
        self.decided = 0
        self.error: Exception | None = None
        self._stop_asked = threading.Event()
        self._deeds = sorted(
            [(order.placed_after, order, self._place) for order in plan.orders]
            + [
                (order.placed_after + order.decided_after, order, self._decide)
                for order in plan.orders
                if order.decided_after is not None
            ],
            key=lambda deed: deed[0],
        )

    def run(self) -> None:
        begin = time.monotonic()
        try:
            for at, order, deed in self._deeds:
                if self._stop_asked.wait(max(0.0, begin + at.total_seconds() - time.monotonic())):
                    return
                deed(order)
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            self.error = error
        finally:
            connection.close()

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()

    def _place(self, order: PlannedOrder) -> None:
        # Again after an error: the order and its run exist together or not at all.
        patiently(
            lambda: services.place_order(
                order.number,
                sku=SKUS[self.placed % len(SKUS)],
                quantity=1 + self.placed % 3,
                email=f"{order.number.lower()}@example.org",
                approval_timeout=order.approval_timeout,
            )
        )
        self.placed += 1

    def _decide(self, order: PlannedOrder) -> None:
        # Twice does no harm: the first decision counts.
        patiently(
            lambda: services.decide(
                order.number, approved=order.end is End.SHIPPED, by="the fault test"
            )
        )
        self.decided += 1
