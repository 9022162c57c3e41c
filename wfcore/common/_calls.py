"""How calls are described: arguments given singly or as a list, and a function's type hints."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints


class _Unset:
    """The type of `UNSET`, which differs from every value that a user can pass."""

    def __repr__(self) -> str:
        return "<unset>"


UNSET: Final[Any] = _Unset()

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class RawValue:
    """A payload that is not decoded, for dynamic handlers.

    `payload` is a `wfcore.protocol.payloads.Payload`.
    """

    payload: Any


def arg_or_args(arg: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a call that takes either one ``arg`` or a list of ``args``.

    Raises:
        ValueError: both are given.
    """
    if arg is UNSET:
        return args
    if args:
        raise ValueError("Cannot have arg and args")
    return [arg]


def type_hints_from_func(
    func: Callable[..., Any],
) -> tuple[list[type | None] | None, type | None]:
    """A callable's argument types and its return type.

    An argument without a hint is None. The list as a whole is None if the callable takes anything
    but positional arguments, so that there is nothing to match values against. A `self` without a
    hint is left out; of a callable object the hints of ``__call__`` count.

    Raises:
        NameError: a hint names something that can't be resolved.
    """
    if not inspect.isroutine(func):
        if isinstance(func, type) or "__call__" not in dir(func):
            return None, None
        func = type(func).__call__
        if not inspect.isfunction(func):
            return None, None  # functools.partial and the like
    hints = get_type_hints(func)
    returned = hints.get("return")
    types: list[type | None] = []
    for index, parameter in enumerate(inspect.signature(func).parameters.values()):
        if (
            index == 0
            and parameter.name == "self"
            and parameter.annotation is inspect.Parameter.empty
        ):
            continue
        if parameter.kind not in _POSITIONAL:
            return None, returned
        types.append(hints.get(parameter.name))
    return types, returned
