"""What clients look at: states, histories, lists, answers to queries. What they are told is held
against what is stored.
"""

import random
from collections.abc import Callable
from functools import partial

from wfcore.exceptions import RPCError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import HistoryEventFilterType as Filter
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
    ListWorkflowExecutionsRequest,
    QueryWorkflowRequest,
)
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.client_calls import some_run
from wfcore.testing.simulation.faults import ConnectionLostError
from wfcore.testing.simulation.ledger import ask
from wfcore.testing.simulation.processes import Client
from wfcore.testing.simulation.scripts import seconds
from wfcore.testing.simulation.world import NAMESPACE, SCRIPT, World

Page = GetWorkflowExecutionHistoryResponse | GetWorkflowExecutionHistoryReverseResponse

#: Pages that a reader asks for before it has had enough.
_PAGES = 6


def query(world: World, client: Client, rng: random.Random) -> None:
    """Ask a run how many events its code has seen: all that were there when it was asked."""
    run = some_run(world, rng)
    world.asked("query")
    if run is None:
        return
    known = len(run.events)
    request = QueryWorkflowRequest(
        namespace=NAMESPACE, execution=_execution(run), query=WorkflowQuery(query_type="events")
    )
    limit = seconds(rng.choice([10, 10, 100]))
    answer = ask(lambda: client.service.query_workflow(request, timeout=limit))
    if answer is None or answer.query_result is None:
        return
    told = int(answer.query_result.payloads[0].data)
    if told < known and run.head.workflow_type == SCRIPT:
        world.watch.report.of(run.key)(
            "a query sees what was there before", f"answered from {told} events of {known}"
        )


def describe(world: World, client: Client, rng: random.Random) -> None:
    """All that is known of a run."""
    run = some_run(world, rng)
    world.asked("describe")
    if run is None:
        return
    known = len(run.events)
    request = DescribeWorkflowExecutionRequest(namespace=NAMESPACE, execution=_execution(run))
    answer = ask(lambda: client.service.describe_workflow_execution(request))
    info = answer.workflow_execution_info if answer is not None else None
    if info is not None and info.history_length < known:
        world.watch.report.of(run.key)(
            "what is committed can be read", f"described {info.history_length} events of {known}"
        )


def history(world: World, client: Client, rng: random.Random) -> None:
    """The pages of a history, oldest event first."""
    size, run = rng.choice([1, 2, 5, 0]), some_run(world, rng)
    if run is None:
        world.asked("history")
        return

    def page(token: bytes) -> Page:
        world.asked("history")
        return client.service.get_workflow_execution_history(
            GetWorkflowExecutionHistoryRequest(
                namespace=NAMESPACE,
                execution=_execution(run),
                maximum_page_size=size,
                next_page_token=token,
            )
        )

    closed, known = run.closed, len(run.events)
    events, is_whole = _read(page)
    _check_pages(world, run, events)
    if is_whole and len(events) < known:
        world.watch.report.of(run.key)(
            "what is committed can be read", f"read {len(events)} events of {known}"
        )
    if closed and is_whole and events != run.events:
        world.watch.report.of(run.key)("a closed history stays", "another one was read")


def history_backwards(world: World, client: Client, rng: random.Random) -> None:
    """The pages of a history, newest event first."""
    size, run = rng.choice([1, 3, 0]), some_run(world, rng)
    if run is None:
        world.asked("history backwards")
        return

    def page(token: bytes) -> Page:
        world.asked("history backwards")
        return client.service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=NAMESPACE,
                execution=_execution(run),
                maximum_page_size=size,
                next_page_token=token,
            )
        )

    events, is_whole = _read(page)
    events.reverse()
    if is_whole:
        _check_pages(world, run, events)


def history_awaited(world: World, client: Client, rng: random.Random) -> None:
    """Wait for what is new in a history, or for its end."""
    run = some_run(world, rng)
    kind = rng.choice([Filter.ALL_EVENT, Filter.CLOSE_EVENT])
    if run is None:
        world.asked("history awaited")
        return

    def page(token: bytes) -> Page:
        world.asked("history awaited")
        return client.service.get_workflow_execution_history(
            GetWorkflowExecutionHistoryRequest(
                namespace=NAMESPACE,
                execution=_execution(run),
                next_page_token=token,
                wait_new_event=True,
                history_event_filter_type=kind,
            )
        )

    events, is_whole = _read(page, most=2)
    if kind is Filter.ALL_EVENT:
        _check_pages(world, run, events)
    elif is_whole and events != run.events[-1:]:
        world.watch.report.of(run.key)("a run's end can be awaited", f"got {len(events)} events")


def list_runs(world: World, client: Client, rng: random.Random) -> None:
    """All runs, page by page: those that were there at the first page are there, each once."""
    known = [run.key.run_id for run in world.runs()]
    token, found = b"", list[str]()
    for _ in range(_PAGES):
        request = ListWorkflowExecutionsRequest(
            namespace=NAMESPACE, page_size=rng.choice([2, 10, 0]), next_page_token=token
        )
        world.asked("list")
        answer = ask(partial(client.service.list_workflow_executions, request))
        if answer is None:
            return
        found += [info.execution.run_id for info in answer.executions if info.execution]
        token = answer.next_page_token
        if not token:
            break
    else:
        return
    if len(found) != len(set(found)) or not set(known) <= set(found):
        world.watch.report.fail("a list has each run once", f"{len(found)} of {len(known)}")


def count_runs(world: World, client: Client, rng: random.Random) -> None:
    """How many runs there are."""
    query_text = rng.choice(["", "GROUP BY ExecutionStatus", "ExecutionStatus = 'Running'"])
    known = len(world.runs())
    request = CountWorkflowExecutionsRequest(namespace=NAMESPACE, query=query_text)
    world.asked("count")
    answer = ask(lambda: client.service.count_workflow_executions(request))
    if answer is not None and "Running" not in query_text and answer.count < known:
        world.watch.report.fail("a count has all runs", f"{answer.count} of {known}")


# ---- shared


def _execution(run: Run) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.key.workflow_id, run_id=run.key.run_id)


def _read(page: Callable[[bytes], Page], most: int = _PAGES) -> tuple[list[HistoryEvent], bool]:
    """Events of some pages, and whether those were all."""
    events: list[HistoryEvent] = []
    token = b""
    try:
        for _ in range(most):
            answer = page(token)
            events += (answer.history or History()).events
            token = answer.next_page_token
            if not token:
                return events, True
    except (ConnectionLostError, RPCError):
        pass
    return events, False


def _check_pages(world: World, run: Run, events: list[HistoryEvent]) -> None:
    """What was read is what is stored, but for a task at the end that is shown only."""
    fail = world.watch.report.of(run.key)
    ids = [event.event_id for event in events]
    if ids and ids != list(range(ids[0], ids[0] + len(ids))):
        fail("pages have each event once", f"read {ids}")
    stored = [event for event in events if event.event_id <= len(run.events)]
    same = run.events[ids[0] - 1 :][: len(stored)] if ids else []
    differing = [one.event_id for one, other in zip(stored, same, strict=True) if one != other]
    if differing and not _are_shown_only(events, differing):
        fail("pages have what is stored", f"events {differing} differ")


def _are_shown_only(events: list[HistoryEvent], ids: list[int]) -> bool:
    """Whether these are the last two at most, which may be those of a transient task."""
    return min(ids) > events[-1].event_id - 2
