"""@workflow.defn: what a workflow class is made of, checked when it is defined."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from wfcore.common import RawValue, VersioningBehavior, type_hints_from_func
from wfcore.workflow._handler_definitions import (
    HandlerDefinition,
    QueryDefinition,
    SignalDefinition,
    UpdateDefinition,
)
from wfcore.workflow._types import (
    CallableAsyncType,
    CallableType,
    ClassType,
    MethodSyncNoParam,
    SelfType,
)

_DEFINITION = "__wfcore_workflow_definition"
_RUN = "__wfcore_workflow_run"
_INIT = "__wfcore_workflow_init"
_DYNAMIC_CONFIG = "__wfcore_workflow_dynamic_config"
_HANDLERS: tuple[type[HandlerDefinition], ...] = (
    SignalDefinition,
    QueryDefinition,
    UpdateDefinition,
)
_H = TypeVar("_H", bound=HandlerDefinition)


@dataclass(frozen=True)
class DynamicWorkflowConfig:
    """What a method marked with `dynamic_config` returns; None and UNSPECIFIED change nothing."""

    failure_exception_types: Sequence[type[BaseException]] | None = None
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED


@dataclass(frozen=True, kw_only=True)
class WorkflowDefinition:
    """A workflow class as `defn` read it; `name` is None for the dynamic workflow."""

    name: str | None
    cls: type
    run_fn: Callable[..., Awaitable[Any]]
    signals: Mapping[str | None, SignalDefinition]
    queries: Mapping[str | None, QueryDefinition]
    updates: Mapping[str | None, UpdateDefinition]
    sandboxed: bool
    failure_exception_types: Sequence[type[BaseException]]
    versioning_behavior: VersioningBehavior
    has_init: bool
    dynamic_config_fn: Callable[..., DynamicWorkflowConfig] | None
    arg_types: Sequence[Any] | None
    ret_type: Any

    @staticmethod
    def from_class(workflow: type) -> WorkflowDefinition | None:
        """The definition of this very class, if it is decorated."""
        found = cast(WorkflowDefinition | None, getattr(workflow, _DEFINITION, None))
        return found if found is not None and found.cls is workflow else None

    @staticmethod
    def must_from_class(workflow: type) -> WorkflowDefinition:
        """The definition of this class.

        Raises:
            ValueError: the class is not decorated.
        """
        found = WorkflowDefinition.from_class(workflow)
        if found is None:
            name = getattr(workflow, "__name__", "<unknown>")
            raise ValueError(
                f"Workflow {name} missing attributes, was it decorated with @workflow.defn?"
            )
        return found

    @staticmethod
    def from_run_fn(fn: Callable[..., Any]) -> WorkflowDefinition | None:
        """The definition of the class that a run method belongs to, if it is one."""
        return getattr(fn, _DEFINITION, None)

    @staticmethod
    def must_from_run_fn(fn: Callable[..., Any]) -> WorkflowDefinition:
        """The definition of the class that a run method belongs to.

        Raises:
            ValueError: it is no run method of a decorated class.
        """
        found = WorkflowDefinition.from_run_fn(fn)
        if found is None:
            name = getattr(fn, "__qualname__", "<unknown>")
            raise ValueError(
                f"Function {name} missing attributes, was it decorated with @workflow.run and "
                "was its class decorated with @workflow.defn?"
            )
        return found

    @staticmethod
    def name_and_result_type(workflow: str | Callable[..., Any]) -> tuple[str, Any]:
        """The type name of a workflow, and the type that its result is decoded to.

        Raises:
            ValueError: the function is no run method, or the dynamic workflow's.
            TypeError: neither a name nor a function was given.
        """
        if isinstance(workflow, str):
            return workflow, None
        if not callable(workflow):
            raise TypeError("Workflow must be a string or callable")
        definition = WorkflowDefinition.must_from_run_fn(workflow)
        if definition.name is None:
            raise ValueError("Cannot invoke dynamic workflow explicitly")
        return definition.name, definition.ret_type


@overload
def defn(cls: ClassType) -> ClassType: ...


@overload
def defn(
    *,
    name: str | None = None,
    sandboxed: bool = True,
    dynamic: bool = False,
    failure_exception_types: Sequence[type[BaseException]] = (),
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED,
) -> Callable[[ClassType], ClassType]: ...


def defn(
    cls: type | None = None,
    *,
    name: str | None = None,
    sandboxed: bool = True,
    dynamic: bool = False,
    failure_exception_types: Sequence[type[BaseException]] = (),
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED,
) -> Any:
    """Mark a class as a workflow.

    Args:
        cls: the class; one of its methods is marked with `run`.
        name: the workflow's type name; by default the class's.
        sandboxed: refuse calls in its code that break replay, if the worker does so at all.
        dynamic: take all types that no other workflow has; `run` then takes a
            ``Sequence[RawValue]``.
        failure_exception_types: exceptions that fail the workflow instead of the workflow task.
        versioning_behavior: recorded with the workflow's tasks.

    Raises:
        ValueError: the class is not well formed; the text lists all that is wrong.
        TypeError: a dynamic workflow's `run` takes something else.

    Example:
        ``@workflow.defn(name="order")`` above the class.
    """

    def mark(cls: type) -> type:
        definition = _read_class(
            cls,
            name=None if dynamic else name or cls.__name__,
            sandboxed=sandboxed,
            failure_exception_types=tuple(failure_exception_types),
            versioning_behavior=versioning_behavior,
        )
        setattr(cls, _DEFINITION, definition)
        setattr(definition.run_fn, _DEFINITION, definition)
        return cls

    return mark if cls is None else mark(cls)


def init(init_fn: CallableType) -> CallableType:
    """Mark ``__init__`` to get the workflow's arguments, before any signal or update is handled.

    Raises:
        ValueError: it is another method.
    """
    if init_fn.__name__ != "__init__":
        raise ValueError("@workflow.init may only be used on the __init__ method")
    setattr(init_fn, _INIT, True)
    return init_fn


def run(fn: CallableAsyncType) -> CallableAsyncType:
    """Mark the one coroutine method that is the workflow.

    Raises:
        ValueError: it is no coroutine method.
    """
    if not inspect.iscoroutinefunction(fn):
        raise ValueError("Workflow run method must be an async function")
    setattr(fn, _RUN, True)
    return fn  # type: ignore[return-value]  # narrowed by the check above


def dynamic_config(
    fn: MethodSyncNoParam[SelfType, DynamicWorkflowConfig],
) -> MethodSyncNoParam[SelfType, DynamicWorkflowConfig]:
    """Mark the method that chooses options of a dynamic workflow, before `run` begins.

    Raises:
        ValueError: it is a coroutine method or takes parameters.
    """
    if inspect.iscoroutinefunction(fn):
        raise ValueError("Workflow dynamic_config method must be synchronous")
    if len(inspect.signature(fn).parameters) != 1:
        raise ValueError("Workflow dynamic_config method must only take self parameter")
    setattr(fn, _DYNAMIC_CONFIG, True)
    return fn


# --- reading the class --------------------------------------------------------------------------


def _read_class(
    cls: type,
    *,
    name: str | None,
    sandboxed: bool,
    failure_exception_types: Sequence[type[BaseException]],
    versioning_behavior: VersioningBehavior,
) -> WorkflowDefinition:
    if WorkflowDefinition.from_class(cls):
        raise ValueError("Class already contains workflow definition")
    issues: list[str] = []
    members = inspect.getmembers(cls)
    run_fn = _find_run(cls, members, issues)
    init_fn = cls.__init__ if hasattr(cls.__init__, _INIT) else None  # type: ignore[misc]
    signals = _find_handlers(SignalDefinition, members, issues)
    queries = _find_handlers(QueryDefinition, members, issues)
    updates = _find_handlers(UpdateDefinition, members, issues)
    config_fn = _find_dynamic_config(cls, name, members, issues)
    _check_bases(cls, run_fn, issues)
    if init_fn and run_fn and not _takes_the_same(init_fn, run_fn):
        issues.append("@workflow.init and @workflow.run method parameters do not match")
    if len(issues) == 1:
        raise ValueError(f"Invalid workflow class: {issues[0]}")
    if issues or run_fn is None:
        raise ValueError(f"Invalid workflow class for {len(issues)} reasons: {', '.join(issues)}")
    arg_types, ret_type = type_hints_from_func(run_fn)
    if name is None and not _is_raw_values_only(arg_types):
        raise TypeError("Dynamic workflow must accept a single Sequence[wfcore.common.RawValue]")
    return WorkflowDefinition(
        name=name,
        cls=cls,
        run_fn=run_fn,
        signals=signals,
        queries=queries,
        updates=updates,
        sandboxed=sandboxed,
        failure_exception_types=failure_exception_types,
        versioning_behavior=versioning_behavior,
        has_init=init_fn is not None,
        dynamic_config_fn=config_fn,
        arg_types=arg_types,
        ret_type=ret_type,
    )


def _find_run(
    cls: type, members: Sequence[tuple[str, Any]], issues: list[str]
) -> Callable[..., Awaitable[Any]] | None:
    found: Callable[..., Awaitable[Any]] | None = None
    marked = [(name, member) for name, member in members if hasattr(member, _RUN)]
    for name, member in marked:
        if not _is_own_method(member, cls):
            issues.append(f"@workflow.run method {name} must be defined on {cls.__qualname__}")
        elif found is not None:
            issues.append(
                f"Multiple @workflow.run methods found (at least on {name} and {found.__name__})"
            )
        else:
            found = member
    if not marked:
        issues.append("Missing @workflow.run method")
    return found


def _find_handlers(
    kind: type[_H], members: Sequence[tuple[str, Any]], issues: list[str]
) -> Mapping[str | None, _H]:
    found: dict[str | None, _H] = {}
    for name, member in members:
        definition = getattr(member, kind.attribute, None)
        if definition is None:
            continue
        if definition.name in found:
            issues.append(
                f"Multiple {kind.kind} methods found for {definition.name or '<dynamic>'} "
                f"(at least on {name} and {found[definition.name].fn.__name__})"
            )
            continue
        validator = getattr(definition, "validator", None)
        if validator is not None and not _takes_the_same(definition.fn, validator):
            issues.append(
                f"Update validator method {validator.__name__} parameters "
                f"do not match update method {definition.fn.__name__} parameters"
            )
            continue
        found[definition.name] = definition
    return found


def _find_dynamic_config(
    cls: type, name: str | None, members: Sequence[tuple[str, Any]], issues: list[str]
) -> Callable[..., DynamicWorkflowConfig] | None:
    found = [member for _, member in members if hasattr(member, _DYNAMIC_CONFIG)]
    if found and name is not None:
        issues.append(
            "@workflow.dynamic_config can only be used in dynamic workflows, but "
            f"workflow class {name} ({cls.__name__}) is not dynamic"
        )
    if len(found) > 1:
        issues.append("@workflow.dynamic_config can only be defined once per workflow")
    return found[0] if found else None


def _check_bases(cls: type, run_fn: Callable[..., Any] | None, issues: list[str]) -> None:
    """A method that overrides a marked one must be marked itself, or it would be lost silently."""
    for base in inspect.getmro(cls)[1:]:
        for name, member in vars(base).items():
            if not inspect.isfunction(member):
                continue
            if hasattr(member, _RUN) and (run_fn is None or name != run_fn.__name__):
                issues.append(
                    f"@workflow.run defined on {member.__qualname__} but not on the override"
                )
            override = getattr(cls, name, None)
            issues.extend(
                f"@workflow.{kind.kind} defined on {member.__qualname__} but not on the override"
                for kind in _HANDLERS
                if hasattr(member, kind.attribute) and not hasattr(override, kind.attribute)
            )


def _takes_the_same(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """Whether the parameters are the same but for their names."""

    def shape(fn: Callable[..., Any]) -> list[inspect.Parameter]:
        return [p.replace(name="x") for p in inspect.signature(fn).parameters.values()]

    return shape(first) == shape(second)


def _is_own_method(fn: Any, cls: type) -> bool:
    return inspect.isfunction(fn) and vars(cls).get(fn.__name__) is fn


def _is_raw_values_only(arg_types: Sequence[Any] | None) -> bool:
    return (
        arg_types is not None
        and len(arg_types) == 1
        and arg_types[0] in (Sequence[RawValue], typing.Sequence[RawValue])
    )
