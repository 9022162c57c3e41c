"""A payment service that is down at first: each order is declined a few times, then accepted.

It knows an order again, as real ones do by an idempotency key: charged once, refunded once.
"""

from django.db import transaction

from examples.orders.conf import order_settings
from examples.orders.models import Order, Payment


class PaymentDeclinedError(Exception):
    """The service could not be reached; trying again later is right."""


def charge(order: Order, amount_cents: int) -> str:
    """Charge an order once, however often it is asked for; gives the reference.

    Raises:
        PaymentDeclinedError: the first calls for an order, see `OrderSettings.payment_failures`.
    """
    with transaction.atomic():
        payment = _locked(order, amount_cents)
        if payment.reference:
            return payment.reference
        if payment.declined >= order_settings().payment_failures:
            payment.reference = f"PAY-{order.number}"
            payment.save(update_fields=["reference"])
            return payment.reference
        payment.declined += 1
        payment.save(update_fields=["declined"])
    # Behind the commit: the service remembers that it declined.
    raise PaymentDeclinedError(f"payment of {order.number} declined, {payment.declined} so far")


def refund(order: Order) -> None:
    """Give the money of a charge back; without one there is nothing to do."""
    Payment.objects.filter(order=order).exclude(reference="").update(refunded=True)


def _locked(order: Order, amount_cents: int) -> Payment:
    Payment.objects.bulk_create(
        [Payment(order=order, amount_cents=amount_cents)], ignore_conflicts=True
    )
    return Payment.objects.select_for_update().get(order=order)
