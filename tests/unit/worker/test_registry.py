"""What a worker can be given to run."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from wfcore import activity, workflow
from wfcore.common import RawValue
from wfcore.worker import Registry


@activity.defn
def charge(amount: int) -> None:
    del amount


@activity.defn(name="charge")
def charge_again(amount: int) -> None:
    del amount


@activity.defn(dynamic=True)
def anything(args: Sequence[RawValue]) -> None:
    del args


@activity.defn(dynamic=True)
def anything_else(args: Sequence[RawValue]) -> None:
    del args


@activity.defn
class Refund:
    def __call__(self) -> None:
        pass


class Shop:
    @activity.defn
    def close(self) -> None:
        pass


@workflow.defn
class Order:
    @workflow.run
    async def run(self) -> None:
        pass


@workflow.defn(name="Order")
class OtherOrder:
    @workflow.run
    async def run(self) -> None:
        pass


class Undecorated:
    pass


def undecorated() -> None:
    pass


def test_definitions_are_found_by_name() -> None:
    registry = Registry(workflows=[Order], activities=[charge, Shop().close, Refund()])
    assert registry.workflow_names == ["Order"]
    assert registry.activity_names == ["Refund", "charge", "close"]
    found = registry.activity("charge")
    assert found is not None
    assert found.fn is charge
    assert registry.activity("unknown") is None
    assert registry.workflow("unknown") is None
    order = registry.workflow("Order")
    assert order is not None
    assert order.cls is Order
    assert registry.has_workflows
    assert not Registry(activities=[charge]).has_workflows


def test_the_dynamic_activity_takes_all_other_names() -> None:
    registry = Registry(activities=[charge, anything])
    found = registry.activity("unknown")
    assert found is not None
    assert found.fn is anything
    assert registry.activity_names == ["charge"]
    assert [d.fn for d in registry.activities] == [charge, anything]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Registry(activities=[charge, charge_again]),
            ValueError,
            "More than one activity named charge",
        ),
        (
            lambda: Registry(activities=[anything, anything_else]),
            TypeError,
            "More than one dynamic activity",
        ),
        (
            lambda: Registry(activities=[Refund]),
            TypeError,
            "Refund is a class instead of an instance",
        ),
        (lambda: Registry(activities=[Shop.close]), TypeError, "first parameter named self"),
        (lambda: Registry(activities=[undecorated]), TypeError, "@activity.defn"),
        (
            lambda: Registry(workflows=[Order, OtherOrder]),
            ValueError,
            "More than one workflow named Order",
        ),
        (lambda: Registry(workflows=[Undecorated]), ValueError, "@workflow.defn"),
    ],
)
def test_what_can_not_be_run_is_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
