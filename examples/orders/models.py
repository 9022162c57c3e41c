"""What the shop knows. Each step is kept once per order, so that doing it again changes nothing."""

import uuid

from django.db import models


class Product(models.Model):
    sku = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=200)
    price_cents = models.PositiveIntegerField()
    available = models.PositiveIntegerField()

    def __str__(self) -> str:
        return self.sku


class Order(models.Model):
    class Status(models.TextChoices):
        PLACED = "placed"
        RESERVED = "reserved"
        PAID = "paid"
        SHIPPED = "shipped"
        REFUSED = "refused"
        EXPIRED = "expired"
        CANCELLED = "cancelled"

    number = models.CharField(max_length=40, unique=True)
    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="orders")
    quantity = models.PositiveIntegerField()
    amount_cents = models.PositiveIntegerField()
    email = models.EmailField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PLACED)
    tracking = models.CharField(max_length=40, blank=True)
    placed_at = models.DateTimeField(auto_now_add=True)
    reminded_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.number


class Reservation(models.Model):
    """Units taken out of the stock; the row goes away when they go back."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE, related_name="reservation")
    quantity = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.quantity} for {self.order_id}"


class Payment(models.Model):
    """The payment service's book: it knows an order again by its number."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE, related_name="payment")
    amount_cents = models.PositiveIntegerField()
    declined = models.PositiveIntegerField(default=0)
    reference = models.CharField(max_length=40, blank=True)
    refunded = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.reference or f"declined {self.declined} times"


class Receipt(models.Model):
    """A mail that was sent."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE, related_name="receipt")
    address = models.EmailField()
    sent_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.address


class LedgerEntry(models.Model):
    """One execution of one step: begun, ended, and what it raised. See `ledger`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    order_number = models.CharField(max_length=40, db_index=True)
    step = models.CharField(max_length=40)
    workflow_id = models.CharField(max_length=255)
    run_id = models.CharField(max_length=36, db_index=True)
    activity_id = models.CharField(max_length=255)
    attempt = models.PositiveIntegerField()
    process = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    #: empty: still going on, or the process died in it
    ended_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name_plural = "ledger entries"

    def __str__(self) -> str:
        return f"{self.order_number} {self.step} attempt {self.attempt}"
