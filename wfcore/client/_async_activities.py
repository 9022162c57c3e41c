"""Activities that are completed from outside: by the token of an attempt, or by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wfcore.activity import ActivityCancellationDetails
from wfcore.client._errors import AsyncActivityCancelledError
from wfcore.common import UNSET
from wfcore.converter import DataConverter, SerializationContext, WithSerializationContext
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse,
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedRequest,
)

if TYPE_CHECKING:
    from wfcore.client._client import Client

_T = TypeVar("_T")


@dataclass(frozen=True)
class AsyncActivityIDReference:
    """Names an activity by its workflow and its own id; without a run id, of the current run."""

    workflow_id: str | None
    run_id: str | None
    activity_id: str


IdOrToken = AsyncActivityIDReference | bytes


@dataclass
class HeartbeatAsyncActivityInput:
    """For `OutboundInterceptor.heartbeat_async_activity`."""

    id_or_token: IdOrToken
    details: Sequence[Any]
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    data_converter_override: DataConverter | None = None


@dataclass
class CompleteAsyncActivityInput:
    """For `OutboundInterceptor.complete_async_activity`."""

    id_or_token: IdOrToken
    result: Any
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    data_converter_override: DataConverter | None = None


@dataclass
class FailAsyncActivityInput:
    """For `OutboundInterceptor.fail_async_activity`."""

    id_or_token: IdOrToken
    error: Exception
    last_heartbeat_details: Sequence[Any]
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    data_converter_override: DataConverter | None = None


@dataclass
class ReportCancellationAsyncActivityInput:
    """For `OutboundInterceptor.report_cancellation_async_activity`."""

    id_or_token: IdOrToken
    details: Sequence[Any]
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    data_converter_override: DataConverter | None = None


class AsyncActivityHandle(WithSerializationContext):
    """An activity whose code has ended by ``raise_complete_async``; made by `Client`.

    Every method raises NotFoundError when the attempt is over, or the activity is.
    """

    def __init__(
        self,
        client: Client,
        id_or_token: IdOrToken,
        data_converter_override: DataConverter | None = None,
    ) -> None:
        self._client = client
        self._id_or_token = id_or_token
        self._data_converter_override = data_converter_override

    async def heartbeat(
        self,
        *details: Any,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """Say that the activity is alive, and how far it is.

        Raises:
            AsyncActivityCancelledError: it should end: its `details` say why.
        """
        await self._client.outbound.heartbeat_async_activity(
            HeartbeatAsyncActivityInput(
                id_or_token=self._id_or_token,
                details=details,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                data_converter_override=self._data_converter_override,
            )
        )

    async def complete(
        self,
        result: Any = UNSET,
        *,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """Complete the activity; named by its ids, also one that no worker has taken yet."""
        await self._client.outbound.complete_async_activity(
            CompleteAsyncActivityInput(
                id_or_token=self._id_or_token,
                result=result,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                data_converter_override=self._data_converter_override,
            )
        )

    async def fail(
        self,
        error: Exception,
        *,
        last_heartbeat_details: Sequence[Any] = (),
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """Fail the attempt; the activity's retry policy says whether another one follows.

        Raises:
            InvalidArgumentError: the error is none that code of an activity raises.
        """
        await self._client.outbound.fail_async_activity(
            FailAsyncActivityInput(
                id_or_token=self._id_or_token,
                error=error,
                last_heartbeat_details=last_heartbeat_details,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                data_converter_override=self._data_converter_override,
            )
        )

    async def report_cancellation(
        self,
        *details: Any,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """End the activity as cancelled.

        Raises:
            InvalidArgumentError: nobody asked for its cancellation.
        """
        await self._client.outbound.report_cancellation_async_activity(
            ReportCancellationAsyncActivityInput(
                id_or_token=self._id_or_token,
                details=details,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                data_converter_override=self._data_converter_override,
            )
        )

    def with_context(self, context: SerializationContext) -> Self:
        """A handle whose values are converted in this context.

        Raises:
            TypeError: a derived class with an ``__init__`` of its own doesn't override this.
        """
        converter = self._client.data_converter.with_context(context)
        if converter is self._client.data_converter:
            return self
        cls = type(self)
        if cls.__init__ is not AsyncActivityHandle.__init__:
            raise TypeError(
                f"{cls.__name__} has an __init__ of its own, so it must override with_context() too"
            )
        return cls(self._client, self._id_or_token, converter)


# --- behind all interceptors


async def heartbeat(client: Client, given: HeartbeatAsyncActivityInput) -> None:
    """Record a heartbeat.

    Raises:
        AsyncActivityCancelledError: the activity should end.
    """
    details = await _encoded(_converter(client, given.data_converter_override), given.details)
    name, service = given.id_or_token, client.service
    answer: RecordActivityTaskHeartbeatResponse | RecordActivityTaskHeartbeatByIdResponse
    if isinstance(name, AsyncActivityIDReference):
        by_id = RecordActivityTaskHeartbeatByIdRequest(**_ids(client, name), details=details)
        answer = await _make(client, service.record_activity_task_heartbeat_by_id, by_id, given)
    else:
        request = RecordActivityTaskHeartbeatRequest(**_token(client, name), details=details)
        answer = await _make(client, service.record_activity_task_heartbeat, request, given)
    if answer.cancel_requested or answer.activity_paused or answer.activity_reset:
        raise AsyncActivityCancelledError(
            ActivityCancellationDetails(
                cancel_requested=answer.cancel_requested,
                paused=answer.activity_paused,
                reset=answer.activity_reset,
            )
        )


async def complete(client: Client, given: CompleteAsyncActivityInput) -> None:
    """Complete an activity."""
    values = [] if given.result is UNSET else [given.result]
    result = await _encoded(_converter(client, given.data_converter_override), values)
    name, service = given.id_or_token, client.service
    if isinstance(name, AsyncActivityIDReference):
        by_id = RespondActivityTaskCompletedByIdRequest(**_ids(client, name), result=result)
        await _make(client, service.respond_activity_task_completed_by_id, by_id, given)
    else:
        request = RespondActivityTaskCompletedRequest(**_token(client, name), result=result)
        await _make(client, service.respond_activity_task_completed, request, given)


async def fail(client: Client, given: FailAsyncActivityInput) -> None:
    """Fail an attempt."""
    converter = _converter(client, given.data_converter_override)
    fields: dict[str, Any] = {
        "failure": await converter.encode_failure(given.error),
        "last_heartbeat_details": await _encoded(converter, given.last_heartbeat_details),
    }
    name, service = given.id_or_token, client.service
    if isinstance(name, AsyncActivityIDReference):
        by_id = RespondActivityTaskFailedByIdRequest(**_ids(client, name), **fields)
        await _make(client, service.respond_activity_task_failed_by_id, by_id, given)
    else:
        request = RespondActivityTaskFailedRequest(**_token(client, name), **fields)
        await _make(client, service.respond_activity_task_failed, request, given)


async def report_cancellation(client: Client, given: ReportCancellationAsyncActivityInput) -> None:
    """End an activity as cancelled."""
    details = await _encoded(_converter(client, given.data_converter_override), given.details)
    name, service = given.id_or_token, client.service
    if isinstance(name, AsyncActivityIDReference):
        by_id = RespondActivityTaskCanceledByIdRequest(**_ids(client, name), details=details)
        await _make(client, service.respond_activity_task_canceled_by_id, by_id, given)
    else:
        request = RespondActivityTaskCanceledRequest(**_token(client, name), details=details)
        await _make(client, service.respond_activity_task_canceled, request, given)


def _converter(client: Client, override: DataConverter | None) -> DataConverter:
    return override or client.data_converter


async def _encoded(converter: DataConverter, values: Sequence[Any]) -> Payloads | None:
    return await converter.encode_wrapper(values) if values else None


async def _make(client: Client, method: Callable[[Any], _T], request: object, given: Any) -> _T:
    return await client.calls.make(method, request, time_limit=given.rpc_timeout)


def _ids(client: Client, name: AsyncActivityIDReference) -> dict[str, Any]:
    return {
        "namespace": client.namespace,
        "workflow_id": name.workflow_id or "",
        "run_id": name.run_id or "",
        "activity_id": name.activity_id,
        "identity": client.identity,
    }


def _token(client: Client, token: bytes) -> dict[str, Any]:
    return {"task_token": token, "namespace": client.namespace, "identity": client.identity}
