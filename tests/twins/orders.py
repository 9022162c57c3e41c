"""The twin of `examples.orders.workflows`: the same classes on Temporal's SDK.

Its activities have names and types but no bodies: a replay calls none.
"""

import asyncio
import math
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError


class activities:  # noqa: N801 - stands for the module of this name
    """The steps' names, as our registry has them."""

    @staticmethod
    @activity.defn
    def reserve_stock(order_number: str) -> int:
        raise NotImplementedError

    @staticmethod
    @activity.defn
    def charge(order_number: str, amount_cents: int) -> str:
        raise NotImplementedError

    @staticmethod
    @activity.defn
    def remind_approver(order_number: str) -> None:
        raise NotImplementedError

    @staticmethod
    @activity.defn
    def ship(order_number: str) -> str:
        raise NotImplementedError

    @staticmethod
    @activity.defn
    def close_order(order_number: str, status: str) -> None:
        raise NotImplementedError


class tasks:  # noqa: N801 - stands for the module of this name
    """A shared task is an activity under its task name."""

    @staticmethod
    @activity.defn(name="examples.orders.tasks.send_receipt")
    def send_receipt(order_number: str) -> str:
        raise NotImplementedError


@dataclass
class OrderRequest:
    """What a run is started with."""

    order_number: str
    amount_cents: int
    approval_timeout_seconds: float
    remind_every_seconds: float
    charge_retry_seconds: float


@dataclass
class Approval:
    """What the approver said."""

    approved: bool
    by: str


@dataclass
class OrderState:
    """What the query answers."""

    stage: str
    reminders: int
    approver: str


@dataclass
class OrderOutcome:
    """What a run ends with."""

    status: str
    tracking: str
    receipt_to: str
    reminders: int


@workflow.defn
class OrderWorkflow:
    """Reserve, charge, wait for the approval, ship; if it isn't given, undo what was done."""

    def __init__(self) -> None:
        self._stage = "placed"
        self._reminders = 0
        self._approval: Approval | None = None
        self._undo: list[str] = []

    @workflow.signal
    def decide(self, approval: Approval) -> None:
        # The first decision counts.
        self._approval = self._approval or approval

    @workflow.query
    def state(self) -> OrderState:
        approver = self._approval.by if self._approval else ""
        return OrderState(self._stage, self._reminders, approver)

    @workflow.run
    async def run(self, request: OrderRequest) -> OrderOutcome:
        try:
            await self._reserve_and_charge(request)
            await self._wait_for_approval(request)
        except (ActivityError, asyncio.CancelledError):
            # A step failed for good, or the run was cancelled.
            await self._give_up(request, "cancelled")
            raise
        if self._approval is None:
            return await self._give_up(request, "expired")
        if not self._approval.approved:
            return await self._give_up(request, "refused")
        # From here on the parcel may have left the house: nothing is taken back.
        return await self._ship(request)

    async def _reserve_and_charge(self, request: OrderRequest) -> None:
        # Noted before the step: who is cancelled in it can't know how far it came.
        self._undo.append("release_stock")
        await workflow.execute_activity(
            activities.reserve_stock,
            request.order_number,
            start_to_close_timeout=timedelta(seconds=30),
        )
        self._stage = "reserved"
        self._undo.append("refund")
        await workflow.execute_activity(
            activities.charge,
            args=[request.order_number, request.amount_cents],
            start_to_close_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=request.charge_retry_seconds)
            ),
        )
        self._stage = "waiting for approval"

    async def _wait_for_approval(self, request: OrderRequest) -> None:
        end = workflow.now() + timedelta(seconds=request.approval_timeout_seconds)
        while self._approval is None:
            left = end - workflow.now()
            if left <= timedelta(0):
                return
            # Whole seconds are what people can read in a history.
            seconds = min(math.ceil(left.total_seconds()), request.remind_every_seconds)
            try:
                await workflow.wait_condition(
                    lambda: self._approval is not None, timeout=timedelta(seconds=seconds)
                )
            except TimeoutError:
                if workflow.now() < end:
                    await self._remind(request)

    async def _remind(self, request: OrderRequest) -> None:
        self._reminders += 1
        await workflow.execute_activity(
            activities.remind_approver,
            request.order_number,
            start_to_close_timeout=timedelta(seconds=30),
        )

    async def _ship(self, request: OrderRequest) -> OrderOutcome:
        self._stage = "shipping"
        tracking = await workflow.execute_activity(
            activities.ship,
            request.order_number,
            start_to_close_timeout=timedelta(seconds=30),
        )
        receipt_to = await workflow.execute_activity(
            tasks.send_receipt,
            request.order_number,
            start_to_close_timeout=timedelta(seconds=30),
        )
        self._stage = "shipped"
        return OrderOutcome("shipped", tracking, receipt_to, self._reminders)

    async def _give_up(self, request: OrderRequest, status: str) -> OrderOutcome:
        self._stage = f"undoing: {status}"
        for step in reversed(self._undo):
            await workflow.execute_activity(
                step,
                request.order_number,
                start_to_close_timeout=timedelta(seconds=30),
            )
        self._undo.clear()
        await workflow.execute_activity(
            activities.close_order,
            args=[request.order_number, status],
            start_to_close_timeout=timedelta(seconds=30),
        )
        self._stage = status
        return OrderOutcome(status, "", "", self._reminders)
