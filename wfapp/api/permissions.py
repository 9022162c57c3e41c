"""Who may call what: logged in, and with the permissions that the operation names.

They are Django's own, given to users and groups: `VIEW` to see runs, `VIEW_PAYLOADS` to see what
they carry, `OPERATE` to start, signal, cancel and end them.
"""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

if TYPE_CHECKING:
    from wfapp.api.operations import Operation

VIEW = "wfapp.view_workflowexecution"
VIEW_PAYLOADS = "wfapp.view_payloads"
OPERATE = "wfapp.operate"


class MayCall(BasePermission):
    """The caller has all permissions of the operation that answers this method."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        operation: Operation | None = view.operations.get(request.method)  # type: ignore[attr-defined]  # of RpcView
        return operation is None or request.user.has_perms(operation.permissions)


def may_see_payloads(request: Request) -> bool:
    """Whether the caller sees user data, or marks in its place."""
    return bool(request.user.has_perm(VIEW_PAYLOADS))
