"""How big user data is, counted as Temporal counts it: bytes of its protobuf form, payloads
exactly, failures but for a few bytes.

Also the shortening of failures that are too big to keep.
"""

from collections.abc import Mapping

import msgspec

from wfcore.protocol.failures import ApplicationFailureInfo, Failure, ServerFailureInfo
from wfcore.protocol.payloads import Memo, Payload, Payloads
from wfcore.protocol.updates import Outcome, Request

#: Message of the failure that stands for one that was too big.
FAILURE_TOO_BIG = "Failure exceeds size limit."
#: Infos that hold ids and names only, and what one of them is taken for.
_SMALL_INFOS = (
    "terminated_failure_info",
    "server_failure_info",
    "reset_workflow_failure_info",
    "activity_failure_info",
    "child_workflow_execution_failure_info",
    "nexus_operation_execution_failure_info",
    "nexus_handler_failure_info",
)
_OTHER_INFO = 64
#: Below this a cause would say nothing.
_LEAST_ROOM = 64


def _field(length: int) -> int:
    """Bytes of a field with `length` bytes of content: tag, length, content."""
    prefix = 2
    rest = length >> 7
    while rest:
        prefix += 1
        rest >>= 7
    return prefix + length


def payload_bytes(payload: Payload) -> int:
    """Size of one value."""
    total = _field(len(payload.data)) if payload.data else 0
    for key, value in payload.metadata.items():
        total += _field(_field(len(key.encode())) + _field(len(value)))
    return total


def payloads_bytes(payloads: Payloads | None) -> int:
    """Size of a list of values."""
    if payloads is None:
        return 0
    return sum(_field(payload_bytes(payload)) for payload in payloads.payloads)


def memo_bytes(memo: Memo | None) -> int:
    """Size of a memo."""
    if memo is None:
        return 0
    return sum(
        _field(_field(len(key.encode())) + _field(payload_bytes(payload)))
        for key, payload in memo.fields.items()
    )


def marker_bytes(details: Mapping[str, Payloads]) -> int:
    """Size of a marker's details."""
    return sum(len(key.encode()) + payloads_bytes(value) for key, value in details.items())


def request_bytes(request: Request | None) -> int:
    """Size of an update's request."""
    if request is None or request.input is None:
        return 0
    header = request.input.header
    fields = header.fields if header is not None else {}
    return payloads_bytes(request.input.args) + memo_bytes(Memo(fields=fields))


def outcome_bytes(outcome: Outcome | None) -> int:
    """Size of an update's outcome."""
    if outcome is None:
        return 0
    return payloads_bytes(outcome.success) + failure_bytes(outcome.failure)


def failure_bytes(failure: Failure | None) -> int:
    """Size of a failure with all its causes."""
    total = 0
    while failure is not None:
        for text in (failure.message, failure.source, failure.stack_trace):
            total += _field(len(text.encode())) if text else 0
        if failure.encoded_attributes is not None:
            total += _field(payload_bytes(failure.encoded_attributes))
        total += _info_bytes(failure)
        failure = failure.cause
        total += 2 if failure is not None else 0
    return total


def _info_bytes(failure: Failure) -> int:
    if (application := failure.application_failure_info) is not None:
        kind, details = len(application.type.encode()), payloads_bytes(application.details)
        flag = 2 if application.non_retryable else 0
        return _field((_field(kind) if kind else 0) + flag + (_field(details) if details else 0))
    if (timeout := failure.timeout_failure_info) is not None:
        return _field(payloads_bytes(timeout.last_heartbeat_details) + 2)
    if (canceled := failure.canceled_failure_info) is not None:
        return _field(payloads_bytes(canceled.details))
    return _OTHER_INFO if any(getattr(failure, name) is not None for name in _SMALL_INFOS) else 0


def shorten_failure(failure: Failure | None, limit: int, *, non_retryable: bool) -> Failure | None:
    """The failure, or a ServerFailure that says that it was too big, caused by what fits."""
    if failure is None or failure_bytes(failure) <= limit:
        return failure
    return Failure(
        message=FAILURE_TOO_BIG,
        source=failure.source,
        cause=_cut(failure, limit),
        server_failure_info=ServerFailureInfo(non_retryable=non_retryable),
    )


def _cut(failure: Failure, room: int) -> Failure:
    """As much of a failure as fits: type and message first, stack trace and causes last."""
    kept: dict[str, object] = {}
    if (application := failure.application_failure_info) is not None:
        kind = _cut_text(application.type, room - 8)
        room -= len(kind.encode()) + 8
        kept["application_failure_info"] = ApplicationFailureInfo(
            type=kind,
            non_retryable=application.non_retryable,
            next_retry_delay=application.next_retry_delay,
        )
    elif failure.server_failure_info is not None:
        kept["server_failure_info"] = failure.server_failure_info
        room -= 4
    for name in ("message", "source", "stack_trace"):
        text = _cut_text(getattr(failure, name), room - 4)
        if text:
            kept[name] = text
            room -= len(text.encode()) + 4
    if failure.cause is not None and room > _LEAST_ROOM:
        kept["cause"] = _cut(failure.cause, room)
    return msgspec.structs.replace(Failure(), **kept)


def _cut_text(text: str, room: int) -> str:
    """The longest beginning of a text that has no more than `room` bytes."""
    if room <= 0:
        return ""
    encoded = text.encode()
    return text if len(encoded) <= room else encoded[:room].decode(errors="ignore")
