"""Our API answers as the recorded server does, step by step."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.http.check_http import check, mutate
from tests.conformance.http.exchange import Api, Matcher
from tests.conformance.http.selection import BEFORE, GROUPS, LEFT_OUT, steps
from tests.support.waiting import wait_until

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parent / "exchanges.json").read_text())


def test_every_recorded_step_is_run_or_listed() -> None:
    recorded = {step["name"] for step in DOCUMENT["steps"] if step["group"] in GROUPS}
    run = {step["name"] for group in GROUPS for step in steps(DOCUMENT, group)}
    assert run | set(LEFT_OUT) == recorded
    assert not run & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("group", GROUPS)
def test_the_answers_are_those_of_the_recorded_server(
    base_url: str, authorization: str, group: str
) -> None:
    api, matcher = prepared(base_url, authorization)
    wrong = {}
    for step in steps(DOCUMENT, group):
        if step["name"] in BEFORE:
            wait_for_attempt(api, *BEFORE[step["name"]])
        differences = check(step, api, matcher)
        if differences and "quirk" not in step:
            wrong[step["name"]] = differences
    assert wrong == {}


def test_the_comparison_notices_what_is_changed(base_url: str, authorization: str) -> None:
    api, matcher = prepared(base_url, authorization)
    unnoticed = [
        step["name"]
        for number, step in enumerate(steps(DOCUMENT, "terminate"))
        if not check(mutate(step, number), api, matcher)
    ]
    assert unnoticed == []


def test_an_id_with_a_slash_is_reached_unlike_there(base_url: str, authorization: str) -> None:
    """Over ASGI, whose servers hand on the path as it was sent."""
    api, _ = prepared(base_url, authorization)
    path = "/api/v1/namespaces/default/workflows/{{tag}}-a%2Fb"
    body = {"workflowType": {"name": "Hello"}, "taskQueue": {"name": "http-conformance-idle"}}
    assert api.send({"method": "POST", "path": path, "body": body})["status"] == 200
    answer = api.send({"method": "GET", "path": path})
    execution = answer["body"]["workflowExecutionInfo"]["execution"]
    assert execution["workflowId"] == api.fill("{{tag}}-a/b")
    assert api.send({"method": "GET", "path": path.replace("%2F", "/")})["status"] == 404


def wait_for_attempt(api: Api, path: str, attempt: int) -> None:
    """Return when the first pending activity of a run is at an attempt."""

    def is_there() -> bool:
        pending = api.send({"method": "GET", "path": path})["body"]["pendingActivities"]
        return bool(pending[0]["attempt"] == attempt)

    wait_until(is_there, what=f"attempt {attempt}")


def prepared(base_url: str, authorization: str) -> tuple[Api, Matcher]:
    """A sender and a comparer with names of their own."""
    names = {"tag": "h" + uuid.uuid4().hex[:9], "ns": "default"}
    matcher = Matcher(names, set(DOCUMENT["optional"]), messages=False)
    return Api(base_url, names, {"Authorization": authorization}), matcher
