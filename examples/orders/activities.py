"""The steps of an order. Each may run again after a crash and then finds what it has done."""

import time

from django.db import transaction
from django.utils import timezone

from examples.orders import payments
from examples.orders.conf import order_settings
from examples.orders.ledger import recorded
from examples.orders.models import Order, Product, Reservation
from wfcore import activity
from wfcore.exceptions import ApplicationError


@activity.defn
@recorded
def reserve_stock(order_number: str) -> int:
    """Take the order's units out of the stock; gives how many are left."""
    _work()
    with transaction.atomic():
        order = Order.objects.get(number=order_number)
        product = Product.objects.select_for_update().get(pk=order.product_id)
        if Reservation.objects.filter(order=order).exists():
            return product.available
        if product.available < order.quantity:
            raise ApplicationError(
                f"{product.available} of {product.sku} left, {order.quantity} ordered",
                type="OutOfStock",
                non_retryable=True,
            )
        product.available -= order.quantity
        product.save(update_fields=["available"])
        Reservation.objects.create(order=order, quantity=order.quantity)
        _advance(order, Order.Status.RESERVED)
        return product.available


@activity.defn
@recorded
def charge(order_number: str, amount_cents: int) -> str:
    """Take the money; gives the payment's reference."""
    _work()
    order = Order.objects.get(number=order_number)
    reference = payments.charge(order, amount_cents)
    _advance(order, Order.Status.PAID)
    return reference


@activity.defn
@recorded
def remind_approver(order_number: str) -> None:
    """Ask once more for the approval."""
    _work()
    Order.objects.filter(number=order_number).update(reminded_at=timezone.now())


@activity.defn
@recorded
def ship(order_number: str) -> str:
    """Hand the parcel over; gives its tracking number."""
    _work()
    order = Order.objects.get(number=order_number)
    order.tracking = f"PARCEL-{order.pk:08d}"
    order.save(update_fields=["tracking"])
    _advance(order, Order.Status.SHIPPED)
    return order.tracking


@activity.defn
@recorded
def refund(order_number: str) -> None:
    """Give the money back."""
    _work()
    payments.refund(Order.objects.get(number=order_number))


@activity.defn
@recorded
def release_stock(order_number: str) -> None:
    """Put the order's units back."""
    _work()
    with transaction.atomic():
        order = Order.objects.get(number=order_number)
        product = Product.objects.select_for_update().get(pk=order.product_id)
        reservation = Reservation.objects.filter(order=order).first()
        if reservation:
            product.available += reservation.quantity
            product.save(update_fields=["available"])
            reservation.delete()


@activity.defn
@recorded
def close_order(order_number: str, status: str) -> None:
    """Write down how an order ended that was not shipped."""
    _work()
    _advance(Order.objects.get(number=order_number), Order.Status(status))


def _work() -> None:
    time.sleep(order_settings().work.total_seconds())


def _advance(order: Order, status: Order.Status) -> None:
    order.status = status
    order.save(update_fields=["status"])
