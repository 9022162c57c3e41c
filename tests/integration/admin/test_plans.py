"""Pages of the list are read from an index, however many runs there are."""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.support.people import Person

LIST = "/admin/wfapp/workflowexecution/"
ROWS = 20_000
FILL = """
INSERT INTO wfapp_workflowexecution (
  run_id, shard, start_time, execution_time, close_time, history_bytes, history_length,
  state_transitions, status, first_run_id, root_run_id, namespace, workflow_id, workflow_type,
  task_queue, parent_workflow_id, root_workflow_id
)
SELECT gen_random_uuid(), n, 1900000000000000 + n / 3, 0, 1, 0, 5, 3, 1 + n %% 7,
  gen_random_uuid(), gen_random_uuid(), 'default', 'order-' || n, 'Type' || n %% 5, 'q', '', ''
FROM generate_series(1, %s) AS n
"""


@pytest.fixture
def client(person: Person, stack: str) -> Client:
    if stack == "embedded":
        pytest.skip("SQLite tells its plans in another way")
    with connection.cursor() as cursor:
        cursor.execute(FILL, [ROWS])
        cursor.execute("ANALYZE wfapp_workflowexecution")
    client = Client()
    client.force_login(person("everything"))
    return client


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?status=2",
        "?type=Type3",
        "?q=order-777",
        "?status=2&after=1900000000003000-80000000-0000-4000-8000-000000000000",
        "?after=1900000000003000-80000000-0000-4000-8000-000000000000",
    ],
)
def test_a_page_reads_little_more_than_its_rows(client: Client, query: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(LIST + query).status_code == 200
    (statement,) = [
        each["sql"] for each in captured if 'FROM "wfapp_workflowexecution"' in each["sql"]
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        answer = cursor.fetchone()[0]
    (plan,) = json.loads(answer) if isinstance(answer, str) else answer
    assert "Seq Scan" not in str(plan)
    assert _read(plan["Plan"]) < 400


def _read(node: dict[str, object]) -> float:
    """Rows that the scans of a plan looked at."""
    seen = float(str(node.get("Rows Removed by Filter", 0)))
    if "Scan" in str(node["Node Type"]):
        seen += float(str(node["Actual Rows"]))
    inner = node.get("Plans", [])
    assert isinstance(inner, list)
    return seen + sum(_read(each) for each in inner)
