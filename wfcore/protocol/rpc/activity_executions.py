"""Requests and answers by which one activity is steered that is named by workflow and activity id.

Newer than those of `activity_operations`, which do the same and may name several.
"""

from datetime import timedelta

from wfcore.protocol.common import FieldMask
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.info import ActivityOptions


class PauseActivityExecutionRequest(Message, frozen=True):
    """Pause activity execution request."""

    namespace: str = ""
    workflow_id: str = ""
    activity_id: str = ""
    run_id: str = ""
    identity: str = ""
    reason: str = ""
    resource_id: str = ""
    request_id: str = ""


class PauseActivityExecutionResponse(Message, frozen=True):
    """Pause activity execution response."""


class UnpauseActivityExecutionRequest(Message, frozen=True):
    """Unpause activity execution request."""

    namespace: str = ""
    workflow_id: str = ""
    activity_id: str = ""
    run_id: str = ""
    identity: str = ""
    reason: str = ""
    jitter: timedelta | None = None
    resource_id: str = ""
    request_id: str = ""


class UnpauseActivityExecutionResponse(Message, frozen=True):
    """Unpause activity execution response."""


class ResetActivityExecutionRequest(Message, frozen=True):
    """Reset activity execution request."""

    namespace: str = ""
    workflow_id: str = ""
    activity_id: str = ""
    run_id: str = ""
    identity: str = ""
    keep_paused: bool = False
    jitter: timedelta | None = None
    restore_original_options: bool = False
    resource_id: str = ""
    request_id: str = ""
    reset_heartbeat: bool = False


class ResetActivityExecutionResponse(Message, frozen=True):
    """Reset activity execution response."""


class UpdateActivityExecutionOptionsRequest(Message, frozen=True):
    """Update activity execution options request."""

    namespace: str = ""
    workflow_id: str = ""
    activity_id: str = ""
    run_id: str = ""
    identity: str = ""
    activity_options: ActivityOptions | None = None
    update_mask: FieldMask | None = None
    restore_original: bool = False
    resource_id: str = ""
    request_id: str = ""


class UpdateActivityExecutionOptionsResponse(Message, frozen=True):
    """Update activity execution options response."""

    activity_options: ActivityOptions | None = None
