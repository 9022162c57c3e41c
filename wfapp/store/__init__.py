"""The `Store` port on Django's connections."""

from wfapp.store.django_store import DjangoStore

__all__ = ["DjangoStore"]
