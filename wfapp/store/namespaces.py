"""Namespaces, kept in memory for a while; where the default one is made."""

import threading
import time
from datetime import timedelta
from typing import Any

from django.db import router
from django.db.models.signals import post_delete, post_save

from wfapp import models
from wfapp.conf import config
from wfapp.store.database import Database, StorePart
from wfcore.service.ports import Namespace

#: Another process's change of a namespace is seen after this long.
NAMESPACE_AGE = timedelta(seconds=10)


class Namespaces(StorePart):
    """Registered namespaces, kept in memory for a while, since every call asks for one."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Namespace]] = {}
        for signal in (post_save, post_delete):
            signal.connect(self._forget, sender=models.Namespace, weak=True)

    def namespace(self, name: str) -> Namespace | None:
        """As `Store.namespace`."""
        now = time.monotonic()
        with self._lock:
            known = self._known.get(name)
        if known is not None and now - known[0] < NAMESPACE_AGE.total_seconds():
            return known[1]
        with self._database.telling():
            row = models.Namespace.objects.using(self._database.alias).filter(name=name).first()
        if row is None:
            return None
        found = _namespace(row)
        with self._lock:
            self._known[name] = now, found
        return found

    def namespaces(self) -> list[Namespace]:
        """As `Store.namespaces`."""
        with self._database.telling():
            rows_by_name = models.Namespace.objects.using(self._database.alias).order_by("name")
            return [_namespace(row) for row in rows_by_name]

    def _forget(self, **_: Any) -> None:
        with self._lock:
            self._known.clear()


def _namespace(row: models.Namespace) -> Namespace:
    return Namespace(
        name=row.name,
        namespace_id=str(row.namespace_id),
        retention=row.retention,
        description=row.description,
        owner_email=row.owner_email,
    )


def make_default_namespace(*, using: str, **_: Any) -> None:
    """After `migrate` (and after a test emptied the tables): the namespace of who names none."""
    wanted = config()
    if using != wanted.database or not router.allow_migrate_model(using, models.Namespace):
        return
    micros = wanted.retention // timedelta(microseconds=1)
    models.Namespace.objects.using(using).get_or_create(
        name=wanted.namespace, defaults={"retention_micros": micros}
    )
