"""A client and a worker at once, over the service in memory: every state is made by hand.

Time stands still but for `advance`, which lets the ticker do what comes due on the way.
"""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec

from tests.support.requests_json import (
    Json,
    activity,
    cancel_workflow,
    complete,
    continue_as_new,
    fail,
    failure,
    placed,
    values,
)
from wfcore.exceptions import RPCError
from wfcore.history.effects import Effect
from wfcore.history.limits import Limits
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import IndexedValueType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.json_form import from_json, to_json
from wfcore.protocol.message import Message
from wfcore.protocol.rpc import (
    activity_operations,
    activity_tasks,
    updates,
    workflow_tasks,
    workflows,
)
from wfcore.service.host import Arrivals, Carrier
from wfcore.service.ports import Ids, Namespace
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.memory_ports import (
    MemoryDispatcher,
    MemoryStore,
    SequentialIds,
    SimulatedClock,
)

#: What the servers that were recorded had registered.
ATTRIBUTES = {
    "ProbeText": IndexedValueType.TEXT,
    "ProbeKeyword": IndexedValueType.KEYWORD,
    "ProbeInt": IndexedValueType.INT,
    "ProbeDouble": IndexedValueType.DOUBLE,
    "ProbeBool": IndexedValueType.BOOL,
    "ProbeTime": IndexedValueType.DATETIME,
    "ProbeList": IndexedValueType.KEYWORD_LIST,
}
#: Their namespace beside the default one.
SYSTEM = Namespace(
    name="temporal-system",
    namespace_id="32049b68-7872-4094-8e63-d0dd59896a84",
    retention=timedelta(days=7),
)
#: The limits of the servers that were recorded.
SERVERS = {
    "plain": Limits(search_attributes=ATTRIBUTES),
    "tuned": Limits(
        pending_activities=3,
        pending_children=3,
        pending_signals=3,
        pending_cancels=3,
        signals=8,
        updates=4,
        buffered_events=4,
        id_bytes=100,
    ),
    "small": Limits(
        history_events=40,
        history_events_warn=30,
        history_events_suggest=12,
        history_bytes=40_000,
        history_bytes_warn=30_000,
        history_bytes_suggest=20_000,
        blob_bytes=5_000,
        memo_bytes=3_000,
    ),
}

#: Requests by the snake-case name of the call.
REQUESTS: dict[str, type[Message]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Request")).lower(): kind
    for module in (workflows, updates, workflow_tasks, activity_tasks, activity_operations)
    for name, kind in vars(module).items()
    if name.endswith("Request") and isinstance(kind, type)
}


class Refusal(dict[str, Any]):
    """An error that a call answered: code, detail, message, fields of the detail."""


Answer = Any


