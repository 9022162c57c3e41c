"""The suite that every set of ports must pass, on each database."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeVar

import pytest
from django.db import connections, transaction

from tests.integration.store.worlds import with_namespace
from wfapp.models import AuditEntry
from wfapp.store import DjangoStore, NotingStore
from wfcore.service.ports import Store
from wfcore.testing.port_contracts import StorePorts

T = TypeVar("T")


class DjangoPorts(StorePorts):
    """What both have in common."""

    def callers_transaction(self, store: Store) -> AbstractContextManager[object]:
        assert isinstance(store, DjangoStore)
        return transaction.atomic(using=store.alias)

    def apart(self, call: Callable[[], T]) -> "Future[T]":
        def in_thread() -> T:
            try:
                return call()
            finally:
                connections.close_all()

        return super().apart(in_thread)


class TestPostgres(DjangoPorts):
    @pytest.fixture
    def store(self, postgres: str) -> Store:
        with_namespace(postgres)
        return DjangoStore(postgres)


class Journalling:
    """A note that is written, whatever it says."""

    def __init__(self, alias: str) -> None:
        self._entries = AuditEntry.objects.using(alias)

    def write(self, run_id: str) -> None:
        self._entries.create(at=0, run_id=run_id, actor="nobody", action="test", namespace="n")

    def take_back(self) -> None:
        self._entries.all().delete()


class TestNoting(DjangoPorts):
    """A store that writes something else beside its first change is a store."""

    @pytest.fixture
    def store(self, postgres: str) -> Store:
        with_namespace(postgres)
        return NotingStore(DjangoStore(postgres), Journalling(postgres))


class TestSqlite(DjangoPorts):
    others_may_write = False

    @pytest.fixture
    def store(self, sqlite: str) -> Store:
        with_namespace(sqlite)
        return DjangoStore(sqlite)
