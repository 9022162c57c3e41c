"""What all of our admin classes share: nobody adds, changes or deletes rows."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from wfapp.conf import config
from wfapp.models.columns import from_micros


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # no generic class when it runs
    """Rows to look at. What may be done with them are actions behind permissions of their own."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Whatever a router says: the engine writes to this alias.
        return super().get_queryset(request).using(config().database)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def as_time(micros: int | None) -> datetime | None:
    """A column of microseconds as the admin shows times."""
    return from_micros(micros) if micros is not None else None
