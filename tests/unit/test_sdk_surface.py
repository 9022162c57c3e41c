"""Public names have the parameters, defaults, members and fields of Temporal's Python SDK.

A module is added by a line in `NAMES`; what differs on purpose is in `DEVIATIONS`, with the reason.
"""

import dataclasses
import enum
import fnmatch
import importlib
import inspect
from collections.abc import Collection, Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest

NAMES: dict[str, tuple[str, ...]] = {
    "activity": (
        "ActivityCancellationDetails",
        "Info",
        "LoggerAdapter",
        "cancellation_details",
        "client",
        "defn",
        "heartbeat",
        "in_activity",
        "info",
        "is_cancelled",
        "is_worker_shutdown",
        "logger",
        "metric_meter",
        "payload_converter",
        "raise_complete_async",
        "shield_thread_cancel_exception",
        "wait_for_cancelled",
        "wait_for_cancelled_sync",
        "wait_for_worker_shutdown",
        "wait_for_worker_shutdown_sync",
    ),
    "client": (
        "AsyncActivityCancelledError",
        "AsyncActivityHandle",
        "AsyncActivityIDReference",
        "CancelWorkflowInput",
        "Client",
        "CompleteAsyncActivityInput",
        "CountWorkflowsInput",
        "DescribeWorkflowInput",
        "FailAsyncActivityInput",
        "FetchWorkflowHistoryEventsInput",
        "HeartbeatAsyncActivityInput",
        "Interceptor",
        "ListWorkflowsInput",
        "OutboundInterceptor",
        "QueryWorkflowInput",
        "ReportCancellationAsyncActivityInput",
        "SignalWorkflowInput",
        "StartWorkflowInput",
        "StartWorkflowUpdateInput",
        "StartWorkflowUpdateWithStartInput",
        "TerminateWorkflowInput",
        "UpdateWithStartStartWorkflowInput",
        "UpdateWithStartUpdateWorkflowInput",
        "WithStartWorkflowOperation",
        "WorkflowContinuedAsNewError",
        "WorkflowExecution",
        "WorkflowExecutionAsyncIterator",
        "WorkflowExecutionCount",
        "WorkflowExecutionCountAggregationGroup",
        "WorkflowExecutionDescription",
        "WorkflowFailureError",
        "WorkflowHandle",
        "WorkflowHistory",
        "WorkflowHistoryEventAsyncIterator",
        "WorkflowHistoryEventFilterType",
        "WorkflowQueryFailedError",
        "WorkflowQueryRejectedError",
        "WorkflowUpdateFailedError",
        "WorkflowUpdateHandle",
        "WorkflowUpdateRPCTimeoutOrCancelledError",
        "WorkflowUpdateStage",
    ),
    "common": (
        "ActivityIDConflictPolicy",
        "ActivityIDReusePolicy",
        "HeaderCodecBehavior",
        "MetricCommon",
        "MetricCounter",
        "MetricGauge",
        "MetricGaugeFloat",
        "MetricHistogram",
        "MetricHistogramFloat",
        "MetricHistogramTimedelta",
        "MetricMeter",
        "OneTimeVersioningOverride",
        "PinnedVersioningOverride",
        "Priority",
        "QueryRejectCondition",
        "RawValue",
        "RetryPolicy",
        "SearchAttributeIndexedValueType",
        "SearchAttributeKey",
        "SearchAttributePair",
        "SearchAttributeUpdate",
        "TypedSearchAttributes",
        "VersioningBehavior",
        "WorkerDeploymentVersion",
        "WorkflowIDConflictPolicy",
        "WorkflowIDReusePolicy",
    ),
    "converter": (
        "ActivitySerializationContext",
        "AdvancedJSONEncoder",
        "BinaryNullPayloadConverter",
        "BinaryPlainPayloadConverter",
        "BinaryProtoPayloadConverter",
        "CompositePayloadConverter",
        "DataConverter",
        "DefaultFailureConverter",
        "DefaultFailureConverterWithEncodedAttributes",
        "DefaultPayloadConverter",
        "EncodingPayloadConverter",
        "FailureConverter",
        "JSONPlainPayloadConverter",
        "JSONProtoPayloadConverter",
        "JSONTypeConverter",
        "PayloadCodec",
        "PayloadConverter",
        "WithSerializationContext",
        "WorkflowSerializationContext",
        "decode_search_attributes",
        "decode_typed_search_attributes",
        "default",
        "encode_search_attribute_values",
        "encode_search_attributes",
        "encode_typed_search_attribute_value",
        "value_to_type",
    ),
    "exceptions": (
        "ActivityAlreadyStartedError",
        "ActivityError",
        "ApplicationError",
        "ApplicationErrorCategory",
        "CancelledError",
        "ChildWorkflowError",
        "FailureError",
        "InvalidVersioningOverrideError",
        "NexusOperationAlreadyStartedError",
        "NexusOperationError",
        "RetryState",
        "ServerError",
        "TemporalError",
        "TerminatedError",
        "TimeoutError",
        "TimeoutType",
        "WorkflowAlreadyStartedError",
        "is_cancelled_exception",
    ),
    "service": ("RPCError", "RPCStatusCode"),
    "worker": (
        "ActivityInboundInterceptor",
        "ActivityOutboundInterceptor",
        "ContinueAsNewInput",
        "ExecuteActivityInput",
        "ExecuteWorkflowInput",
        "HandleQueryInput",
        "HandleSignalInput",
        "HandleUpdateInput",
        "Interceptor",
        "Replayer",
        "SignalChildWorkflowInput",
        "SignalExternalWorkflowInput",
        "StartActivityInput",
        "StartChildWorkflowInput",
        "StartLocalActivityInput",
        "Worker",
        "WorkflowInboundInterceptor",
        "WorkflowInterceptorClassInput",
        "WorkflowOutboundInterceptor",
        "WorkflowReplayResult",
        "WorkflowReplayResults",
    ),
    "workflow": (
        "ActivityCancellationType",
        "ActivityConfig",
        "ActivityHandle",
        "AnyType",
        "CallableAsyncNoParam",
        "CallableAsyncSingleParam",
        "CallableAsyncType",
        "CallableSyncNoParam",
        "CallableSyncOrAsyncReturnNoneType",
        "CallableSyncOrAsyncType",
        "CallableSyncSingleParam",
        "CallableType",
        "ChildWorkflowCancellationType",
        "ChildWorkflowConfig",
        "ChildWorkflowHandle",
        "ClassType",
        "ContinueAsNewError",
        "ContinueAsNewVersioningBehavior",
        "DynamicWorkflowConfig",
        "EventGroup",
        "ExternalWorkflowHandle",
        "HandlerUnfinishedPolicy",
        "Info",
        "LocalActivityConfig",
        "LoggerAdapter",
        "MethodAsyncNoParam",
        "MethodAsyncSingleParam",
        "MethodSyncNoParam",
        "MethodSyncOrAsyncNoParam",
        "MethodSyncOrAsyncSingleParam",
        "MethodSyncSingleParam",
        "MultiParamSpec",
        "NexusClient",
        "NexusOperationCancellationType",
        "NexusOperationHandle",
        "NondeterminismError",
        "ParamType",
        "ParentClosePolicy",
        "ParentInfo",
        "ProtocolReturnType",
        "ReadOnlyContextError",
        "ReturnType",
        "RootInfo",
        "SandboxImportNotificationPolicy",
        "SelfType",
        "UnfinishedSignalHandlersWarning",
        "UnfinishedUpdateHandlersWarning",
        "UpdateInfo",
        "UpdateMethodMultiParam",
        "VersioningIntent",
        "all_handlers_finished",
        "as_completed",
        "cancellation_reason",
        "continue_as_new",
        "create_event_group",
        "create_nexus_client",
        "current_update_info",
        "defn",
        "deprecate_patch",
        "dynamic_config",
        "execute_activity",
        "execute_activity_class",
        "execute_activity_method",
        "execute_child_workflow",
        "execute_local_activity",
        "execute_local_activity_class",
        "execute_local_activity_method",
        "extern_functions",
        "get_current_details",
        "get_dynamic_query_handler",
        "get_dynamic_signal_handler",
        "get_dynamic_update_handler",
        "get_external_workflow_handle",
        "get_external_workflow_handle_for",
        "get_last_completion_result",
        "get_last_failure",
        "get_query_handler",
        "get_signal_handler",
        "get_update_handler",
        "has_last_completion_result",
        "in_workflow",
        "info",
        "init",
        "instance",
        "is_failure_exception",
        "logger",
        "memo",
        "memo_value",
        "metric_meter",
        "new_random",
        "now",
        "patched",
        "payload_converter",
        "query",
        "random",
        "random_seed",
        "register_random_seed_callback",
        "run",
        "set_current_details",
        "set_dynamic_query_handler",
        "set_dynamic_signal_handler",
        "set_dynamic_update_handler",
        "set_query_handler",
        "set_signal_handler",
        "set_update_handler",
        "signal",
        "sleep",
        "start_activity",
        "start_activity_class",
        "start_activity_method",
        "start_child_workflow",
        "start_local_activity",
        "start_local_activity_class",
        "start_local_activity_method",
        "time",
        "time_ns",
        "unsafe",
        "update",
        "upsert_memo",
        "upsert_search_attributes",
        "uuid4",
        "uuid7",
        "wait",
        "wait_condition",
    ),
}

