"""Requests are checked before anything is read or written; texts are those of Temporal's server."""

import re
from datetime import timedelta
from typing import TypeVar

from wfcore.exceptions import InvalidArgumentError, NamespaceNotFoundError, NotFoundError
from wfcore.history import search_attributes as attributes
from wfcore.history import sizes
from wfcore.history.limits import Limits
from wfcore.protocol import wellformed
from wfcore.protocol.common import Priority, TaskQueue, WorkflowExecution
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import Callback, Link
from wfcore.protocol.payloads import Memo, Payloads, SearchAttributes
from wfcore.schedules import cron
from wfcore.service.host import Host
from wfcore.service.ports import Namespace

#: Queues with this prefix belong to the engine.
RESERVED_PREFIX = "/_sys/"
LINKS_PER_REQUEST = 10
FAIRNESS_KEY_BYTES = 64

R = TypeVar("R", bound=Message)

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_NO_TIME = timedelta()


def fail(text: str) -> InvalidArgumentError:
    """The error of a bad request."""
    return InvalidArgumentError(text)


def wellformed_request(request: R) -> R:
    """The request, if all that it holds can be stored: asked first, before anything is looked up.

    Raises:
        InvalidArgumentError: a text holds NUL or a lone surrogate, a number is not finite or too
            big, or a field has a value of another type; the text names the field.
    """
    if wrong := wellformed.fault(request):
        raise fail(wrong)
    return request


def namespace(host: Host, name: str) -> Namespace:
    """The namespace of a request.

    Raises:
        InvalidArgumentError: the name is empty.
        NamespaceNotFoundError: it isn't registered.
    """
    if not name:
        raise fail("Namespace is empty.")
    found = host.store.namespace(name)
    if found is None:
        raise NamespaceNotFoundError(name)
    return found


def execution(given: WorkflowExecution | None) -> WorkflowExecution:
    """What a request addresses; its run id may be empty."""
    if given is None:
        raise fail("Execution is not set on request.")
    if not given.workflow_id:
        raise fail("WorkflowId is not set on request.")
    if given.run_id and not is_uuid(given.run_id):
        raise fail("Invalid RunId.")
    return given


def is_uuid(text: str) -> bool:
    """Whether a text has the form of a run id."""
    return _UUID.fullmatch(text) is not None


def run_id(given: str) -> None:
    """A run id of a request that names a run by parts; it may be empty."""
    if given and _UUID.fullmatch(given) is None:
        raise fail("RunId is not valid UUID.")


def is_open(status: WorkflowExecutionStatus) -> bool:
    """Whether a run of this status may still change."""
    return status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.PAUSED)


def not_found(workflow_id: str, run_id: str) -> NotFoundError:
    """The error of a request that addresses nothing."""
    if run_id:
        return NotFoundError(
            f'workflow execution not found for workflow ID "{workflow_id}" and run ID "{run_id}"'
        )
    return NotFoundError(f"workflow not found for ID: {workflow_id}")


def completed() -> NotFoundError:
    """The error of a request to a run that is closed."""
    return NotFoundError("workflow execution already completed")


def workflow_id(given: str, limits: Limits) -> None:
    if not given:
        raise fail("WorkflowId is not set on request.")
    length = len(given.encode())
    if length > limits.id_bytes:
        raise fail(f"WorkflowId exceeds maximum allowed length ({length}/{limits.id_bytes})")


def short(given: str, name: str, limits: Limits) -> None:
    """Ids and names have a longest length in bytes."""
    if len(given.encode()) > limits.id_bytes:
        raise fail(f"{name} length exceeds limit.")


def task_queue(given: TaskQueue | None, limits: Limits) -> TaskQueue:
    """A queue by name."""
    if given is None:
        raise fail("taskQueue is not set")
    if not given.name:
        raise fail("missing task queue name")
    if len(given.name.encode()) > limits.id_bytes:
        raise fail("taskQueue length exceeds limit")
    if given.name.startswith(RESERVED_PREFIX):
        raise fail(f"task queue name cannot start with reserved prefix {RESERVED_PREFIX}")
    return given


def duration(given: timedelta | None, name: str) -> None:
    if given is not None and given < _NO_TIME:
        raise fail(f"An invalid {name} is set on request. cause: negative duration")


def cron_schedule(given: str) -> None:
    try:
        cron.parse(given)
    except cron.CronError as error:
        raise fail(str(error)) from error


def blob(given: Payloads | None, limits: Limits) -> None:
    if sizes.payloads_bytes(given) > limits.blob_bytes:
        raise fail("Blob data size exceeds limit.")


def memo(given: Memo | None, limits: Limits) -> None:
    if sizes.memo_bytes(given) > limits.memo_bytes:
        raise fail("Memo size exceeds limit.")


def search_attributes(
    given: SearchAttributes | None, namespace: str, limits: Limits
) -> SearchAttributes | None:
    """The attributes with their types, without those that are null."""
    if given is None or not given.indexed_fields:
        return given
    if fault := attributes.name_fault(given, namespace, limits):
        raise fail(fault)
    if fault := attributes.size_fault(given, limits):
        raise fail(fault)
    return attributes.merged(None, attributes.typed(given, limits))


def priority(given: Priority | None) -> None:
    if given is None:
        return
    if given.priority_key < 0:
        raise fail("priority key can't be negative")
    if len(given.fairness_key.encode()) > FAIRNESS_KEY_BYTES:
        raise fail("fairness key length exceeds limit")
    if given.fairness_weight < 0:
        raise fail("must be greater than zero")


def links(given: tuple[Link, ...]) -> None:
    if len(given) > LINKS_PER_REQUEST:
        raise fail(
            f"cannot attach more than {LINKS_PER_REQUEST} links per request, got {len(given)}"
        )


def callbacks(given: tuple[Callback, ...]) -> None:
    """No address is allowed to be called back yet, so each callback is refused."""
    for callback in given:
        url = callback.nexus.url if callback.nexus is not None else ""
        if not url.startswith(("http://", "https://")):
            raise fail(f"invalid url: unknown scheme: {url}")
        raise fail(f"invalid url: url does not match any configured callback address: {url}")
