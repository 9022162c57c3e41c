"""Requests and answers by which operators steer pending activities."""

from datetime import timedelta

from wfcore.protocol.common import FieldMask, WorkflowExecution
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.info import ActivityOptions


class PauseActivityRequest(Message, frozen=True):
    """Pause activity request; `id` or `type` names what is meant."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    identity: str = ""
    id: str = ""
    type: str = ""
    reason: str = ""
    request_id: str = ""


class PauseActivityResponse(Message, frozen=True):
    """Pause activity response."""


class UnpauseActivityRequest(Message, frozen=True):
    """Unpause activity request; one of `id`, `type` and `unpause_all` names what is meant."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    identity: str = ""
    id: str = ""
    type: str = ""
    unpause_all: bool = False
    reset_attempts: bool = False
    reset_heartbeat: bool = False
    jitter: timedelta | None = None


class UnpauseActivityResponse(Message, frozen=True):
    """Unpause activity response."""


class ResetActivityRequest(Message, frozen=True):
    """Reset activity request; one of `id`, `type` and `match_all` names what is meant."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    identity: str = ""
    id: str = ""
    type: str = ""
    match_all: bool = False
    reset_heartbeat: bool = False
    keep_paused: bool = False
    jitter: timedelta | None = None
    restore_original_options: bool = False


class ResetActivityResponse(Message, frozen=True):
    """Reset activity response."""


class UpdateActivityOptionsRequest(Message, frozen=True):
    """Update activity options request; one of `id`, `type` and `match_all` names what is meant."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    identity: str = ""
    activity_options: ActivityOptions | None = None
    update_mask: FieldMask | None = None
    id: str = ""
    type: str = ""
    match_all: bool = False
    restore_original: bool = False


class UpdateActivityOptionsResponse(Message, frozen=True):
    """Update activity options response."""

    activity_options: ActivityOptions | None = None
