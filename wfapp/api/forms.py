"""Four forms of an answer: compact or indented, with user data short or long.

Chosen by the Accept header, by the content type of the request's body, or by the query parameters
``pretty`` and ``noPayloadShorthand``, whose values don't matter. What is not understood gives plain
JSON. The content type of a body is looked at for nothing else.
"""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from wfapp.presentation import json_text


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written."""

    pretty: bool = False
    short: bool = True

    @property
    def media_type(self) -> str:
        """The content type of such an answer."""
        pretty = "+pretty" if self.pretty else ""
        return f"application/json{pretty}{'' if self.short else '+no-payload-shorthand'}"


_FORMS = {
    form.media_type: form
    for form in (Form(pretty, short) for pretty in (False, True) for short in (False, True))
}
_PRETTY_PARAMETERS = ("pretty",)
_LONG_PARAMETERS = ("noPayloadShorthand", "no_payload_shorthand")


def form_of(request: HttpRequest) -> Form:
    """The form in which a request wants its answer."""
    chosen = Form()
    for text in (*request.headers.get("Accept", "").split(","), request.content_type or ""):
        named = _FORMS.get(text.partition(";")[0].strip())
        if named is not None:
            chosen = named
            if named != Form():
                break
    return Form(
        pretty=chosen.pretty or any(name in request.GET for name in _PRETTY_PARAMETERS),
        short=chosen.short and not any(name in request.GET for name in _LONG_PARAMETERS),
    )


def body_is_short(request: HttpRequest) -> bool:
    """Whether user data in the body of a request may stand in the short form."""
    named = _FORMS.get(request.content_type or "")
    return named is None or named.short


class JSONRenderer(BaseRenderer):
    """Writes the value of an answer."""

    media_type = Form().media_type
    format = "json"
    charset = None

    def __init__(self, form: Form | None = None) -> None:
        self.form = form or Form()
        self.media_type = self.form.media_type

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Any = None,
    ) -> bytes:
        return b"" if data is None else json_text.write(data, pretty=self.form.pretty)


class UnreadBody(BaseParser):
    """Leaves the body to the view. A session's check against forged requests asks for a form in
    it, and is answered that there is none: such a client sends its token as a header.
    """

    media_type = "*/*"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Any = None
    ) -> QueryDict:
        return QueryDict("")


class FormNegotiation(BaseContentNegotiation):
    """Chooses among the four forms; no request is refused for what it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[JSONRenderer, str]:
        form = form_of(request._request)  # noqa: SLF001 - DRF's own name for what it wraps
        return JSONRenderer(form), form.media_type
