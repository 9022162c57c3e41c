"""One operation of the API: which call of the service it is, and where its request comes from.

A request is read from the body (POST) or from the query parameters (GET); what the path names wins.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import msgspec
from django.http import QueryDict

from wfapp import operating
from wfapp.presentation.message_json import read_message, read_string, read_text
from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol.message import Message
from wfcore.service.workflow_service import WorkflowService


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request, ready to be done, and what else is known of its caller."""

    request: Any
    service: WorkflowService
    #: name of the user
    actor: str = ""
    #: what the client calls itself (the header ``Client-Name`` of Temporal's SDKs and tools)
    client: str = ""

    def perform(self, request: Message | None = None, **options: Any) -> Any:
        """Do what the request, or another one in its place, asks for; kept in the audit log."""
        reason = getattr(self.request, "reason", "")
        operator = operating.Operator(actor=self.actor, reason=reason)
        return operating.perform(self.service, request or self.request, operator, **options)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """How one method on one path is answered."""

    #: Temporal's name of the call
    name: str
    summary: str
    request: type[Message]
    response: type[Message]
    run: Callable[[Call], Message]
    permissions: tuple[str, ...]
    #: arguments of the path, and the field of the request that each fills
    path_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: a last touch to the JSON of the answer
    finish: Callable[[dict[str, Any]], None] | None = None

    def from_body(self, data: Any, arguments: Mapping[str, str], *, short: bool) -> Message:
        """The request that a body holds.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        return self._with_path(read_message(self.request, data, short=short), arguments)

    def from_query(self, parameters: QueryDict, arguments: Mapping[str, str]) -> Message:
        """The request that query parameters hold; those that name no field are passed over.

        Raises:
            InvalidArgumentError: a value is malformed.
        """
        message = self.request()
        for name in parameters:
            path = tuple(_snake(part) for part in name.split("."))
            try:
                value = read_text(self.request, path, parameters.getlist(name))
            except KeyError:
                continue
            message = with_field(message, path, value)
        return self._with_path(message, arguments)

    def _with_path(self, message: Message, arguments: Mapping[str, str]) -> Message:
        for name, text in arguments.items():
            try:
                value = read_string(text)
            except ValueError as error:
                raise InvalidArgumentError(f"{name}: {error}") from None
            message = with_field(message, self.path_fields[name], value)
        return message


def with_field(message: Message, path: Iterable[str], value: Any) -> Message:
    """The message with a field set; messages on the way to it are made where they are missing."""
    name, *rest = path
    if rest:
        inner = getattr(message, name)
        if inner is None:
            inner = _kind_of(type(message), name)()
        value = with_field(inner, rest, value)
    return msgspec.structs.replace(message, **{name: value})


def _kind_of(kind: type[Message], name: str) -> Any:
    hint = get_type_hints(kind)[name]
    return next(arg for arg in hint.__args__ if arg is not type(None))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
