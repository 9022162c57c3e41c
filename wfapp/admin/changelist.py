"""The list of runs: pages by key, filters that an index answers, no count of all."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from wfapp.admin.page_facts import RunFacts, page_facts
from wfapp.conf import config
from wfapp.models import Namespace, WorkflowExecution
from wfapp.models.execution import STATUS_LABELS

#: The parameter that says after which run a page goes on: ``<start time>-<run id>``.
AFTER = "after"
NEWEST_FIRST = ("-start_time", "-run_id")


class KeysetChangeList(ChangeList):
    """A page of runs, newest first, that goes on after the last one of the page before."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = super().get_filters_params(params)
        found.pop(AFTER, None)
        return found

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        return list(NEWEST_FIRST)

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        rows = list(self._rest(request.GET.get(AFTER, ""))[: size + 1])
        self.has_more = len(rows) > size
        self.is_first_page = AFTER not in request.GET
        self.result_list = rows[:size]
        facts = page_facts(self.result_list)
        for row in self.result_list:
            row.facts = facts.get(row.run_id, RunFacts())
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = self.multi_page = False
        self.paginator = self.model_admin.get_paginator(request, self.result_list, size)

    def _rest(self, after: str) -> QuerySet[WorkflowExecution]:
        queryset: QuerySet[WorkflowExecution] = self.queryset
        if not after:
            return queryset
        start, _dash, run = after.partition("-")
        try:
            start_time, run_id = int(start), uuid.UUID(run)
        except ValueError as error:
            raise IncorrectLookupParameters(f"{after!r} names no run") from error
        # The first condition is what the index is entered by.
        return queryset.filter(start_time__lte=start_time).filter(
            Q(start_time__lt=start_time) | Q(run_id__lt=run_id)
        )

    @property
    def next_query(self) -> str:
        """The query of the next page's address."""
        last = self.result_list[-1]
        return self.get_query_string({AFTER: f"{last.start_time}-{last.run_id}"})

    @property
    def first_query(self) -> str:
        """The query of the first page's address."""
        return "?" + urlencode(self.params)


class NamespaceFilter(admin.SimpleListFilter):
    """One namespace at a time: every index of the list begins with it."""

    title = _("namespace")
    parameter_name = "namespace"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        names = Namespace.objects.using(config().database).order_by("name")[:100]
        return [(name, name) for name in names.values_list("name", flat=True)]

    def has_output(self) -> bool:
        return True  # else the filter is not applied

    def value(self) -> str:
        return super().value() or config().namespace

    def choices(self, changelist: Any) -> Iterator[Any]:
        for name, title in self.lookup_choices:
            yield {
                "selected": self.value() == name,
                "query_string": changelist.get_query_string({self.parameter_name: name}, [AFTER]),
                "display": title,
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(namespace=_name(self.value()))


class StatusFilter(admin.SimpleListFilter):
    """By status."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [(str(status.value), label) for status, label in STATUS_LABELS.items()]

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "query_string": _without_after(choice["query_string"])}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value not in {str(status.value) for status in STATUS_LABELS}:
            raise IncorrectLookupParameters(f"{value!r} is no status")
        return queryset.filter(status=int(value))


class TypeFilter(admin.SimpleListFilter):
    """By the exact name of a workflow type, typed in: types are not counted out of all runs."""

    title = _("workflow type")
    parameter_name = "type"
    template = "admin/wfapp/text_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [("", "")]  # without any the filter is not shown

    def choices(self, changelist: Any) -> Iterator[Any]:
        yield {
            "value": self.value() or "",
            "others": [
                (name, value)
                for name, value in changelist.params.items()
                if name not in (self.parameter_name, AFTER)
            ],
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(workflow_type=_name(value)) if value else queryset


def _name(text: str) -> str:
    if "\0" in text:
        raise IncorrectLookupParameters("no name holds NUL")
    return text


def _without_after(query: str) -> str:
    parts = query.removeprefix("?").split("&")
    return "?" + "&".join(part for part in parts if not part.startswith(f"{AFTER}="))
