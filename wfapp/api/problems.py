"""Errors as answers: ``{"code": gRPC code, "message": …, "details": [{"@type": …}]}``.

All errors of the API pass through `answer_to`. What it doesn't know is left to the host's handling
of uncaught exceptions, so that it is logged and reported there.
"""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from wfcore.exceptions import (
    FailedPreconditionError,
    GrpcStatus,
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    RPCError,
    RPCStatusCode,
    TemporalError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from wfcore.service.ports import RunBusyError

logger = logging.getLogger(__name__)

#: HTTP status by gRPC code, as gRPC gateways have it.
HTTP_STATUSES = {
    RPCStatusCode.OK: 200,
    RPCStatusCode.CANCELLED: 499,
    RPCStatusCode.UNKNOWN: 500,
    RPCStatusCode.INVALID_ARGUMENT: 400,
    RPCStatusCode.DEADLINE_EXCEEDED: 504,
    RPCStatusCode.NOT_FOUND: 404,
    RPCStatusCode.ALREADY_EXISTS: 409,
    RPCStatusCode.PERMISSION_DENIED: 403,
    RPCStatusCode.RESOURCE_EXHAUSTED: 429,
    RPCStatusCode.FAILED_PRECONDITION: 400,
    RPCStatusCode.ABORTED: 409,
    RPCStatusCode.OUT_OF_RANGE: 400,
    RPCStatusCode.UNIMPLEMENTED: 501,
    RPCStatusCode.INTERNAL: 500,
    RPCStatusCode.UNAVAILABLE: 503,
    RPCStatusCode.DATA_LOSS: 500,
    RPCStatusCode.UNAUTHENTICATED: 401,
}


def answer_to(error: Exception, _context: Any = None) -> Response | None:
    """The answer that tells of an error; None for one that is nobody's business but the host's."""
    known = _as_rpc_error(error)
    if known is None:
        return None
    headers: dict[str, str] = {}
    if isinstance(error, exceptions.APIException):
        if challenge := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = challenge
        if wait := getattr(error, "wait", None):
            headers["Retry-After"] = str(int(wait))
    return Response(body_of(known.grpc_status), status=HTTP_STATUSES[known.status], headers=headers)


def body_of(status: GrpcStatus) -> dict[str, Any]:
    """The JSON of an error."""
    body: dict[str, Any] = {"code": status.code, "message": status.message}
    if status.details:
        body["details"] = [dict(detail) for detail in status.details]
    return body


def _as_rpc_error(error: Exception) -> RPCError | None:
    if isinstance(error, RunBusyError):
        return UnavailableError("another transaction holds this workflow; repeat the call")
    told = isinstance(error, UnavailableError | FailedPreconditionError)
    reason = error.__cause__ if told else error
    if isinstance(reason, OperationalError | InterfaceError) or (
        told and isinstance(reason, ProgrammingError)
    ):
        # The text of a driver's error names hosts and accounts.
        logger.warning("database unavailable", exc_info=error, extra={"action": "api_database"})
        return UnavailableError("the database can't be had now; repeat the call")
    if isinstance(error, RPCError):
        return error
    if isinstance(error, TemporalError):
        logger.error("call failed", exc_info=error, extra={"action": "api_call"})
        return InternalError(str(error))
    if isinstance(error, Http404):
        return unknown_path()
    if isinstance(error, PermissionDenied):
        return PermissionDeniedError("Request unauthorized.")
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    return None


def _of_framework(error: exceptions.APIException) -> RPCError:
    text = str(error.detail)
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return UnauthenticatedError(text)
    if isinstance(error, exceptions.PermissionDenied):
        return PermissionDeniedError("Request unauthorized.", text)
    if isinstance(error, exceptions.MethodNotAllowed):
        return UnimplementedError("Method Not Allowed")
    if isinstance(error, exceptions.NotFound):
        return unknown_path()
    if isinstance(error, exceptions.Throttled):
        return ResourceExhaustedError(text, ResourceExhaustedCause.RPS_LIMIT)
    return InvalidArgumentError(text)


def unknown_path() -> RPCError:
    """The error of a path that nothing answers; the errors of what is not found have a detail."""
    return RPCError("Not Found", RPCStatusCode.NOT_FOUND)
