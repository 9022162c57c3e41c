"""Lists and counts, as far as their filters go."""

from typing import Any

from tests.conformance.probes.cases import add_each
from tests.support.probing import Answer, Probe
from tests.support.requests_json import Json

ALL = "TaskQueue = 'q-probe'"


def _list(probe: Probe, fields: Json) -> Answer:
    probe.run()
    return probe.call("list_workflow_executions", fields)


def _queried(name: str, query: str) -> tuple[str, Json]:
    return f"{name}: {query}", {"query": query}


add_each(
    "list",
    [
        _queried("unknown attribute", "Nonsense = 1"),
        _queried("memo field", "m = 1"),
        _queried("unknown status", "ExecutionStatus = 'Sleeping'"),
        _queried("bad time", "StartTime > 'yesterday'"),
        _queried("date without a time", "StartTime > '2020-01-01'"),
        _queried("empty query", ""),
        _queried("RunId not a UUID", "RunId = 'x'"),
        ("page size -1", {"query": ALL, "pageSize": -1}),
        ("page size 0 (default)", {"query": ALL, "pageSize": 0}),
        ("page size 5000 (capped)", {"query": ALL, "pageSize": 5000}),
        ("unknown namespace", {"namespace": "nowhere"}),
    ],
    _list,
)


def _count(probe: Probe, query: Any) -> Answer:
    probe.run()
    return probe.call("count_workflow_executions", {"query": query})


add_each(
    "count",
    [
        ("GROUP BY another attribute", f"{ALL} GROUP BY WorkflowType"),
        ("GROUP BY a custom Keyword", f"{ALL} GROUP BY ProbeKeyword"),
        ("GROUP BY two", f"{ALL} GROUP BY ExecutionStatus, WorkflowType"),
        ("bad query", "Nonsense = 1"),
        ("ORDER BY", f"{ALL} ORDER BY StartTime"),
    ],
    _count,
)
