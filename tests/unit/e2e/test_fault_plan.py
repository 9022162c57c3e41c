"""The fault test's plan: as many faults as asked for, spread, and the same for the same seed."""

from collections import Counter

import pytest

from tests.e2e.faults.plan import End, Fault, make_plan


@pytest.mark.parametrize(("orders", "kills"), [(100, 10), (500, 30)])
def test_a_plan_has_each_fault_as_often_as_promised(orders: int, kills: int) -> None:
    plan = make_plan(orders=orders, kills=kills, seed=1)
    faults = Counter(fault for step in plan.faults for fault in step)
    assert faults == {
        Fault.KILL_SLOT: kills - kills // 5,
        Fault.KILL_WORKER: kills // 5,
        Fault.EMPTY_REDIS: 3,
        Fault.KILL_BEAT: 2,
        Fault.CRASH_POSTGRES: 1,
    }
    assert all(len(step) <= 2 for step in plan.faults)
    assert len(plan.faults[0]) == 1


def test_orders_have_all_ends() -> None:
    plan = make_plan(orders=100, kills=10, seed=1)
    ends = Counter(order.end for order in plan.orders)
    assert ends == {End.SHIPPED: 80, End.REFUSED: 10, End.EXPIRED: 10}
    assert len({order.number for order in plan.orders}) == 100


def test_a_seed_repeats_its_plan() -> None:
    assert make_plan(orders=20, kills=10, seed=7) == make_plan(orders=20, kills=10, seed=7)
    assert make_plan(orders=20, kills=10, seed=7) != make_plan(orders=20, kills=10, seed=8)


def test_too_few_kills_are_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        make_plan(orders=10, kills=5, seed=1)
