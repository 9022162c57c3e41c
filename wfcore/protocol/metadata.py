"""Rarely used values: links, callbacks, worker versions, reset points, event groups."""

from datetime import datetime, timedelta

from wfcore.protocol.enums import (
    ContinueAsNewVersioningBehavior,
    EventType,
    ExecutionType,
    PinnedOverrideBehavior,
    VersioningBehavior,
)
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.payloads import Payload


class ResetPointInfo(Message, frozen=True):
    """Reset point info."""

    build_id: str = ""
    binary_checksum: str = ""  # deprecated
    run_id: str = ""
    first_workflow_task_completed_id: int = 0
    create_time: datetime | None = None
    expire_time: datetime | None = None
    resettable: bool = False


class ResetPoints(Message, frozen=True):
    """Reset points."""

    points: tuple[ResetPointInfo, ...] = ()


class WorkerVersionStamp(Message, frozen=True):
    """Worker version stamp."""

    build_id: str = ""
    use_versioning: bool = False


class InternalCallback(Message, frozen=True):
    """Internal callback."""

    data: bytes = b""


class NexusCallback(Message, frozen=True):
    """Nexus callback."""

    url: str = ""
    header: dict[str, str] = {}


class CallbackNexusHandler(Message, frozen=True):
    """Callback nexus handler."""

    task_queue_name: str = ""
    service: str = ""
    operation: str = ""
    source_context: Payload | None = None


class LinkActivity(Message, frozen=True):
    """Link activity."""

    namespace: str = ""
    activity_id: str = ""
    run_id: str = ""


class LinkBatchJob(Message, frozen=True):
    """Link batch job."""

    job_id: str = ""


class Execution(Message, frozen=True):
    """Execution."""

    type: ExecutionType = ExecutionType.UNSPECIFIED
    business_id: str = ""
    run_id: str = ""


class LinkCallback(Message, frozen=True):
    """Link callback."""

    namespace: str = ""
    execution: Execution | None = None
    component_path: tuple[str, ...] = ()
    request_id: str = ""


class LinkNexusOperation(Message, frozen=True):
    """Link nexus operation."""

    namespace: str = ""
    operation_id: str = ""
    run_id: str = ""


class LinkWorkflow(Message, frozen=True):
    """Link workflow."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    reason: str = ""


class LinkWorkflowEventEventReference(Message, frozen=True):
    """Link workflow event event reference."""

    event_id: int = 0
    event_type: EventType = EventType.UNSPECIFIED


class LinkWorkflowEventRequestIdReference(Message, frozen=True):
    """Link workflow event request id reference."""

    request_id: str = ""
    event_type: EventType = EventType.UNSPECIFIED


class LinkWorkflowEvent(Message, frozen=True):
    """Link workflow event."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    event_ref: LinkWorkflowEventEventReference | None = None
    request_id_ref: LinkWorkflowEventRequestIdReference | None = None


class Link(Message, frozen=True):
    """Link."""

    workflow_event: LinkWorkflowEvent | None = None
    batch_job: LinkBatchJob | None = None
    activity: LinkActivity | None = None
    nexus_operation: LinkNexusOperation | None = None
    workflow: LinkWorkflow | None = None
    callback: LinkCallback | None = None


class Callback(Message, frozen=True):
    """Callback."""

    nexus: NexusCallback | None = None
    internal: InternalCallback | None = None
    nexus_handler: CallbackNexusHandler | None = None
    links: tuple[Link, ...] = ()


class Deployment(Message, frozen=True):
    """Deployment."""

    series_name: str = ""
    build_id: str = ""


class WorkerDeploymentVersion(Message, frozen=True):
    """Worker deployment version."""

    build_id: str = ""
    deployment_name: str = ""


class VersioningOverrideOneTimeOverride(Message, frozen=True):
    """Versioning override one time override."""

    target_deployment_version: WorkerDeploymentVersion | None = None


class VersioningOverridePinnedOverride(Message, frozen=True):
    """Versioning override pinned override."""

    behavior: PinnedOverrideBehavior = PinnedOverrideBehavior.UNSPECIFIED
    version: WorkerDeploymentVersion | None = None


class VersioningOverride(Message, frozen=True):
    """Versioning override."""

    pinned: VersioningOverridePinnedOverride | None = None
    auto_upgrade: bool = False
    one_time: VersioningOverrideOneTimeOverride | None = None
    behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED  # deprecated
    deployment: Deployment | None = None  # deprecated
    pinned_version: str = ""  # deprecated


class InheritedAutoUpgradeInfo(Message, frozen=True):
    """Inherited auto upgrade info."""

    source_deployment_version: WorkerDeploymentVersion | None = None
    source_deployment_revision_number: int = 0
    continue_as_new_initial_versioning_behavior: ContinueAsNewVersioningBehavior = (
        ContinueAsNewVersioningBehavior.UNSPECIFIED
    )


class FastForwardConfig(Message, frozen=True):
    """Fast forward config."""

    id: str = ""
    duration: timedelta | None = None


class TimeSkippingConfig(Message, frozen=True):
    """Time skipping config."""

    enabled: bool = False
    fast_forward_config: FastForwardConfig | None = None
    disable_propagation: bool = False
    max_session_skip_count: Int32 = 0


class TimeSkippingStatePropagation(Message, frozen=True):
    """Time skipping state propagation."""

    initial_skipped_duration: timedelta | None = None
    fast_forward_target_time: datetime | None = None
    initial_skip_count: Int32 = 0


class PropagatedSerializationContext(Message, frozen=True):
    """Propagated serialization context."""

    endpoint: str = ""
    service: str = ""
    operation: str = ""


class WorkflowTaskCompletedMetadata(Message, frozen=True):
    """Workflow task completed metadata."""

    core_used_flags: tuple[Int32, ...] = ()
    lang_used_flags: tuple[Int32, ...] = ()
    sdk_name: str = ""
    sdk_version: str = ""


class MeteringMetadata(Message, frozen=True):
    """Metering metadata."""

    nonfirst_local_activity_execution_attempts: Int32 = 0


class Principal(Message, frozen=True):
    """Principal."""

    type: str = ""
    name: str = ""


class EventGroupMarkerInboundEvent(Message, frozen=True):
    """Event group marker inbound event."""

    inbound_event_id: int = 0


class EventGroupMarkerInboundUpdate(Message, frozen=True):
    """Event group marker inbound update."""

    inbound_update_id: str = ""


class EventGroupMarkerLabel(Message, frozen=True):
    """Event group marker label."""

    id: str = ""
    label: Payload | None = None


class EventGroupMarker(Message, frozen=True):
    """Event group marker."""

    label: EventGroupMarkerLabel | None = None
    inbound_event: EventGroupMarkerInboundEvent | None = None
    inbound_update: EventGroupMarkerInboundUpdate | None = None
