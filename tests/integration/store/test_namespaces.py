from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.store.worlds import counting
from wfapp.models import Namespace
from wfapp.store import DjangoStore
from wfapp.store.namespaces import make_default_namespace


@pytest.fixture(autouse=True)
def no_namespaces(alias: str) -> Iterator[None]:
    Namespace.objects.using(alias).all().delete()
    yield
    Namespace.objects.using(alias).all().delete()


def add(alias: str, name: str, days: int = 1) -> Namespace:
    micros = timedelta(days=days) // timedelta(microseconds=1)
    return Namespace.objects.using(alias).create(name=name, retention_micros=micros)


def test_migrate_makes_the_default_one_once(alias: str, settings: Any) -> None:
    settings.WORKFLOWS = {
        "DATABASE": alias,
        "NAMESPACE": "shop",
        "RETENTION": timedelta(days=7),
    }
    make_default_namespace(using=alias)
    Namespace.objects.using(alias).update(description="ours")
    make_default_namespace(using=alias)
    (found,) = DjangoStore(alias).namespaces()
    assert (found.name, found.retention, found.description) == ("shop", timedelta(days=7), "ours")


def test_migrate_leaves_other_databases_alone(alias: str, settings: Any) -> None:
    settings.WORKFLOWS = {"DATABASE": "elsewhere"}
    make_default_namespace(using=alias)
    assert DjangoStore(alias).namespaces() == []


def test_a_namespace_is_asked_for_once(alias: str) -> None:
    add(alias, "shop")
    store = DjangoStore(alias)
    first = store.namespace("shop")
    with counting(alias) as counted:
        assert store.namespace("shop") == first
    assert counted.texts == []


def test_a_change_in_this_process_is_seen_at_once(alias: str) -> None:
    row = add(alias, "shop", days=1)
    store = DjangoStore(alias)
    store.namespace("shop")
    row.retention_micros = timedelta(days=9) // timedelta(microseconds=1)
    row.save()
    changed = store.namespace("shop")
    assert changed is not None
    assert changed.retention == timedelta(days=9)
    row.delete()
    assert store.namespace("shop") is None


def test_one_that_is_missing_is_found_once_it_is_there(alias: str) -> None:
    store = DjangoStore(alias)
    assert store.namespace("shop") is None
    Namespace.objects.using(alias).bulk_create([Namespace(name="shop", retention_micros=1)])
    assert store.namespace("shop") is not None