class Probe:
    """One run of the service with a queue and workflow ids of its own."""

    def __init__(
        self,
        server: str = "plain",
        arrivals: Arrivals = Arrivals.OPTIMISTIC,
        on_dispatch: Callable[[Effect], None] | None = None,
        clock: SimulatedClock | None = None,
        ids: Ids | None = None,
        carrier: Carrier | None = None,
    ) -> None:
        self.clock = clock or SimulatedClock()
        self.store = MemoryStore(self.clock, namespaces=(SYSTEM,))
        self.dispatcher = MemoryDispatcher(self.clock, on_dispatch)
        self.service = WorkflowService(
            self.store,
            self.dispatcher,
            ids or SequentialIds(),
            SERVERS[server],
            arrivals,
            carrier=carrier,
        )
        self.queue = "q-probe"
        self.workflow_ids: list[str] = []
        self._numbers = count(1)

    # ---- calls

    def call(self, method: str, request: Json | Message, **options: Any) -> Answer:
        """Call by snake-case name with a request in JSON form; an error becomes a `Refusal`."""
        if isinstance(request, dict):
            sent = {"namespace": "default", **request}
            request = from_json(REQUESTS[method], sent)
        try:
            return getattr(self.service, method)(request, **options)
        except RPCError as error:
            detail = {k: v for k, v in error.detail.items() if v}
            code = "NO_ANSWER" if error.status.name == "DEADLINE_EXCEEDED" else error.status.name
            return Refusal(
                code=code,
                detail=error.detail_type,
                message=self.normal(error.message),
                detail_fields={
                    k: v if isinstance(v, list) else self.normal(str(v)) for k, v in detail.items()
                },
            )

    def normal(self, text: str) -> str:
        """A text with placeholders where ids and times stand."""
        for workflow_id in sorted(self.workflow_ids, key=len, reverse=True):
            text = text.replace(workflow_id, "<id>")
        text = text.replace(self.queue, "<queue>")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
        return re.sub(r"\bx{200,}", "<long>", text)

    def workflow_id(self) -> str:
        self.workflow_ids.append(f"w-probe-{next(self._numbers)}")
        return self.workflow_ids[-1]

    def request_id(self) -> str:
        return f"aaaaaaaa-0000-4000-8000-{next(self._numbers):012}"

    def start(self, workflow_id: str | None = None, **fields: Any) -> Answer:
        request = {
            "workflowId": workflow_id if workflow_id is not None else self.workflow_id(),
            "workflowType": {"name": "wf"},
            "taskQueue": {"name": self.queue},
            "requestId": self.request_id(),
            **fields,
        }
        kept = {key: item for key, item in request.items() if item is not None}
        return self.call("start_workflow_execution", kept)

    def run(self, workflow_id: str | None = None, **fields: Any) -> tuple[str, str]:
        """Start a run; its workflow id and run id."""
        workflow_id = workflow_id or self.workflow_id()
        started = self.start(workflow_id, **fields)
        assert not isinstance(started, Refusal), started
        return workflow_id, started.run_id

    def poll(self, queue: str | None = None) -> Any:
        return self.call(
            "poll_workflow_task_queue",
            {"taskQueue": {"name": queue or self.queue}, "identity": "probe-worker"},
        )

    def poll_activity(self, queue: str | None = None) -> Any:
        return self.call(
            "poll_activity_task_queue",
            {"taskQueue": {"name": queue or self.queue}, "identity": "probe-worker"},
        )

    def answer(self, task: Any, *commands: Json, token: bytes | None = None, **fields: Any) -> Any:
        """Answer a workflow task."""
        request = from_json(
            workflow_tasks.RespondWorkflowTaskCompletedRequest,
            {
                "namespace": "default",
                "identity": "probe-worker",
                "commands": list(commands),
                **fields,
            },
        )
        token = task.task_token if token is None else token
        return self.call("respond_workflow_task_completed", _with_token(request, token))

    def fail_task(self, task: Any, cause: str = "WORKFLOW_WORKER_UNHANDLED_FAILURE") -> Any:
        request = from_json(
            workflow_tasks.RespondWorkflowTaskFailedRequest,
            {
                "namespace": "default",
                "identity": "probe-worker",
                "cause": f"WORKFLOW_TASK_FAILED_CAUSE_{cause}",
                "failure": failure("task failed"),
            },
        )
        return self.call("respond_workflow_task_failed", _with_token(request, task.task_token))

    def step(self, *commands: Json) -> Any:
        """Poll a workflow task and answer it."""
        task = self.poll()
        assert task.task_token, "no workflow task waits"
        return self.answer(task, *commands)

    def answer_activity(self, how: str, task: Any, **fields: Any) -> Any:
        """`how`: completed, failed, canceled or heartbeat; `task` may be a token."""
        method = (
            "record_activity_task_heartbeat"
            if how == "heartbeat"
            else f"respond_activity_task_{how}"
        )
        if how == "failed":
            fields.setdefault("failure", failure())
        fields = {key: item for key, item in fields.items() if item is not None}
        request = from_json(
            REQUESTS[method], {"namespace": "default", "identity": "probe-worker", **fields}
        )
        token = task if isinstance(task, bytes) else task.task_token
        return self.call(method, _with_token(request, token))

    def answer_by_id(
        self, how: str, workflow_id: str, activity_id: str = "a", run_id: str = "", **fields: Any
    ) -> Any:
        """As `answer_activity`, but the activity is named by its ids."""
        method = (
            "record_activity_task_heartbeat_by_id"
            if how == "heartbeat"
            else f"respond_activity_task_{how}_by_id"
        )
        if how == "failed":
            fields.setdefault("failure", failure())
        names = {"workflowId": workflow_id, "runId": run_id, "activityId": activity_id}
        return self.call(method, {"identity": "probe-client", **names, **fields})

    def operate(self, method: str, workflow_id: str, run_id: str = "", **fields: Any) -> Any:
        """An operation on pending activities: pause_activity, ..., update_activity_options."""
        execution = {"workflowId": workflow_id, "runId": run_id}
        return self.call(method, {"execution": execution, "identity": "probe-client", **fields})

    def signal(self, workflow_id: str, name: str = "s", run_id: str = "", **fields: Any) -> Answer:
        return self.call(
            "signal_workflow_execution",
            {
                "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
                "signalName": name,
                "requestId": self.request_id(),
                **fields,
            },
        )

    def cancel(self, workflow_id: str, run_id: str = "", **fields: Any) -> Answer:
        return self.call(
            "request_cancel_workflow_execution",
            {"workflowExecution": {"workflowId": workflow_id, "runId": run_id}, **fields},
        )

    def terminate(self, workflow_id: str, run_id: str = "", **fields: Any) -> Answer:
        return self.call(
            "terminate_workflow_execution",
            {"workflowExecution": {"workflowId": workflow_id, "runId": run_id}, **fields},
        )

    def query(
        self, workflow_id: str, timeout: float = 10, run_id: str = "", **fields: Any
    ) -> Answer:
        return self.call(
            "query_workflow",
            {
                "execution": {"workflowId": workflow_id, "runId": run_id},
                "query": {"queryType": "q"},
                **fields,
            },
            timeout=timedelta(seconds=timeout),
        )

    # ---- updates: the caller waits, and a worker answers meanwhile

    def update(
        self,
        workflow_id: str,
        update_id: str = "",
        *meanwhile: Callable[[], Any],
        name: str = "u",
        stage: str = "COMPLETED",
        run_id: str = "",
        timeout: float | None = None,
        **fields: Any,
    ) -> Answer:
        """Send an update; each time that the call waits, the next of `meanwhile` happens."""
        return self.meanwhile(
            meanwhile,
            "update_workflow_execution",
            {
                "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
                "waitPolicy": {
                    "lifecycleStage": f"UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_{stage}"
                },
                "request": {
                    "meta": {"updateId": update_id, "identity": "probe-client"},
                    "input": {"name": name, "args": values(1)},
                },
                **fields,
            },
            timeout,
        )

    def poll_update(
        self,
        workflow_id: str,
        update_id: str,
        *meanwhile: Callable[[], Any],
        stage: str = "COMPLETED",
        run_id: str = "",
        timeout: float | None = None,
    ) -> Answer:
        return self.meanwhile(
            meanwhile,
            "poll_workflow_execution_update",
            {
                "updateRef": {
                    "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
                    "updateId": update_id,
                },
                "waitPolicy": {
                    "lifecycleStage": f"UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_{stage}"
                },
            },
            timeout,
        )

    def update_with_start(
        self, *meanwhile: Callable[[], Any], start: Json | None = None, update: Json | None = None
    ) -> Answer:
        """Both operations with what is usual, but for what is given."""
        workflow_id = (start or {}).get("workflowId") or self.workflow_id()
        started = {
            "namespace": "default",
            "workflowId": workflow_id,
            "workflowType": {"name": "wf"},
            "taskQueue": {"name": self.queue},
            "requestId": self.request_id(),
            "workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
            **(start or {}),
        }
        updated = {
            "namespace": "default",
            "workflowExecution": {"workflowId": workflow_id},
            "request": {"meta": {"updateId": "u"}, "input": {"name": "u"}},
            **(update or {}),
        }
        operations = [{"startWorkflow": started}, {"updateWorkflow": updated}]
        return self.meanwhile(meanwhile, "execute_multi_operation", {"operations": operations})

    def meanwhile(
        self,
        steps: Iterable[Callable[[], Any]],
        method: str,
        request: Json,
        timeout: float | None = None,
    ) -> Answer:
        """Make a call; each time that it waits for an update, the next of `steps` happens."""
        left = list(steps)
        wait = self.dispatcher.wait_update

        def stand_in(*given: Any) -> None:
            if left:
                left.pop(0)()
            else:
                wait(*given)

        self.dispatcher.wait_update = stand_in  # type: ignore[method-assign]
        options = {} if timeout is None else {"timeout": timedelta(seconds=timeout)}
        try:
            answer = self.call(method, request, **options)
        finally:
            self.dispatcher.wait_update = wait  # type: ignore[method-assign]
        assert not left, "the call did not wait so often"
        return answer

    def say(self, *words: Callable[[Json], Json], task: Any = None, **fields: Any) -> Any:
        """Take a workflow task and say these words about each of its updates."""
        task = task or self.poll()
        assert task.task_token, "no workflow task waits"
        said = [word(to_json(message)) for message in task.messages for word in words]
        commands = [placed(message) for message in said if "Rejection" not in message["id"]]
        return self.answer(task, *commands, messages=said, **fields)

    # ---- what is there

    def events(self, workflow_id: str, run_id: str = "") -> list[HistoryEvent]:
        """The stored events of a run."""
        request = workflows.GetWorkflowExecutionHistoryRequest(
            namespace="default",
            execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        )
        events: list[HistoryEvent] = []
        while True:
            page = self.call("get_workflow_execution_history", request, show_transient=False)
            events += page.history.events
            if not page.next_page_token:
                return events
            request = msgspec.structs.replace(request, next_page_token=page.next_page_token)

    def types(self, workflow_id: str, run_id: str = "") -> list[str]:
        return [event.event_type.name for event in self.events(workflow_id, run_id)]

    def attributes(self, workflow_id: str, kind: str, run_id: str = "") -> Any:
        """Attributes of the last event of a kind."""
        found = [e for e in self.events(workflow_id, run_id) if e.event_type.name == kind]
        return found[-1].attributes if found else None

    def describe(self, workflow_id: str, run_id: str = "") -> Any:
        return self.call(
            "describe_workflow_execution",
            {"execution": {"workflowId": workflow_id, "runId": run_id}},
        )

    def status(self, workflow_id: str, run_id: str = "") -> Status:
        status: Status = self.describe(workflow_id, run_id).workflow_execution_info.status
        return status

    # ---- time and ready-made states

    def advance(self, by: float) -> None:
        """Let time pass; what comes due on the way is done when it does."""
        until = self.clock.now() + timedelta(seconds=by)
        while (due := self.store.next_due()) is not None and due <= until:
            self.clock.move_to(due)
            report = self.service.sweep()
            assert not report.failed, self.store
        self.clock.move_to(until)

    def idle(self, **fields: Any) -> tuple[str, str]:
        """A run whose first workflow task is over."""
        workflow_id, run_id = self.run(**fields)
        self.step()
        return workflow_id, run_id

    def with_activity(self, **attributes: Any) -> tuple[str, str]:
        """A run that waits for an activity."""
        workflow_id, run_id = self.run()
        self.step(activity("a", self.queue, **attributes))
        return workflow_id, run_id

    def closed(self, status: str, workflow_id: str | None = None, **fields: Any) -> tuple[str, str]:
        """A run that was closed in this way."""
        if status == "TIMED_OUT":
            fields["workflowRunTimeout"] = "1s"
        workflow_id, run_id = self.run(workflow_id, **fields)
        if status == "TERMINATED":
            self.terminate(workflow_id)
        elif status == "TIMED_OUT":
            self.advance(1.5)
        else:
            ways: dict[str, Callable[[], Json]] = {
                "COMPLETED": lambda: complete(1),
                "FAILED": fail,
                "CANCELED": cancel_workflow,
                "CONTINUED_AS_NEW": continue_as_new,
            }
            self.step(ways[status]())
        assert self.status(workflow_id, run_id).name == status
        return workflow_id, run_id


def _with_token(request: Message, token: bytes) -> Message:
    return msgspec.structs.replace(request, task_token=token)
