"""The ports in memory keep what every set of ports must."""

from contextlib import AbstractContextManager

import pytest

from wfcore.service.ports import Store
from wfcore.testing.memory_ports import MemoryDispatcher, MemoryStore, SimulatedClock
from wfcore.testing.port_contracts import DispatcherPorts, StorePorts


class TestMemoryStore(StorePorts):
    @pytest.fixture(params=["manual", "real time"])
    def store(self, request: pytest.FixtureRequest) -> MemoryStore:
        return MemoryStore(SimulatedClock(real_time=request.param == "real time"))

    def callers_transaction(self, store: Store) -> AbstractContextManager[object]:
        assert isinstance(store, MemoryStore)
        return store.callers_transaction()


class TestMemoryDispatcher(DispatcherPorts):
    @pytest.fixture(params=["manual", "real time"])
    def dispatcher(self, request: pytest.FixtureRequest) -> MemoryDispatcher:
        return MemoryDispatcher(SimulatedClock(real_time=request.param == "real time"))
