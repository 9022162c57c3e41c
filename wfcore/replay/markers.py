"""Markers in histories that workers write for themselves: what they mean, in old forms too."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wfcore.converter import PayloadConverter
from wfcore.protocol import commands, events
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads

PATCH = "core_patch"
#: The search attribute that lists a run's patches.
CHANGE_VERSION = "TemporalChangeVersion"
_PATCH_DATA = "patch-data"
LOCAL_ACTIVITY = "core_local_activity"
_LOCAL_DATA = "data"
_LOCAL_RESULT = "result"
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Patch:
    """What a patch's marker says."""

    id: str
    deprecated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalActivityRecord:
    """What a local activity's marker says.

    `complete_time` becomes the workflow's time. `turn` counts how often the code had run in the
    task before it was told.
    """

    number: int
    attempt: int
    activity_id: str
    activity_type: str
    complete_time: datetime | None = None
    original_schedule_time: datetime | None = None
    backoff: timedelta | None = None
    result: Payloads | None = None
    failure: Failure | None = None
    turn: int = 0


def patch_marker(patch_id: str, *, deprecated: bool) -> commands.RecordMarker:
    """The command that records a patch."""
    payload = PayloadConverter.default.to_payload({"id": patch_id, "deprecated": deprecated})
    return commands.RecordMarker(
        marker_name=PATCH, details={_PATCH_DATA: Payloads(payloads=(payload,))}
    )


def read_patch(marker: Message) -> Patch | None:
    """What a marker's event or command says about a patch; None if it is anything else."""
    if not isinstance(marker, events.MarkerRecorded | commands.RecordMarker):
        return None
    if marker.marker_name != PATCH:
        return None
    details = marker.details
    if _PATCH_DATA in details:
        data = _value(details, _PATCH_DATA)
        return Patch(str(data["id"]), bool(data.get("deprecated")))
    if "patch_id" in details:  # as workers wrote it before 2023
        return Patch(str(_value(details, "patch_id")), _value(details, "deprecated") is True)
    return None


def local_activity_marker(record: LocalActivityRecord, turn: int) -> commands.RecordMarker:
    """The command that records how a local activity ended."""
    data = {
        "seq": record.number,
        "attempt": record.attempt,
        "activity_id": record.activity_id,
        "activity_type": record.activity_type,
        "complete_time": _write_time(record.complete_time),
        "backoff": _write_duration(record.backoff),
        "original_schedule_time": _write_time(record.original_schedule_time),
        "activation_index": turn,
    }
    details = {_LOCAL_DATA: Payloads(payloads=(PayloadConverter.default.to_payload(data),))}
    if record.result is not None:
        details[_LOCAL_RESULT] = record.result
    return commands.RecordMarker(
        marker_name=LOCAL_ACTIVITY, details=details, failure=record.failure
    )


def read_local_activity(marker: Message) -> LocalActivityRecord | None:
    """How a local activity ended, from its marker's event; None if it is anything else."""
    if not isinstance(marker, events.MarkerRecorded | commands.RecordMarker):
        return None
    if marker.marker_name != LOCAL_ACTIVITY:
        return None
    data = _value(marker.details, _LOCAL_DATA)
    return LocalActivityRecord(
        number=int(data["seq"]),
        attempt=int(data.get("attempt", 0)),
        activity_id=str(data.get("activity_id", "")),
        activity_type=str(data.get("activity_type", "")),
        complete_time=_read_time(data.get("complete_time")),
        original_schedule_time=_read_time(data.get("original_schedule_time")),
        backoff=_read_duration(data.get("backoff")),
        result=marker.details.get(_LOCAL_RESULT),
        failure=marker.failure,
        turn=int(data.get("activation_index") or 0),
    )


def _write_time(value: datetime | None) -> dict[str, int] | None:
    return None if value is None else _write_duration(value - _EPOCH)


def _write_duration(value: timedelta | None) -> dict[str, int] | None:
    if value is None:
        return None
    seconds, microseconds = divmod(value // timedelta(microseconds=1), 1_000_000)
    return {"seconds": seconds, "nanos": microseconds * 1000}


def _read_time(value: Any) -> datetime | None:
    duration = _read_duration(value)
    return None if duration is None else _EPOCH + duration


def _read_duration(value: Any) -> timedelta | None:
    if value is None:
        return None
    nanos = int(value.get("nanos", 0))
    return timedelta(seconds=int(value.get("seconds", 0)), microseconds=nanos // 1000)


def is_change_version(attributes: Message) -> bool:
    """Whether an upsert's event or command is the one that goes with a patch."""
    upserts = (events.UpsertWorkflowSearchAttributes, commands.UpsertWorkflowSearchAttributes)
    if not isinstance(attributes, upserts) or attributes.search_attributes is None:
        return False
    return CHANGE_VERSION in attributes.search_attributes.indexed_fields


def _value(details: dict[str, Payloads], name: str) -> Any:
    found = details.get(name)
    if found is None or not found.payloads:
        return None
    payload: Payload = found.payloads[0]
    if payload.metadata.get("encoding") == b"json/plain":
        return json.loads(payload.data)
    if name == "deprecated":
        return payload.data == b"\x01"
    return payload.data.decode()
