"""A task that the shop had before it had workflows; it knows nothing of them."""

import time

from celery import shared_task
from django.db import InterfaceError, OperationalError

from examples.orders.conf import order_settings
from examples.orders.ledger import recorded
from examples.orders.models import Order, Receipt


# Celery repeats only a task that asks for it: a database that is away costs no order its receipt.
@shared_task(autoretry_for=(OperationalError, InterfaceError), retry_backoff=True, max_retries=10)
@recorded
def send_receipt(order_number: str) -> str:
    """Mail the receipt; gives the address."""
    time.sleep(order_settings().work.total_seconds())
    order = Order.objects.get(number=order_number)
    Receipt.objects.bulk_create([Receipt(order=order, address=order.email)], ignore_conflicts=True)
    return order.email
