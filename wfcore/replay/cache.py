"""Live instances of a worker: least recently used out first, never one that is in use.

Each run has one lock, held from before its instance is looked up until its workflow task is
committed; so no two threads are inside one run's code, and no thread reads a half-told instance.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wfcore.replay.instance import WorkflowInstance


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Counts since the cache was made; `evictions` are those for want of room."""

    hits: int
    misses: int
    evictions: int
    size: int


class Lease:
    """The right to use one run's instance.

    Attributes:
        run_id: the run.
        thrown_out: instances that were here and are not to be kept.
    """

    __slots__ = ("_instance", "run_id", "thrown_out")

    def __init__(self, run_id: str, found: WorkflowInstance | None) -> None:
        self.run_id = run_id
        self.thrown_out: list[WorkflowInstance] = []
        self._instance = found

    @property
    def instance(self) -> WorkflowInstance | None:
        """The live instance; None if there is none. Set it to keep a new one, or to None to throw
        the one that is there out.
        """
        return self._instance

    @instance.setter
    def instance(self, instance: WorkflowInstance | None) -> None:
        if self._instance is not None and self._instance is not instance:
            self.thrown_out.append(self._instance)
        self._instance = instance

    def drop(self) -> None:
        """The instance is not where the history is: evict it when the lease ends."""
        self.instance = None


class _Entry:
    __slots__ = ("instance", "lock", "waiting")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 0
        self.instance: WorkflowInstance | None = None


class InstanceCache:
    """At most `max_size` live instances, by run id; 0 keeps none."""

    def __init__(self, max_size: int) -> None:
        if max_size < 0:
            raise ValueError(f"max_size must not be negative, but is {max_size}")
        self.max_size = max_size
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._live = 0
        self._hits = self._misses = self._evictions = 0

    @property
    def statistics(self) -> CacheStatistics:
        """Hits, misses, evictions and size."""
        with self._lock:
            return CacheStatistics(self._hits, self._misses, self._evictions, self._live)

    @contextmanager
    def lease(self, run_id: str, patience_seconds: float | None = None) -> Iterator[Lease]:
        """Use one run's instance alone; waits for whoever has it.

        If the block raises, the instance is thrown out: nobody knows how far it has come. Whoever
        waits for longer than `patience_seconds` gets an empty lease, whose instance is not kept.

        Example:
            with cache.lease(run_id) as lease:
                if lease.instance is None:
                    lease.instance = WorkflowInstance(...)
                result = lease.instance.activate(task)
        """
        entry = self._enter(run_id, patience_seconds)
        if entry is None:
            with self._apart(run_id) as lease:
                yield lease
            return
        lease = Lease(run_id, entry.instance)
        try:
            yield lease
        except BaseException:
            lease.drop()
            raise
        finally:
            self._leave(entry, lease)

    def evict(self, run_id: str) -> None:
        """Throw out one run's instance; waits for whoever has it."""
        with self.lease(run_id) as lease:
            lease.drop()

    def clear(self) -> None:
        """Throw out all instances."""
        with self._lock:
            run_ids = list(self._entries)
        for run_id in run_ids:
            self.evict(run_id)

    # --- one lease ------------------------------------------------------------------------------

    @contextmanager
    def _apart(self, run_id: str) -> Iterator[Lease]:
        """A lease beside the one that somebody holds."""
        lease = Lease(run_id, None)
        try:
            yield lease
        finally:
            if lease.instance is not None:
                lease.instance.evict()

    def _enter(self, run_id: str, patience_seconds: float | None) -> _Entry | None:
        with self._lock:
            entry = self._entries.get(run_id)
            if entry is None:
                entry = self._entries[run_id] = _Entry()
            entry.waiting += 1
        if not entry.lock.acquire(timeout=-1 if patience_seconds is None else patience_seconds):
            with self._lock:
                entry.waiting -= 1
                if entry.instance is None and not entry.waiting:
                    self._entries.pop(run_id, None)
            return None
        with self._lock:
            if entry.instance is None:
                self._misses += 1
            else:
                self._hits += 1
        return entry

    def _leave(self, entry: _Entry, lease: Lease) -> None:
        thrown_out = lease.thrown_out
        with self._lock:
            self._live += (lease.instance is not None) - (entry.instance is not None)
            entry.instance = lease.instance
            entry.waiting -= 1
            self._entries.move_to_end(lease.run_id)
            thrown_out += self._make_room()
            if entry.instance is None and not entry.waiting:
                self._entries.pop(lease.run_id, None)
        entry.lock.release()
        for instance in thrown_out:
            instance.evict()

    def _make_room(self) -> list[WorkflowInstance]:
        """Take out what is over the limit and not in use; `self._lock` is held."""
        found: list[WorkflowInstance] = []
        while self._live > self.max_size:
            run_id = next((key for key, entry in self._entries.items() if _is_idle(entry)), None)
            if run_id is None:
                break  # all are in use; whoever leaves next makes room
            entry = self._entries.pop(run_id)
            if entry.instance is not None:
                found.append(entry.instance)
                entry.instance = None
                self._live -= 1
                self._evictions += 1
        return found


def _is_idle(entry: _Entry) -> bool:
    return entry.instance is not None and not entry.waiting
