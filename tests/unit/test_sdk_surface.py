"""Public names have the parameters, defaults, members and fields of Temporal's Python SDK.

A module is added by a line in `NAMES`; what differs on purpose is in `DEVIATIONS`, with the reason.
"""

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Collection, Iterator
from datetime import timedelta
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
}

#: Where a module of the SDK is found here, if not under the same name.
HERE = {"service": "exceptions"}

_FROZEN = "values are frozen: the result is returned instead of filled into an argument"
DEVIATIONS: dict[str, str] = {
    "common.RetryPolicy.apply_to_proto": _FROZEN,
    "converter.DefaultFailureConverter.to_failure": _FROZEN,
    "converter.DefaultFailureConverterWithEncodedAttributes.to_failure": _FROZEN,
    "converter.FailureConverter.to_failure": _FROZEN,
    "converter.DataConverter.encode_failure": _FROZEN,
    "converter.encode_search_attributes": _FROZEN,
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
        if path not in DEVIATIONS
    }
    assert differences == {}


def test_every_deviation_is_one() -> None:
    found = set()
    for module, name in CASES:
        theirs = getattr(importlib.import_module(f"temporalio.{module}"), name)
        ours = getattr(importlib.import_module(f"wfcore.{HERE.get(module, module)}"), name)
        found |= {path for path, _ in _compare(f"{module}.{name}", theirs, ours)}
    assert set(DEVIATIONS) <= found


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
        yield from _compare_calls(path, theirs.__init__, ours.__init__, skip_fields=True)
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


def _compare_calls(
    path: str, theirs: Any, ours: Any, *, skip_fields: bool = False
) -> Iterator[tuple[str, str]]:
    try:
        expected = _parameters(theirs)
    except ValueError:
        return
    found = _parameters(ours)
    if inspect.iscoroutinefunction(theirs) != inspect.iscoroutinefunction(ours):
        yield path, "one waits, the other doesn't"
    left_out = {name for name in expected if f"{path}.{name}" in DEVIATIONS} if skip_fields else ()
    wanted = {name: value for name, value in expected.items() if name not in left_out}
    got = {
        # What they demand may be optional here.
        name: value if _is_optional_form(found.get(name), value) else found.get(name)
        for name, value in wanted.items()
    }
    if got != wanted or [n for n in found if n in wanted] != list(wanted):
        yield path, f"{_shown(got)} instead of {_shown(wanted)}"
    for name in left_out:
        yield f"{path}.{name}", "left out"
    for name in found.keys() - expected.keys():
        # A parameter of our own may be added where no call of theirs can meet it.
        if found[name][1] == "required":
            yield path, f"has a further required parameter {name}"


def _is_optional_form(ours: Any, theirs: tuple[str, Any]) -> bool:
    return ours is not None and ours[0] == theirs[0] and theirs[1] == "required"


def _parameters(call: Any) -> dict[str, tuple[str, Any]]:
    return {
        parameter.name: (parameter.kind.name, _default(parameter.default))
        for parameter in inspect.signature(call).parameters.values()
        if not parameter.name.startswith("_")
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


def _shown(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in parameters.items())
