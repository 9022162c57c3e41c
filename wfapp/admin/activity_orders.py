"""What may be ordered of a pending activity on the page of its run: pause, unpause, reset.

As for runs, the reason is asked for first, and the order is kept in the audit log with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from wfapp import operating
from wfapp.admin.forms import ReasonForm, ResetForm, UnpauseForm
from wfapp.models import WorkflowExecution
from wfcore.exceptions import RPCError
from wfcore.protocol.common import WorkflowExecution as Execution
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.activity_operations import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Order:
    """One kind of order: how it is called, what is asked, and the call that it makes."""

    title: str | Promise
    form: type[ReasonForm]
    request: Callable[[Mapping[str, Any], Mapping[str, Any]], Message]
    #: what to know before
    note: str | Promise = ""


def _pause(named: Mapping[str, Any], asked: Mapping[str, Any]) -> Message:
    return PauseActivityRequest(**named, reason=asked["reason"])


def _unpause(named: Mapping[str, Any], asked: Mapping[str, Any]) -> Message:
    return UnpauseActivityRequest(**named, reset_attempts=asked["reset_attempts"])


def _reset(named: Mapping[str, Any], asked: Mapping[str, Any]) -> Message:
    return ResetActivityRequest(
        **named,
        keep_paused=asked["keep_paused"],
        reset_heartbeat=asked["reset_heartbeat"],
        restore_original_options=asked["restore_original_options"],
    )


ORDERS: Mapping[str, _Order] = {
    "pause": _Order(title=_("Pause activity"), form=ReasonForm, request=_pause),
    "unpause": _Order(title=_("Unpause activity"), form=UnpauseForm, request=_unpause),
    "reset": _Order(
        title=_("Reset activity"),
        form=ResetForm,
        request=_reset,
        note=_(
            "If its second or a later attempt runs now, that one can't answer any more, and a "
            "timeout must end it: pause the activity first, and let the attempt end."
        ),
    ),
}


class ActivityOrders:
    """The part of a run's admin that takes orders to its activities; mixed into `ModelAdmin`."""

    admin_site: admin.AdminSite
    opts: Any

    def activity_urls(self) -> list[URLPattern]:
        """The address that orders are sent to."""
        return [
            path(
                "<uuid:run_id>/activity/",
                self.admin_site.admin_view(require_POST(self.activity_view)),
                name="wfapp_workflowexecution_activity",
            )
        ]

    def activity_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        """Ask for the reason, then give the order and lead back to the run."""
        run: WorkflowExecution = self._run(request, str(run_id))  # type: ignore[attr-defined]  # of the admin
        if not self.has_operate_permission(request):  # type: ignore[attr-defined]  # of the admin
            raise PermissionDenied
        name, activity_id = request.POST.get("order", ""), request.POST.get("activity", "")
        order = ORDERS.get(name)
        if order is None or not activity_id:
            raise Http404(_("There is no such order."))
        confirmed = "confirmed" in request.POST
        form = order.form(request.POST) if confirmed else order.form()
        if not (confirmed and form.is_valid()):
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": order.title,
                "note": order.note,
                "form": form,
                "run": run,
                "order": name,
                "activity_id": activity_id,
            }
            return TemplateResponse(
                request, "admin/wfapp/workflowexecution/act_on_activity.html", context
            )
        self._order(request, run, order, activity_id, form.cleaned_data)
        return HttpResponseRedirect(
            reverse("admin:wfapp_workflowexecution_change", args=[run.run_id])
        )

    def _order(
        self,
        request: HttpRequest,
        run: WorkflowExecution,
        order: _Order,
        activity_id: str,
        asked: Mapping[str, Any],
    ) -> None:
        operator = operating.Operator(actor=request.user.get_username(), reason=asked["reason"])
        named = {
            "namespace": run.namespace,
            "execution": Execution(workflow_id=run.workflow_id, run_id=str(run.run_id)),
            "identity": operator.actor,
            "id": activity_id,
        }
        facts = {"id": activity_id}
        try:
            operating.perform(operating.view_service(), order.request(named, asked), operator)
        except RPCError as error:
            refused = _("Not done for %(id)s: %(error)s") % {**facts, "error": error.message}
            messages.error(request, refused)
        else:
            messages.success(request, _("Done for activity %(id)s.") % facts)