#: Where a module of the SDK is found here, if not under the same name.
HERE = {"service": "exceptions"}

_FROZEN = "values are frozen: the result is returned instead of filled into an argument"
_NO_GRPC = "there is no gRPC connection to be set up"
_LATER = "not offered yet"
#: Patterns of paths below a name; a path may end with the name of a parameter.
DEVIATIONS: dict[str, str] = {
    "client.Client.api_key": _NO_GRPC,
    "client.Client.rpc_metadata": _NO_GRPC,
    "client.Client.*_service": _NO_GRPC,
    "client.Client.*_activity*": _LATER,
    "client.Client.*_activities": _LATER,
    "client.Client.*_schedule*": _LATER,
    "client.Client.*_nexus_*": "there is no Nexus",
    "client.Client.*_worker_*": "versions of workers are Celery's matter",
    "client.OutboundInterceptor.*_activit*": _LATER,
    "client.OutboundInterceptor.*_schedule*": _LATER,
    "client.OutboundInterceptor.*_nexus_*": "there is no Nexus",
    "client.OutboundInterceptor.*_worker_*": "versions of workers are Celery's matter",
    "client.*StartWorkflowInput.time_skipping_config": _LATER,
    "common.RetryPolicy.apply_to_proto": _FROZEN,
    "converter.*.to_failure.failure": _FROZEN,
    "converter.DataConverter.encode_failure.failure": _FROZEN,
    "converter.encode_search_attributes.api": _FROZEN,
    "worker.Interceptor.intercept_nexus_operation": "there is no Nexus",
    "worker.WorkflowOutboundInterceptor.*nexus_operation": "there is no Nexus",
    "worker.WorkflowOutboundInterceptor.start_signal_with_start_workflow": _LATER,
    "workflow.NexusClient.*": "there is no Nexus",
    "workflow.NexusOperationHandle.*": "there is no Nexus",
    "converter.DataConverter.external_storage": "large payloads have a port of their own",
}

