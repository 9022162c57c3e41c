"""Commands that only leave a note: markers, which belong to the worker, and changes of the memo and
of the search attributes.
"""

from wfcore.history import search_attributes
from wfcore.history.faults import BadCommandError
from wfcore.history.sizes import marker_bytes, memo_bytes
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.payloads import Memo, Payload


def record(step: Step, command: Command, attributes: commands.RecordMarker, completed: int) -> None:
    """RECORD_MARKER."""
    cause = Cause.BAD_RECORD_MARKER_ATTRIBUTES
    name = attributes.marker_name
    if not name:
        raise BadCommandError(cause, "MarkerName is not set on RecordMarkerCommand.")
    length = len(name.encode())
    if length > step.limits.id_bytes:
        raise BadCommandError(
            cause,
            f"MarkerName on RecordMarkerCommand exceeds length limit. MarkerName={name} "
            f"Length={length} Limit={step.limits.id_bytes}",
        )
    if marker_bytes(attributes.details) > step.limits.blob_bytes:
        raise BadCommandError(
            cause, "RecordMarkerCommandAttributes.Details exceeds size limit.", terminates=True
        )
    step.append(
        events.MarkerRecorded(
            marker_name=name,
            details=attributes.details,
            workflow_task_completed_event_id=completed,
            header=attributes.header,
            failure=attributes.failure,
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )


def modify_properties(
    step: Step, command: Command, attributes: commands.ModifyWorkflowProperties, completed: int
) -> None:
    """MODIFY_WORKFLOW_PROPERTIES: changed keys of the memo; an empty value takes a key away."""
    cause = Cause.BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES
    upserted = attributes.upserted_memo
    if upserted is None or not upserted.fields:
        raise BadCommandError(
            cause, "UpsertedMemo.Fields is not set on ModifyWorkflowPropertiesCommand."
        )
    if memo_bytes(upserted) > step.limits.blob_bytes:
        raise BadCommandError(
            cause,
            "ModifyWorkflowPropertiesCommandAttributes exceeds size limit.",
            terminates=True,
        )
    memo = merged_memo(step.change.memo or step.change.current_memo, upserted)
    if memo_bytes(memo) > step.limits.memo_bytes:
        raise BadCommandError(
            cause,
            "ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.",
            terminates=True,
        )
    step.append(
        events.WorkflowPropertiesModified(
            workflow_task_completed_event_id=completed, upserted_memo=upserted
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    step.change.memo = memo


def upsert_search_attributes(
    step: Step,
    command: Command,
    attributes: commands.UpsertWorkflowSearchAttributes,
    completed: int,
) -> None:
    """UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: changed keys; an empty value takes a key away."""
    cause = Cause.BAD_SEARCH_ATTRIBUTES
    change, limits = step.change, step.limits
    given = attributes.search_attributes
    if given is None or not given.indexed_fields:
        raise BadCommandError(
            cause, "IndexedFields is not set on UpsertWorkflowSearchAttributesCommand."
        )
    if fault := search_attributes.name_fault(given, step.recorded.namespace, limits):
        raise BadCommandError(cause, fault)
    given = search_attributes.typed(given, limits)
    merged = search_attributes.merged(
        change.search_attributes or change.current_search_attributes, given
    )
    for values in (given, merged):
        if fault := search_attributes.size_fault(values, limits):
            raise BadCommandError(cause, fault, terminates=True)
    step.append(
        events.UpsertWorkflowSearchAttributes(
            workflow_task_completed_event_id=completed, search_attributes=given
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    change.search_attributes = merged


def merged_memo(memo: Memo | None, upserted: Memo) -> Memo:
    """A memo with changed keys; an empty value takes a key away."""
    fields = dict(memo.fields) if memo is not None else {}
    for key, value in upserted.fields.items():
        if _is_empty(value):
            fields.pop(key, None)
        else:
            fields[key] = value
    return Memo(fields=fields)


def _is_empty(payload: Payload) -> bool:
    return payload.data in (b"", b"null")
