"""@workflow.signal, query and update: marks on methods, read once when the class is defined."""

from __future__ import annotations

import inspect
import typing
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, Self, cast, overload, runtime_checkable

from wfcore.common import RawValue, type_hints_from_func
from wfcore.workflow._options import HandlerUnfinishedPolicy
from wfcore.workflow._types import (
    CallableSyncOrAsyncReturnNoneType,
    CallableType,
    MultiParamSpec,
    ProtocolReturnType,
    ReturnType,
)

_WARN = HandlerUnfinishedPolicy.WARN_AND_ABANDON
_RAW_VALUES = (Sequence[RawValue], typing.Sequence[RawValue])


@dataclass(kw_only=True)
class HandlerDefinition:
    """A handler as its decorator, or a call at run time, described it.

    `name` is None for a dynamic handler, which takes what no other does. `takes_varargs` tells
    the old form of one, ``(self, name, *args)``.
    """

    #: What the handler is for, in messages.
    kind: ClassVar[str]
    #: Where a method keeps its definition.
    attribute: ClassVar[str]

    name: str | None
    fn: Callable[..., Any]
    is_method: bool
    unfinished_policy: HandlerUnfinishedPolicy = _WARN
    description: str | None = None
    arg_types: Sequence[Any] | None = field(init=False)
    ret_type: Any = field(init=False)
    takes_varargs: bool = field(init=False, default=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_async = inspect.iscoroutinefunction(self.fn)
        self.arg_types, self.ret_type = type_hints_from_func(self.fn)
        if self.name is None:
            self.takes_varargs = self._is_old_dynamic()

    @classmethod
    def from_fn(cls, fn: Callable[..., Any]) -> Self | None:
        """The definition that a decorated method carries, if any."""
        return getattr(fn, cls.attribute, None)

    @classmethod
    def name_of(cls, handler: str | Callable[..., Any]) -> str:
        """The name of a handler that is given as such or as the decorated method.

        Raises:
            RuntimeError: the method is not decorated, or is the dynamic handler.
        """
        if not callable(handler):
            return str(handler)
        definition = cls.from_fn(handler)
        if definition is None:
            raise RuntimeError(
                f"{cls.kind.capitalize()} definition not found on {handler.__qualname__}, "
                f"is it decorated with @workflow.{cls.kind}?"
            )
        if definition.name is None:
            raise RuntimeError(f"Cannot invoke dynamic {cls.kind} definition")
        return definition.name

    def bind(self, workflow: object) -> Callable[..., Any]:
        """The handler as a function of its arguments alone."""
        return partial(self.fn, workflow) if self.is_method else self.fn

    def _is_old_dynamic(self) -> bool:
        parameters = list(inspect.signature(self.fn).parameters.values())
        if (
            len(parameters) == (3 if self.is_method else 2)
            and parameters[-2].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
        ):
            return True
        types = self.arg_types
        if not types or len(types) != 2 or types[0] is not str or types[1] not in _RAW_VALUES:
            raise RuntimeError(
                "Dynamic handler must have 3 arguments: self, str, and Sequence[RawValue]"
            )
        return False


@dataclass(kw_only=True)
class SignalDefinition(HandlerDefinition):
    """A signal's handler."""

    kind: ClassVar[str] = "signal"
    attribute: ClassVar[str] = "__wfcore_signal_definition"


@dataclass(kw_only=True)
class QueryDefinition(HandlerDefinition):
    """A query's handler."""

    kind: ClassVar[str] = "query"
    attribute: ClassVar[str] = "__wfcore_query_definition"


@dataclass(kw_only=True)
class UpdateDefinition(HandlerDefinition):
    """An update's handler and its validator."""

    kind: ClassVar[str] = "update"
    attribute: ClassVar[str] = "__wfcore_update_definition"

    validator: Callable[..., None] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.takes_varargs:
            raise RuntimeError(
                "Dynamic updates do not support a vararg third param, use Sequence[RawValue]"
            )

    def set_validator(self, validator: Callable[..., None]) -> None:
        """Give the handler its validator.

        Raises:
            ValueError: it is a coroutine function, which would never run.
            RuntimeError: the handler has one.
        """
        if inspect.iscoroutinefunction(validator):
            raise ValueError("Update validator must not be an async function")
        if self.validator is not None:
            raise RuntimeError(f"Validator already set for update {self.name}")
        self.validator = validator

    def bind_validator(self, workflow: object) -> Callable[..., None] | None:
        """The validator as a function of its arguments alone."""
        if self.validator is None or not self.is_method:
            return self.validator
        return partial(self.validator, workflow)

    @classmethod
    def name_and_result_type(cls, update: str | Callable[..., Any]) -> tuple[str, Any]:
        """The name of an update and the type that its result is decoded to."""
        definition = cls.from_fn(update) if callable(update) else None
        return cls.name_of(update), definition.ret_type if definition else None


def _chosen_name(fn: Callable[..., Any], name: str | None, dynamic: bool | None) -> str | None:
    return None if dynamic else name or fn.__name__


def _refuse_both(name: str | None, dynamic: bool | None) -> None:
    if name is not None and dynamic:
        raise RuntimeError("Cannot provide name and dynamic boolean")


def _warn_of_varargs(definition: HandlerDefinition, plural: str) -> None:
    if definition.takes_varargs:
        warnings.warn(
            f"Dynamic {plural} with vararg third param is deprecated, use Sequence[RawValue]",
            DeprecationWarning,
            stacklevel=3,
        )


@overload
def signal(fn: CallableSyncOrAsyncReturnNoneType) -> CallableSyncOrAsyncReturnNoneType: ...


@overload
def signal(
    *,
    name: str | None = None,
    dynamic: bool | None = False,
    unfinished_policy: HandlerUnfinishedPolicy = _WARN,
    description: str | None = None,
) -> Callable[[CallableSyncOrAsyncReturnNoneType], CallableSyncOrAsyncReturnNoneType]: ...


def signal(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    dynamic: bool | None = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Any:
    """Mark a method, sync or async, as the handler of a signal.

    Args:
        fn: the method.
        name: the signal's name; by default the method's.
        dynamic: take all signals that have no handler; the parameters are then the name and a
            ``Sequence[RawValue]``.
        unfinished_policy: what happens if the workflow ends while the handler runs.
        description: one line for people.

    Raises:
        RuntimeError: `name` and `dynamic` are both given, or the parameters of a dynamic handler
            are others.
    """

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        definition = SignalDefinition(
            name=_chosen_name(fn, name, dynamic),
            fn=fn,
            is_method=True,
            unfinished_policy=unfinished_policy,
            description=description,
        )
        _warn_of_varargs(definition, "signals")
        setattr(fn, SignalDefinition.attribute, definition)
        return fn

    _refuse_both(name, dynamic)
    return mark if fn is None else mark(fn)


@overload
def query(fn: CallableType) -> CallableType: ...


@overload
def query(
    *, name: str, description: str | None = None
) -> Callable[[CallableType], CallableType]: ...


@overload
def query(
    *, dynamic: Literal[True], description: str | None = None
) -> Callable[[CallableType], CallableType]: ...


@overload
def query(*, description: str) -> Callable[[CallableType], CallableType]: ...


def query(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    dynamic: bool | None = False,
    description: str | None = None,
) -> Any:
    """Mark a method as the handler of a query; it must only read.

    Args:
        fn: the method.
        name: the query's name; by default the method's.
        dynamic: take all queries that have no handler; the parameters are then the name and a
            ``Sequence[RawValue]``.
        description: one line for people.

    Raises:
        RuntimeError: `name` and `dynamic` are both given, or the parameters of a dynamic handler
            are others.
    """

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(fn):
            warnings.warn(
                "Queries as async def functions are deprecated", DeprecationWarning, stacklevel=2
            )
        definition = QueryDefinition(
            name=_chosen_name(fn, name, dynamic), fn=fn, is_method=True, description=description
        )
        _warn_of_varargs(definition, "queries")
        setattr(fn, QueryDefinition.attribute, definition)
        return fn

    _refuse_both(name, dynamic)
    return mark if fn is None else mark(fn)


@runtime_checkable
class UpdateMethodMultiParam(Protocol[MultiParamSpec, ProtocolReturnType]):
    """A method that `update` has marked; ``@method.validator`` marks its validator."""

    def __call__(
        self, *args: MultiParamSpec.args, **kwargs: MultiParamSpec.kwargs
    ) -> ProtocolReturnType | Awaitable[ProtocolReturnType]: ...

    def validator(self, vfunc: Callable[MultiParamSpec, None]) -> Callable[MultiParamSpec, None]:
        """Mark a method as the validator; it has the handler's parameters and must not wait."""


@overload
def update(
    fn: Callable[MultiParamSpec, Awaitable[ReturnType]],
) -> UpdateMethodMultiParam[MultiParamSpec, ReturnType]: ...


@overload
def update(
    fn: Callable[MultiParamSpec, ReturnType],
) -> UpdateMethodMultiParam[MultiParamSpec, ReturnType]: ...


@overload
def update(
    *,
    name: str | None = None,
    dynamic: bool | None = False,
    unfinished_policy: HandlerUnfinishedPolicy = _WARN,
    description: str | None = None,
) -> Callable[
    [Callable[MultiParamSpec, ReturnType]], UpdateMethodMultiParam[MultiParamSpec, ReturnType]
]: ...


def update(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    dynamic: bool | None = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Any:
    """Mark a method, sync or async, as the handler of an update, whose caller gets its result.

    Args:
        fn: the method.
        name: the update's name; by default the method's.
        dynamic: take all updates that have no handler; the parameters are then the name and a
            ``Sequence[RawValue]``.
        unfinished_policy: what happens if the workflow ends while the handler runs.
        description: one line for people.

    Raises:
        RuntimeError: `name` and `dynamic` are both given, or the parameters of a dynamic handler
            are others.
    """

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        definition = UpdateDefinition(
            name=_chosen_name(fn, name, dynamic),
            fn=fn,
            is_method=True,
            unfinished_policy=unfinished_policy,
            description=description,
        )

        def validator(vfunc: Callable[..., None]) -> Callable[..., None]:
            definition.set_validator(vfunc)
            return vfunc

        setattr(fn, UpdateDefinition.attribute, definition)
        cast(Any, fn).validator = validator
        return fn

    _refuse_both(name, dynamic)
    return mark if fn is None else mark(fn)
