"""What may be an activity, and what a worker knows of it."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from wfcore import activity
from wfcore.activity import Definition
from wfcore.common import RawValue


@activity.defn
def charge(amount: int) -> str:
    return str(amount)


@activity.defn(name="ship-order")
async def ship(order_id: int, express: bool = False) -> None:
    del order_id, express


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> int:
    return len(args)


@activity.defn
class Refund:
    async def __call__(self, amount: int) -> str:
        return str(amount)


class Shop:
    @activity.defn(no_thread_cancel_exception=True)
    def close(self, reason: str) -> bool:
        return bool(reason)


def test_a_function_is_an_activity_of_its_name() -> None:
    assert Definition.must_from_callable(charge) == Definition(
        name="charge", fn=charge, is_async=False, arg_types=[int], ret_type=str
    )
    assert charge(5) == "5"


def test_a_name_can_be_given() -> None:
    definition = Definition.must_from_callable(ship)
    assert definition.name == "ship-order"
    assert definition.is_async
    assert definition.arg_types == [int, bool]


def test_a_method_is_bound_to_its_object() -> None:
    shop = Shop()
    definition = Definition.must_from_callable(shop.close)
    assert definition.name == "close"
    assert definition.arg_types == [str]
    assert definition.no_thread_cancel_exception
    assert definition.fn("late") is True


def test_an_object_of_a_decorated_class_is_an_activity() -> None:
    refund = Refund()
    definition = Definition.must_from_callable(refund)
    assert definition.name == "Refund"
    assert definition.fn is refund
    assert definition.is_async
    assert definition.arg_types == [int]


def test_the_dynamic_activity_has_no_name() -> None:
    definition = Definition.must_from_callable(anything)
    assert definition.name is None
    assert definition.dynamic
    with pytest.raises(ValueError, match="Cannot invoke dynamic activity"):
        Definition.get_name_and_result_type(anything)


@pytest.mark.parametrize(
    ("called", "expected"),
    [("x", ("x", None)), (charge, ("charge", str)), (Shop.close, ("close", bool))],
)
def test_a_call_names_an_activity_or_passes_it(called: Any, expected: Any) -> None:
    assert Definition.get_name_and_result_type(called) == expected


def _keyword_only(x: int, *, y: int = 1) -> None:
    del x, y


def _wrong_dynamic(args: list[RawValue], more: int) -> None:
    del args, more


class _NotCallable:
    pass


@pytest.mark.parametrize(
    ("decorate", "error", "message"),
    [
        (lambda: activity.defn(charge), ValueError, "already contains activity definition"),
        (lambda: activity.defn(_keyword_only), TypeError, "cannot have keyword-only arguments"),
        (
            lambda: activity.defn(dynamic=True)(_wrong_dynamic),
            TypeError,
            r"must accept a single Sequence\[wfcore.common.RawValue\]",
        ),
        (
            lambda: activity.defn(name="x", dynamic=True)(_wrong_dynamic),  # type: ignore[call-overload]
            ValueError,
            "Cannot provide name and dynamic",
        ),
        (lambda: activity.defn(_NotCallable), TypeError, "must have a method __call__"),
        (lambda: Definition.must_from_callable(len), TypeError, "@activity.defn"),
        (
            lambda: Definition.must_from_callable(functools.partial(charge, 1)),
            TypeError,
            "@activity.defn",
        ),
        (lambda: Definition.get_name_and_result_type(5), TypeError, "string or callable"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_activity_is_refused(
    decorate: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        decorate()


def test_a_subclass_may_be_an_activity_of_its_own() -> None:
    @activity.defn(name="express")
    class Express(Refund):
        pass

    assert Definition.must_from_callable(Express()).name == "express"
    assert Definition.must_from_callable(Refund()).name == "Refund"