CASES = [(module, name) for module, names in NAMES.items() for name in names]


@pytest.mark.parametrize(("module", "name"), CASES, ids=[".".join(case) for case in CASES])
def test_a_public_name_has_the_surface_of_the_sdk(module: str, name: str) -> None:
    theirs = getattr(importlib.import_module(f"temporalio.{module}"), name)
    ours = getattr(importlib.import_module(f"wfcore.{HERE.get(module, module)}"), name)
    differences = {
        path: difference
        for path, difference in _compare(f"{module}.{name}", theirs, ours)
        if not any(fnmatchcase(path, pattern) for pattern in DEVIATIONS)
    }
    assert differences == {}


def test_every_deviation_is_one() -> None:
    found: list[str] = []
    for module, name in CASES:
        theirs = getattr(importlib.import_module(f"temporalio.{module}"), name)
        ours = getattr(importlib.import_module(f"wfcore.{HERE.get(module, module)}"), name)
        found += [path for path, _ in _compare(f"{module}.{name}", theirs, ours)]
    idle = [pattern for pattern in DEVIATIONS if not fnmatch.filter(found, pattern)]
    assert idle == []


def _compare(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, str]]:
    """Every path below a name at which the two differ, with what differs."""
    if inspect.isclass(theirs):
        yield from _compare_classes(path, theirs, ours)
    elif callable(theirs):
        yield from _compare_calls(path, theirs, ours)
    else:
        yield from _compare_classes(path, type(theirs), type(ours))


