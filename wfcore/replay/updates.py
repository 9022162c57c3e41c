"""Updates: requests that the code validates, accepts and answers.

An accepted request is part of the history, so a replay runs its handler without its validator. A
refused one leaves no event, so a replay never sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wfcore.exceptions import CancelledError, ReadOnlyContextError
from wfcore.protocol import commands, events, updates
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Payload
from wfcore.protocol.updates import ProtocolMessage
from wfcore.replay.handlers import Handlers, Running, read_only
from wfcore.replay.interceptors import HandleUpdateInput
from wfcore.replay.state import Job, RunState
from wfcore.workflow import ContinueAsNewError, UpdateInfo
from wfcore.workflow._context import enter_update as enter_update_info
from wfcore.workflow._event_groups import enter_update

_NO_HEADERS: dict[str, Payload] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Update:
    """A request as it came: by a message, or by the event of its acceptance or admission."""

    id: str
    name: str
    request: updates.Request
    message_id: str
    sequencing_event_id: int
    #: A request that an event holds already is not repeated in the event of its acceptance.
    is_admitted: bool = False
    runs_validator: bool = True


class Updates:
    """The updates of one run."""

    def __init__(self, state: RunState, handlers: Handlers) -> None:
        self._state = state
        self._handlers = handlers
        self._accepted: set[str] = set()
        #: What the worker has to say about updates in the current task.
        self.messages: list[ProtocolMessage] = []

    def from_events(self, command_events: Iterable[HistoryEvent]) -> list[Job]:
        """Jobs for the requests that the task which is about to be replayed accepted."""
        jobs: list[Job] = []
        self._accepted.clear()
        for event in command_events:
            attributes = event.attributes
            if not isinstance(attributes, events.WorkflowExecutionUpdateAccepted):
                continue
            self._accepted.add(attributes.protocol_instance_id)
            if attributes.accepted_request is not None:
                update = _read(
                    attributes.accepted_request,
                    attributes.protocol_instance_id,
                    attributes.accepted_request_message_id,
                    attributes.accepted_request_sequencing_event_id,
                    runs_validator=False,
                )
                jobs.append(partial(self._start, update))
        return jobs

    def from_messages(self, messages: Iterable[ProtocolMessage]) -> list[Job]:
        """Jobs for requests that the engine delivers with the task."""
        return [
            partial(
                self._start,
                _read(message.body, message.protocol_instance_id, message.id, message.event_id),
            )
            for message in messages
            if isinstance(message.body, updates.Request)
        ]

    def admitted(self, event: events.WorkflowExecutionUpdateAdmitted, event_id: int) -> Job | None:
        """The job for a request that a reset brought over; None if it was refused before."""
        if event.request is None:
            return None
        update_id = event.request.meta.update_id if event.request.meta else ""
        if self._state.is_replaying and update_id not in self._accepted:
            return None
        update = _read(
            event.request,
            update_id,
            f"{update_id}/request",
            event_id,
            is_admitted=True,
            runs_validator=not self._state.is_replaying,
        )
        return partial(self._start, update)

    # --- one update -----------------------------------------------------------------------------

    def _start(self, update: _Update) -> None:
        self._state.loop.create_task(self._run(update), name=f"update: {update.name}")

    async def _run(self, update: _Update) -> None:
        enter_update_info(UpdateInfo(id=update.id, name=update.name))
        enter_update(update.id)
        state, running = self._state, self._handlers.running_updates
        try:
            call = self._accept(update)
            if call is None:
                return
            result = await self._handlers.inbound.handle_update_handler(call)
            outcome = updates.Outcome(success=state.values.encode_one(result))
            self._complete(update, outcome)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it ends the update
            if not state.loop.evicting:
                self._fail(update, error)
        except ContinueAsNewError:
            state.error = RuntimeError("Cannot continue as new from an update handler")
        finally:
            running.pop(update.id, None)

    def _accept(self, update: _Update) -> HandleUpdateInput | None:
        """Validate the request and accept or reject it; the handler's call, if it was accepted."""
        state, handlers = self._state, self._handlers
        try:
            definition = handlers.updates.get(update.name) or handlers.updates.get(None)
            if definition is None:
                known = " ".join(sorted(name for name in handlers.updates if name))
                raise RuntimeError(
                    f"Update handler for '{update.name}' expected but not found, and there is no "
                    f"dynamic handler. known updates: [{known}]"
                )
            handlers.running_updates[update.id] = Running(
                update.name, definition.unfinished_policy, update.id
            )
            source = update.request.input or updates.Input()
            headers = source.header.fields if source.header else _NO_HEADERS
            args = handlers.arguments(definition, update.name, source.args)
            call = HandleUpdateInput(id=update.id, update=update.name, args=args, headers=headers)
            if update.runs_validator and definition.validator is not None:
                with read_only(state):
                    handlers.inbound.handle_update_validator(call)
                # The validator may have changed its arguments.
                call.args = handlers.arguments(definition, update.name, source.args)
        except ReadOnlyContextError as error:
            state.error = error
            return None
        except Exception as error:  # noqa: BLE001 - whatever the validator raises is a refusal
            self._reject(update, error)
            return None
        state.has_accepted = True
        self._say(
            update,
            "accept",
            updates.Acceptance(
                accepted_request_message_id=update.message_id,
                accepted_request_sequencing_event_id=update.sequencing_event_id,
                accepted_request=None if update.is_admitted else update.request,
            ),
        )
        return call

    def _reject(self, update: _Update, error: BaseException) -> None:
        """Refuse the request: a message without a command."""
        body = updates.Rejection(
            rejected_request_message_id=update.message_id,
            rejected_request_sequencing_event_id=update.sequencing_event_id,
            rejected_request=update.request,
            failure=self._state.values.to_failure(error),
        )
        self.messages.append(
            ProtocolMessage(id=f"{update.id}/reject", protocol_instance_id=update.id, body=body)
        )

    def _complete(self, update: _Update, outcome: updates.Outcome) -> None:
        self._say(update, "complete", updates.Response(meta=update.request.meta, outcome=outcome))

    def _fail(self, update: _Update, error: BaseException) -> None:
        state = self._state
        if isinstance(error, asyncio.CancelledError):
            error = CancelledError(f"Cancellation raised within update {error}")
        if state.is_failure(error):
            failure = state.values.to_failure(error)
            self._complete(update, updates.Outcome(failure=failure))
        else:
            state.error = error

    def _say(self, update: _Update, what: str, body: Any) -> None:
        message_id = f"{update.id}/{what}"
        self.messages.append(
            ProtocolMessage(id=message_id, protocol_instance_id=update.id, body=body)
        )
        self._state.commands.add(commands.ProtocolMessage(message_id=message_id))


def _read(
    request: updates.Request,
    update_id: str,
    message_id: str,
    sequencing_event_id: int,
    *,
    is_admitted: bool = False,
    runs_validator: bool = True,
) -> _Update:
    return _Update(
        id=update_id,
        name=request.input.name if request.input else "",
        request=request,
        message_id=message_id,
        sequencing_event_id=sequencing_event_id,
        is_admitted=is_admitted,
        runs_validator=runs_validator,
    )
