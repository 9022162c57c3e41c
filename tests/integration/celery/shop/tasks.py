"""Celery tasks that know nothing of workflows."""

import time
from typing import Any

from celery import Task, shared_task
from celery.exceptions import SoftTimeLimitExceeded

from tests.integration.celery.shop import ledger
from wfapp.dispatch.transactional import transactional_activity


class Recorded(Task):  # type: ignore[type-arg]  # Celery's own stubs
    """A base class with hooks."""

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        ledger.begin(f"{args[0]} before_start")

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        ledger.begin(f"{args[0]} on_success")

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        ledger.begin(f"{args[0]} on_retry")


@shared_task(name="shop.receipt", base=Recorded, bind=True)
def receipt(self: Any, what: str, *, copies: int = 1) -> dict[str, Any]:
    with ledger.entry(what, self.request.retries + 1):
        return {"id": self.request.id, "retries": self.request.retries, "copies": copies}


@shared_task(
    name="shop.unsteady",
    base=Recorded,
    bind=True,
    autoretry_for=(OSError,),
    max_retries=3,
    retry_backoff=True,
    retry_jitter=False,
)
def unsteady(self: Any, what: str, failures: int) -> int:
    with ledger.entry(what, self.request.retries + 1):
        if self.request.retries < failures:
            raise OSError("not yet")
    return int(self.request.retries)


@shared_task(name="shop.handover", bind=True)
def handover(self: Any, what: str) -> Any:
    return self.replace(receipt.s(what, copies=2))


@shared_task(name="shop.routed", bind=True)
def routed(self: Any, what: str) -> str:
    with ledger.entry(what):
        return str(self.request.delivery_info["routing_key"])


@shared_task(name="shop.where", bind=True)
def where(self: Any, what: str) -> str:
    return str(self.request.delivery_info["routing_key"])


@shared_task(name="shop.slow", soft_time_limit=1, time_limit=30)
def slow(what: str) -> str:
    with ledger.entry(what):
        try:
            time.sleep(20)
        except SoftTimeLimitExceeded:
            return "stopped softly"
    return "not stopped"


@shared_task(name="shop.endless", time_limit=1)
def endless(what: str) -> None:
    with ledger.entry(what):
        time.sleep(60)


@shared_task(name="shop.stock")
@transactional_activity
def stock(what: str) -> str:
    ledger.begin(what)
    return f"{what} stocked"
