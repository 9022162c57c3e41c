"""What the shop's views call."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import transaction

from examples.orders.conf import order_settings
from examples.orders.models import Order, Product
from examples.orders.workflows import (
    Approval,
    OrderOutcome,
    OrderRequest,
    OrderState,
    OrderWorkflow,
)
from wfapp.client import get_client


def place_order(
    number: str,
    *,
    sku: str,
    quantity: int,
    email: str,
    approval_timeout: timedelta | None = None,
) -> Order:
    """Take an order; its row and its run exist both or not at all. Once more changes nothing."""
    existing = Order.objects.filter(number=number).first()
    if existing:
        return existing
    settings = order_settings()
    if approval_timeout:
        settings = replace(settings, approval_timeout=approval_timeout)
    with transaction.atomic():
        product = Product.objects.get(sku=sku)
        order = Order.objects.create(
            number=number,
            product=product,
            quantity=quantity,
            amount_cents=quantity * product.price_cents,
            email=email,
        )
        request = OrderRequest(
            order_number=number,
            amount_cents=order.amount_cents,
            approval_timeout_seconds=settings.approval_timeout.total_seconds(),
            remind_every_seconds=settings.remind_every.total_seconds(),
            charge_retry_seconds=settings.charge_retry.total_seconds(),
        )
        get_client().start_workflow(
            OrderWorkflow.run, request, id=workflow_id(number), task_queue="default"
        )
    return order


def decide(number: str, *, approved: bool, by: str) -> None:
    """Approve or refuse an order; the first decision counts."""
    _handle(number).signal(OrderWorkflow.decide, Approval(approved, by))


def state(number: str) -> OrderState:
    """Where an order stands, as its run tells."""
    answer: OrderState = _handle(number).query(OrderWorkflow.state)
    return answer


def outcome(number: str) -> OrderOutcome:
    """Wait for an order's end."""
    answer: OrderOutcome = _handle(number).result()
    return answer


def workflow_id(number: str) -> str:
    return f"order-{number}"


def _handle(number: str) -> Any:
    return get_client().get_workflow_handle_for(OrderWorkflow.run, workflow_id(number))
