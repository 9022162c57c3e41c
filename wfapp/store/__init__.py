"""The `Store` port on Django's connections."""

from wfapp.store.django_store import DjangoStore
from wfapp.store.noting import NotingStore

__all__ = ["DjangoStore", "NotingStore"]
