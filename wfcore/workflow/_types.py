"""Type variables and protocols of the signatures that take functions and methods."""

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar

AnyType = TypeVar("AnyType")
ClassType = TypeVar("ClassType", bound=type)
SelfType = TypeVar("SelfType")
ParamType = TypeVar("ParamType")
ReturnType = TypeVar("ReturnType", covariant=True)  # noqa: PLC0105 - Temporal's name
CallableType = TypeVar("CallableType", bound=Callable[..., Any])
CallableAsyncType = TypeVar("CallableAsyncType", bound=Callable[..., Awaitable[Any]])
CallableSyncOrAsyncType = TypeVar(
    "CallableSyncOrAsyncType", bound=Callable[..., Any | Awaitable[Any]]
)
CallableSyncOrAsyncReturnNoneType = TypeVar(
    "CallableSyncOrAsyncReturnNoneType", bound=Callable[..., Awaitable[None] | None]
)
MultiParamSpec = ParamSpec("MultiParamSpec")

_Param_contra = TypeVar("_Param_contra", contravariant=True)
_Self_contra = TypeVar("_Self_contra", contravariant=True)
ProtocolReturnType = TypeVar("ProtocolReturnType", covariant=True)  # noqa: PLC0105


class CallableAsyncNoParam(Protocol[ProtocolReturnType]):
    """A coroutine function without parameters."""

    def __call__(self) -> Awaitable[ProtocolReturnType]: ...


class CallableSyncNoParam(Protocol[ProtocolReturnType]):
    """A function without parameters."""

    def __call__(self) -> ProtocolReturnType: ...


class CallableAsyncSingleParam(Protocol[_Param_contra, ProtocolReturnType]):
    """A coroutine function of one parameter."""

    def __call__(self, arg: _Param_contra, /) -> Awaitable[ProtocolReturnType]: ...


class CallableSyncSingleParam(Protocol[_Param_contra, ProtocolReturnType]):
    """A function of one parameter."""

    def __call__(self, arg: _Param_contra, /) -> ProtocolReturnType: ...


class MethodAsyncNoParam(Protocol[_Self_contra, ProtocolReturnType]):
    """A coroutine method, unbound, without further parameters."""

    def __call__(self, this: _Self_contra, /) -> Awaitable[ProtocolReturnType]: ...


class MethodSyncNoParam(Protocol[_Self_contra, ProtocolReturnType]):
    """A method, unbound, without further parameters."""

    def __call__(self, this: _Self_contra, /) -> ProtocolReturnType: ...


class MethodAsyncSingleParam(Protocol[_Self_contra, _Param_contra, ProtocolReturnType]):
    """A coroutine method, unbound, of one further parameter."""

    def __call__(
        self, this: _Self_contra, arg: _Param_contra, /
    ) -> Awaitable[ProtocolReturnType]: ...


class MethodSyncSingleParam(Protocol[_Self_contra, _Param_contra, ProtocolReturnType]):
    """A method, unbound, of one further parameter."""

    def __call__(self, this: _Self_contra, arg: _Param_contra, /) -> ProtocolReturnType: ...


class MethodSyncOrAsyncNoParam(Protocol[_Self_contra, ProtocolReturnType]):
    """A method of either kind, unbound, without further parameters."""

    def __call__(
        self, this: _Self_contra, /
    ) -> ProtocolReturnType | Awaitable[ProtocolReturnType]: ...


class MethodSyncOrAsyncSingleParam(Protocol[_Self_contra, _Param_contra, ProtocolReturnType]):
    """A method of either kind, unbound, of one further parameter."""

    def __call__(
        self, this: _Self_contra, arg: _Param_contra, /
    ) -> ProtocolReturnType | Awaitable[ProtocolReturnType]: ...
