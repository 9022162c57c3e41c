"""Runs in the admin: a list that stays fast, a page that tells all, and three actions."""

import json
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from wfapp import operating, wiring
from wfapp.admin.activity_orders import ActivityOrders
from wfapp.admin.changelist import (
    NEWEST_FIRST,
    KeysetChangeList,
    NamespaceFilter,
    StatusFilter,
    TypeFilter,
)
from wfapp.admin.forms import ReasonForm, SignalForm
from wfapp.admin.readonly import ReadOnlyAdmin, as_time
from wfapp.admin.run_page import run_page
from wfapp.conf import config
from wfapp.models import WorkflowExecution
from wfapp.presentation.values import Reader, encode
from wfcore.exceptions import NotFoundError, RPCError
from wfcore.protocol import json_form
from wfcore.protocol.common import WorkflowExecution as Execution
from wfcore.protocol.rpc.workflows import (
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service.ports import RunKey

Act = Callable[[WorkflowExecution, Any, operating.Operator], None]


@admin.register(WorkflowExecution)
class WorkflowExecutionAdmin(ActivityOrders, ReadOnlyAdmin):
    """Workflow executions: nothing is edited; what may be done are actions behind `operate`."""

    list_display = (
        "workflow_id",
        "status_mark",
        "trouble",
        "workflow_type",
        "task_queue",
        "started",
        "progress",
    )
    list_display_links = ("workflow_id",)
    list_filter = (NamespaceFilter, StatusFilter, TypeFilter)
    list_per_page = 50
    list_max_show_all = 0
    ordering = NEWEST_FIRST
    sortable_by = ()
    search_fields = ("workflow_id",)
    search_help_text = _("A whole workflow id or run id")
    actions = ("signal_runs", "cancel_runs", "terminate_runs")
    change_list_template = "admin/wfapp/workflowexecution/change_list.html"

    # ---- who may what

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the actions are offered; Django asks by this name."""
        return bool(request.user.has_perm("wfapp.operate"))

    def _reader(self, request: HttpRequest) -> Reader:
        may_see = bool(request.user.has_perm("wfapp.view_payloads"))
        return Reader(wiring.get_converter(), may_see=may_see)

    # ---- the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowExecution]:
        return WorkflowExecution.objects.using(config().database).defer("priority")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[WorkflowExecution], search_term: str
    ) -> tuple[QuerySet[WorkflowExecution], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(run_id=UUID(term)), False
        except ValueError:
            return queryset.filter(workflow_id=term), False

    @admin.display(description=_("status"))
    def status_mark(self, run: WorkflowExecution) -> str:
        return str(run.get_status_display())

    @admin.display(description=_("started"))
    def started(self, run: WorkflowExecution) -> datetime | None:
        return as_time(run.start_time)

    @admin.display(description=_("last progress"))
    def progress(self, run: Any) -> datetime | None:
        when: datetime | None = run.facts.last_progress
        return when

    @admin.display(description=_("trouble"), empty_value="")
    def trouble(self, run: Any) -> str:
        return "; ".join(run.facts.trouble)

    # ---- one run

    def get_urls(self) -> list[URLPattern]:
        export = path(
            "<uuid:run_id>/history.json",
            self.admin_site.admin_view(self.export_view),
            name="wfapp_workflowexecution_export",
        )
        return [export, *self.activity_urls(), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        run = self._run(request, object_id)
        try:
            page = run_page(request, run, operating.view_service(), self._reader(request))
        except NotFoundError as error:
            raise Http404(str(error)) from error
        context = {
            **self.admin_site.each_context(request),
            **page,
            "opts": self.opts,
            "title": run.workflow_id,
            "may_operate": self.has_operate_permission(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/wfapp/workflowexecution/run.html", context)

    def export_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        """The history in Temporal's JSON, as the replayer reads it."""
        run = self._run(request, str(run_id))
        key = RunKey(namespace=run.namespace, workflow_id=run.workflow_id, run_id=str(run.run_id))
        events = operating.view_service().host.store.read_events(key)
        if not self._reader(request).may_see:
            events = self._reader(request).messages(events)
        return HttpResponse(
            json.dumps(json_form.history_to_json(events), ensure_ascii=False),
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="{run.run_id}.json"'},
        )

    def _run(self, request: HttpRequest, object_id: str) -> WorkflowExecution:
        if not self.has_view_permission(request):
            raise PermissionDenied
        run: WorkflowExecution | None = self.get_object(request, object_id)
        if run is None:
            raise Http404(_("There is no such run."))
        return run

    # ---- actions

    @admin.action(description=_("Send a signal…"), permissions=["operate"])
    def signal_runs(
        self, request: HttpRequest, queryset: QuerySet[WorkflowExecution]
    ) -> HttpResponseBase | None:
        return self._ask_and_do(request, queryset, "signal_runs", SignalForm, _signal)

    @admin.action(description=_("Cancel…"), permissions=["operate"])
    def cancel_runs(
        self, request: HttpRequest, queryset: QuerySet[WorkflowExecution]
    ) -> HttpResponseBase | None:
        return self._ask_and_do(request, queryset, "cancel_runs", ReasonForm, _cancel)

    @admin.action(description=_("Terminate…"), permissions=["operate"])
    def terminate_runs(
        self, request: HttpRequest, queryset: QuerySet[WorkflowExecution]
    ) -> HttpResponseBase | None:
        return self._ask_and_do(request, queryset, "terminate_runs", ReasonForm, _terminate)

    def _ask_and_do(
        self,
        request: HttpRequest,
        queryset: QuerySet[WorkflowExecution],
        action: str,
        form_class: type[ReasonForm],
        act: Act,
    ) -> HttpResponseBase | None:
        """First ask for the reason, then do it: each run in a transaction of its own."""
        confirmed = "confirmed" in request.POST
        form = form_class(request.POST) if confirmed else form_class()
        runs = list(queryset[: self.list_per_page])
        if not (confirmed and form.is_valid()):
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": getattr(self, action).short_description,
                "form": form,
                "runs": runs,
                "action": action,
                "checkbox_name": ACTION_CHECKBOX_NAME,
            }
            return TemplateResponse(request, "admin/wfapp/workflowexecution/act.html", context)
        self._do(request, runs, form, act)
        return None

    def _do(
        self, request: HttpRequest, runs: list[WorkflowExecution], form: ReasonForm, act: Act
    ) -> None:
        operator = operating.Operator(
            actor=request.user.get_username(), reason=form.cleaned_data["reason"]
        )
        done, until = 0, monotonic() + operating.VIEW_WAIT.total_seconds()
        for number, run in enumerate(runs):
            if monotonic() > until:  # others hold these runs; who waits here shall not
                left = {"count": len(runs) - number}
                late = _("Not done in time for %(count)d runs: choose them again.") % left
                self.message_user(request, late, messages.ERROR)
                break
            try:
                act(run, form.cleaned_data, operator)
            except RPCError as error:
                facts = {"id": run.workflow_id, "error": error.message}
                refused = _("Not done for %(id)s: %(error)s") % facts
                self.message_user(request, refused, messages.ERROR)
            else:
                done += 1
        if done:
            text = ngettext("Done for %(count)d run.", "Done for %(count)d runs.", done)
            self.message_user(request, text % {"count": done}, messages.SUCCESS)


def _target(run: WorkflowExecution) -> Execution:
    return Execution(workflow_id=run.workflow_id, run_id=str(run.run_id))


def _signal(run: WorkflowExecution, asked: Any, operator: operating.Operator) -> None:
    values = asked["arguments"]
    request = SignalWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_target(run),
        signal_name=asked["name"],
        input=encode(wiring.get_converter(), values) if values else None,
        identity=operator.actor,
    )
    operating.perform(operating.view_service(), request, operator)


def _cancel(run: WorkflowExecution, _asked: Any, operator: operating.Operator) -> None:
    request = RequestCancelWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_target(run),
        identity=operator.actor,
        reason=operator.reason,
    )
    operating.perform(operating.view_service(), request, operator)


def _terminate(run: WorkflowExecution, _asked: Any, operator: operating.Operator) -> None:
    request = TerminateWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_target(run),
        identity=operator.actor,
        reason=operator.reason,
    )
    operating.perform(operating.view_service(), request, operator)
