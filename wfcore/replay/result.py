"""What a workflow task came to: commands and answers, or why it failed."""

import msgspec

from wfcore.common import VersioningBehavior
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.failures import Failure
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.protocol.updates import ProtocolMessage
from wfcore.replay.local_activities import LocalActivityTask


class WorkflowTaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a workflow task came to.

    Attributes:
        commands: what the code asks for; empty if the task failed.
        messages: what it says about updates.
        local_activities: what the worker has to run before the task is done: go on with each
            outcome by `WorkflowInstance.resolve_local_activity`. One that was handed out before
            and is not listed any more is cancelled. If the task must be answered before they end,
            ask for another one (`force_create_new_workflow_task`).
        query_results: answers to `PollWorkflowTaskQueueResponse.queries`, by their ids.
        query_result: the answer to its `query`.
        core_flags, lang_flags: rules that the completion has to record (`sdkMetadata`).
        versioning_behavior: of the workflow's class.
        cause, failure, error: why the task failed; None if it did not.
    """

    commands: tuple[Command, ...] = ()
    messages: tuple[ProtocolMessage, ...] = ()
    local_activities: tuple[LocalActivityTask, ...] = ()
    query_results: dict[str, WorkflowQueryResult] = {}
    query_result: WorkflowQueryResult | None = None
    core_flags: tuple[int, ...] = ()
    lang_flags: tuple[int, ...] = ()
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED
    cause: WorkflowTaskFailedCause | None = None
    failure: Failure | None = None
    error: BaseException | None = None