def _compare_classes(path: str, theirs: type, ours: type) -> Iterator[tuple[str, str]]:
    if issubclass(theirs, enum.Enum):
        expected = {member.name: member.value for member in theirs}
        found = {member.name: member.value for member in ours}  # type: ignore[attr-defined]
        if expected != found:
            yield path, f"{found} instead of {expected}"
        return
    if "__init__" in vars(theirs) or dataclasses.is_dataclass(theirs):
        yield from _compare_calls(path, theirs.__init__, ours.__init__)
    attributes = _attributes(ours)
    for name in dir(theirs):
        member = inspect.getattr_static(theirs, name)
        if name.startswith("_") or getattr(BaseException, name, None) is getattr(theirs, name):
            continue
        member_path = f"{path}.{name}"
        if isinstance(member, staticmethod | classmethod) or inspect.isroutine(member):
            if not hasattr(ours, name):
                yield member_path, "missing"
            else:
                yield from _compare_calls(member_path, getattr(theirs, name), getattr(ours, name))
        elif name not in attributes:
            yield member_path, "missing"
    if dataclasses.is_dataclass(theirs):
        for field in dataclasses.fields(theirs):
            if not field.name.startswith("_") and field.name not in attributes:
                yield f"{path}.{field.name}", "missing"


def _attributes(kind: type) -> set[str]:
    """What instances have: class attributes, fields, and what an initialiser is given to keep."""
    found = set(dir(kind)) | set(getattr(kind, "__annotations__", ()))
    for base in kind.__mro__:
        if "__init__" in vars(base) and base is not object:
            try:
                found |= set(inspect.signature(base.__init__).parameters)
            except ValueError:  # of a class that is written in C
                continue
    return found


def _compare_calls(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, str]]:
    """Each parameter that is missing, stands elsewhere, or has another kind or default."""
    try:
        expected = _parameters(theirs)
    except ValueError:  # of a class that is written in C
        return
    found = _parameters(ours)
    if inspect.iscoroutinefunction(theirs) != inspect.iscoroutinefunction(ours):
        yield path, "one waits, the other doesn't"
    takes_any = any(kind == "VAR_KEYWORD" for kind, _ in found.values())
    for name, parameter in expected.items():
        got = found.get(name)
        if got is None and takes_any and parameter[0] == "KEYWORD_ONLY":
            continue
        if got != parameter and not _is_optional_form(got, parameter):
            yield f"{path}.{name}", f"{got} instead of {parameter}"
    in_order = [name for name in expected if name in found and _is_positional(expected[name])]
    if [name for name in found if name in in_order] != in_order:
        yield path, f"parameters in another order: {list(found)}"
    for name in found.keys() - expected.keys():
        # A parameter of our own may be added where no call of theirs can meet it.
        kind, default = found[name]
        if default == "required" and not kind.startswith("VAR_"):
            yield path, f"has a further required parameter {name}"


def _is_positional(parameter: tuple[str, Any]) -> bool:
    return parameter[0].startswith("POSITIONAL")


def _is_optional_form(ours: Any, theirs: tuple[str, Any]) -> bool:
    return ours is not None and ours[0] == theirs[0] and theirs[1] == "required"


def _parameters(call: Any) -> dict[str, tuple[str, Any]]:
    return {
        parameter.name: (parameter.kind.name, _default(parameter.default))
        for parameter in inspect.signature(call).parameters.values()
        if not parameter.name.startswith("_") and parameter.name != "self"
    }


def _default(value: Any) -> Any:
    """A default in a form that compares; an object only counts as having one."""
    if value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, enum.Enum):
        return int(value.value)
    if value is None or isinstance(value, bool | int | float | str | timedelta):
        return value
    if isinstance(value, Collection) and not value:
        return ()
    return "an object"
