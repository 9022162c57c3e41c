"""From HTTP to the service and back; what each path does stands in `wfapp.api.paths`.

A view is left outside of the host's transactions (ATOMIC_REQUESTS): it may wait for a worker, and
what it starts must be seen before it answers.
"""

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from wfapp import operating
from wfapp.api import problems, raw_path
from wfapp.api.forms import FormNegotiation, JSONRenderer, UnreadBody, body_is_short, form_of
from wfapp.api.operations import Call, Operation
from wfapp.api.permissions import MayCall, may_see_payloads
from wfapp.api.schema import OperationSchema
from wfapp.presentation import json_text
from wfapp.presentation.masking import hide_payloads
from wfapp.presentation.message_json import write_message
from wfcore.exceptions import InvalidArgumentError

logger = logging.getLogger(__name__)

#: The longest body of a request, as Temporal's server takes it.
BODY_BYTES = 4 * 1024 * 1024


class RpcView(APIView):
    """A path of the API. A subclass says in `operations` which methods it has."""

    operations: ClassVar[Mapping[str, Operation]] = {}

    permission_classes = (MayCall,)
    parser_classes = (UnreadBody,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = FormNegotiation
    versioning_class = None
    metadata_class = None
    schema = OperationSchema()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.http_method_names = [method.lower() for method in cls.operations]

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view: Callable[..., HttpResponseBase] = super().as_view(**initkwargs)

        @wraps(view)
        def routed(request: HttpRequest, **arguments: str) -> HttpResponseBase:
            if not raw_path.has_encoded_slash(request):
                return view(request, **arguments)
            return answer_raw(request)

        routed.exact = view  # type: ignore[attr-defined]  # for `answer_raw`, which has the arguments
        for alias in settings.DATABASES:
            transaction.non_atomic_requests(using=alias)(routed)
        return routed

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        # Before anything else reads it, which would set no limit.
        self.body, self.body_error = _read_body(request)
        return super().initialize_request(request, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return problems.answer_to

    def get(self, request: Request, **arguments: str) -> Response:
        """Answer from the query parameters."""
        operation = self.operations["GET"]
        return self._answer(request, operation, operation.from_query(request.GET, arguments))

    def post(self, request: Request, **arguments: str) -> Response:
        """Answer from the body."""
        operation = self.operations["POST"]
        if self.body_error is not None:
            raise self.body_error
        try:
            data = json_text.read(self.body.decode()) if self.body.strip() else {}
        except ValueError as error:
            raise InvalidArgumentError(f"the body is no JSON: {error}") from None
        short = body_is_short(request._request)  # noqa: SLF001 - DRF's name for what it wraps
        return self._answer(request, operation, operation.from_body(data, arguments, short=short))

    def _answer(self, request: Request, operation: Operation, message: Any) -> Response:
        call = Call(
            request=message,
            service=operating.view_service(),
            actor=request.user.get_username(),
            client=request.headers.get("Client-Name", ""),
        )
        answer = operation.run(call)
        if not may_see_payloads(request):
            answer = hide_payloads(answer)
        form = form_of(request._request)  # noqa: SLF001 - DRF's name for what it wraps
        body = write_message(answer, short=form.short)
        if operation.finish is not None:
            operation.finish(body)
        return Response(body)


def _read_body(request: HttpRequest) -> tuple[bytes, InvalidArgumentError | None]:
    """The body, of which no more than the limit is ever read."""
    body, error = b"", None
    try:
        declared = int(request.headers.get("content-length") or 0)
    except ValueError:
        declared, error = 0, InvalidArgumentError("Content-Length is no number")
    if declared <= BODY_BYTES and error is None:
        body = request.read(BODY_BYTES + 1)
    if max(declared, len(body)) > BODY_BYTES:
        body, error = b"", InvalidArgumentError("http: request body too large")
    request._body = body  # noqa: SLF001 - where Django looks for it
    return body, error


def answer_raw(request: HttpRequest) -> HttpResponseBase:
    """Answer a path with an encoded slash, whose decoded form would lead elsewhere."""
    match = raw_path.resolve_raw(request)
    exact = getattr(match.func, "exact", None) if match is not None else None
    if match is None or exact is None:
        return _not_found(request)
    answer: HttpResponseBase = exact(request, **match.kwargs)
    return answer


@csrf_exempt
def unknown_path(request: HttpRequest, **_: str) -> HttpResponseBase:
    """404 in the API's own words, for all paths below it that nothing else answers."""
    if raw_path.has_encoded_slash(request):
        return answer_raw(request)
    return _not_found(request)


def _not_found(request: HttpRequest) -> HttpResponse:
    error = problems.unknown_path()
    form = form_of(request)
    return HttpResponse(
        json_text.write(problems.body_of(error.grpc_status), pretty=form.pretty),
        status=problems.HTTP_STATUSES[error.status],
        content_type=form.media_type,
    )
