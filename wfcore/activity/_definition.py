"""What `@activity.defn` leaves on a callable: its name and how to call it."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin, overload

from wfcore.common import RawValue, type_hints_from_func

CallableType = TypeVar("CallableType", bound=Callable[..., Any])

_ATTRIBUTE = "__wfcore_activity_definition__"


@dataclass(frozen=True)
class Definition:
    """An activity as a worker knows it.

    Attributes:
        name: None for the dynamic activity, which takes all names that nothing else has.
        arg_types: None if the arguments are not positional only, so that no hints apply.
    """

    name: str | None
    fn: Callable[..., Any]
    is_async: bool
    no_thread_cancel_exception: bool = False
    arg_types: list[Any] | None = None
    ret_type: Any = None

    @property
    def dynamic(self) -> bool:
        """Whether it takes all names that nothing else has."""
        return self.name is None

    @staticmethod
    def from_callable(fn: Callable[..., Any]) -> Definition | None:
        """The definition of a decorated function, method, class or object; None without one."""
        definition = getattr(fn, _ATTRIBUTE, None)
        if not isinstance(definition, Definition):
            return None
        if definition.fn is fn:
            return definition
        # A method of an object, or a callable object, carries the definition of its class.
        return dataclasses.replace(definition, fn=fn)

    @staticmethod
    def must_from_callable(fn: Callable[..., Any]) -> Definition:
        """The definition.

        Raises:
            TypeError: the callable isn't decorated.
        """
        definition = Definition.from_callable(fn)
        if definition is None:
            name = getattr(fn, "__name__", "<unknown>")
            raise TypeError(
                f"Activity {name} missing attributes, was it decorated with @activity.defn?"
            )
        return definition

    @staticmethod
    def get_name_and_result_type(
        name_or_fn: str | Callable[..., Any],
    ) -> tuple[str, Any]:
        """How a call names an activity, and the type of the result if that is known.

        Raises:
            TypeError: it is neither a name nor a decorated callable.
            ValueError: it is the dynamic activity, which has no name.
        """
        if isinstance(name_or_fn, str):
            return name_or_fn, None
        if not callable(name_or_fn):
            raise TypeError("Activity must be a string or callable")
        definition = Definition.must_from_callable(name_or_fn)
        if definition.name is None:
            raise ValueError("Cannot invoke dynamic activity explicitly; call it by a name")
        return definition.name, definition.ret_type


@overload
def defn(fn: CallableType) -> CallableType: ...


@overload
def defn(
    *, name: str | None = None, no_thread_cancel_exception: bool = False
) -> Callable[[CallableType], CallableType]: ...


@overload
def defn(
    *, no_thread_cancel_exception: bool = False, dynamic: bool = False
) -> Callable[[CallableType], CallableType]: ...


def defn(
    fn: CallableType | None = None,
    *,
    name: str | None = None,
    no_thread_cancel_exception: bool = False,
    dynamic: bool = False,
) -> CallableType | Callable[[CallableType], CallableType]:
    """Decorate a function, a method or a class with ``__call__`` as an activity.

    Args:
        fn: the callable; other arguments can't be given with it.
        name: the activity's name, by default that of the callable.
        no_thread_cancel_exception: don't raise cancellation into the thread of a sync activity.
        dynamic: take all names that no other activity has; it must have the one parameter
            ``Sequence[RawValue]``.

    Raises:
        TypeError: there are keyword-only parameters, or a dynamic activity's parameter is wrong.
        ValueError: the callable is decorated already, or has both a name and `dynamic`.

    Example:
        ``@activity.defn`` over ``async def charge(order: Order) -> Receipt``
    """

    def decorate(fn: CallableType) -> CallableType:
        if name is not None and dynamic:
            raise ValueError("Cannot provide name and dynamic")
        shown_name = None if dynamic else name or fn.__name__
        _define(fn, shown_name, no_thread_cancel_exception)
        return fn

    return decorate if fn is None else decorate(fn)


def _define(fn: Callable[..., Any], name: str | None, no_thread_cancel_exception: bool) -> None:
    if _ATTRIBUTE in getattr(fn, "__dict__", {}):
        raise ValueError("Function already contains activity definition")
    called: Any = fn
    if not inspect.isroutine(fn):
        owner = fn if isinstance(fn, type) else type(fn)
        if not any("__call__" in vars(base) for base in owner.__mro__):
            raise TypeError(f"Class {owner.__name__} must have a method __call__ to be an activity")
        called = owner.__call__
    for parameter in inspect.signature(called).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            raise TypeError("Activity cannot have keyword-only arguments")
    arg_types, ret_type = type_hints_from_func(called)
    if name is None and not _takes_raw_values(arg_types):
        raise TypeError("Dynamic activity must accept a single Sequence[wfcore.common.RawValue]")
    definition = Definition(
        name=name,
        fn=fn,
        is_async=inspect.iscoroutinefunction(called),
        no_thread_cancel_exception=no_thread_cancel_exception,
        arg_types=arg_types,
        ret_type=ret_type,
    )
    setattr(fn, _ATTRIBUTE, definition)


def _takes_raw_values(arg_types: list[Any] | None) -> bool:
    return (
        arg_types is not None
        and len(arg_types) == 1
        and get_origin(arg_types[0]) is collections.abc.Sequence
        and get_args(arg_types[0]) == (RawValue,)
    )
