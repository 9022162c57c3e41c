"""Live instances: one lock a run, the least recently used goes first, never one in use."""

import threading
from typing import Any, cast

import pytest

from tests.support.waiting import wait_until
from wfcore.replay.cache import CacheStatistics, InstanceCache
from wfcore.replay.instance import WorkflowInstance


class Instance:
    def __init__(self) -> None:
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def put(cache: InstanceCache, run_id: str) -> Instance:
    instance = Instance()
    with cache.lease(run_id) as lease:
        assert lease.instance is None
        lease.instance = cast(WorkflowInstance, instance)
    return instance


def found(cache: InstanceCache, run_id: str) -> Any:
    with cache.lease(run_id) as lease:
        return lease.instance


def test_an_instance_is_found_again() -> None:
    cache = InstanceCache(2)
    instance = put(cache, "a")
    assert found(cache, "a") is instance
    assert cache.statistics == CacheStatistics(hits=1, misses=1, evictions=0, size=1)


def test_the_least_recently_used_goes_first() -> None:
    cache = InstanceCache(2)
    first, second = put(cache, "a"), put(cache, "b")
    found(cache, "a")
    third = put(cache, "c")
    assert (first.is_evicted, second.is_evicted, third.is_evicted) == (False, True, False)
    assert found(cache, "b") is None
    assert cache.statistics.evictions == 1


def test_no_room_keeps_nothing() -> None:
    cache = InstanceCache(0)
    assert put(cache, "a").is_evicted
    assert cache.statistics.size == 0
    with pytest.raises(ValueError, match="negative"):
        InstanceCache(-1)


def test_one_in_use_is_not_taken() -> None:
    cache = InstanceCache(1)
    first = put(cache, "a")
    with cache.lease("a"):
        second = put(cache, "b")
        assert not first.is_evicted
    assert second.is_evicted or first.is_evicted
    assert cache.statistics.size == 1


def test_dropping_and_errors_throw_an_instance_out() -> None:
    cache = InstanceCache(2)
    dropped, failed = put(cache, "a"), put(cache, "b")
    with cache.lease("a") as lease:
        lease.drop()
    with pytest.raises(KeyError), cache.lease("b"):
        raise KeyError
    assert dropped.is_evicted
    assert failed.is_evicted
    assert cache.statistics.size == 0


def test_a_replaced_instance_is_evicted() -> None:
    cache = InstanceCache(2)
    old = put(cache, "a")
    new = Instance()
    with cache.lease("a") as lease:
        lease.instance = cast(WorkflowInstance, new)
    assert old.is_evicted
    assert found(cache, "a") is new


def test_one_that_was_made_and_dropped_in_one_lease_is_evicted() -> None:
    """Else what is left of its code would end whenever the garbage collector comes."""
    cache = InstanceCache(2)
    first, second = Instance(), Instance()
    with cache.lease("a") as lease:
        lease.instance = cast(WorkflowInstance, first)
        lease.drop()
        lease.instance = cast(WorkflowInstance, second)
        lease.drop()
    assert (first.is_evicted, second.is_evicted) == (True, True)
    assert cache.statistics.size == 0


def test_clear_and_evict() -> None:
    cache = InstanceCache(3)
    instances = [put(cache, name) for name in "abc"]
    cache.evict("a")
    assert instances[0].is_evicted
    cache.clear()
    assert all(instance.is_evicted for instance in instances)
    assert cache.statistics.size == 0


def test_a_second_thread_waits_for_the_first() -> None:
    cache = InstanceCache(1)
    instance = put(cache, "a")
    seen: list[Any] = []

    def second() -> None:
        seen.append(found(cache, "a"))

    thread = threading.Thread(target=second)
    with cache.lease("a"):
        thread.start()
        wait_until(lambda: cache._entries["a"].waiting == 2, what="the second thread")
        assert seen == []
    thread.join()
    assert seen == [instance]
