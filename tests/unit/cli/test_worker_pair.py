"""The recommended pair of workers: one for the queues, a small one for workflow tasks alone."""

import sys
from typing import Any

import pytest

from wfapp.cli.running import commands

DEFAULTS: dict[str, Any] = {
    "task_queue": [],
    "app": "",
    "slots": 0,
    "workflow_slots": 2,
    "pool": "prefork",
    "loglevel": "INFO",
}


def lines(**options: Any) -> list[str]:
    return [" ".join(command) for command in commands({**DEFAULTS, **options})]


def test_the_pair_serves_the_default_queue() -> None:
    base = f"{sys.executable} -m celery -A settings worker --pool=prefork --loglevel=INFO"
    assert lines() == [
        f"{base} --hostname=activities@%h --queues=celery",
        f"{base} --hostname=workflows@%h --queues=celery.workflow --concurrency=2",
    ]


def test_queues_slots_and_app_are_passed_on() -> None:
    activities, workflows = lines(
        task_queue=["orders", "mail"], slots=8, workflow_slots=4, app="shop", pool="threads"
    )
    assert "-A shop worker --pool=threads" in activities
    assert activities.endswith("--queues=orders,mail --concurrency=8")
    assert workflows.endswith("--queues=orders.workflow,mail.workflow --concurrency=4")


@pytest.mark.parametrize("number", [0, 1])
def test_each_worker_has_a_name_of_its_own(number: int) -> None:
    names = ("activities@", "workflows@")
    assert names[number] in lines()[number]
    assert names[1 - number] not in lines()[number]
