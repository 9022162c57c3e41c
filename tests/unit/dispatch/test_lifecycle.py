"""A worker's queues, and how a prefork parent knows its children."""

import os
from types import SimpleNamespace

import pytest
from celery import Celery
from celery.concurrency import prefork, solo, thread

from wfapp.dispatch.lifecycle import _Children, _has_ended, consume_too, pool_name
from wfapp.dispatch.queues import QueueNames

NAMES = QueueNames(celery_default="celery")


def worker(*queues: str) -> SimpleNamespace:
    app = Celery("test", broker="memory://", set_as_current=False)
    app.amqp.queues.select(list(queues) or None)
    return SimpleNamespace(app=app)


def consumed(of: SimpleNamespace) -> list[str]:
    return sorted(of.app.amqp.queues.consume_from)


def test_a_worker_takes_the_workflow_tasks_of_its_queues_too() -> None:
    plain = worker()
    consume_too(plain, NAMES, workflows=True)
    assert consumed(plain) == ["celery", "celery.workflow", "wfapp.tick"]
    named = worker("orders")
    consume_too(named, NAMES, workflows=True)
    assert consumed(named) == ["orders", "orders.workflow", "wfapp.tick"]


def test_unless_it_is_told_otherwise() -> None:
    activities = worker("orders")
    consume_too(activities, NAMES, workflows=False)
    assert consumed(activities) == ["orders", "wfapp.tick"]
    workflows = worker("orders.workflow")
    consume_too(workflows, NAMES, workflows=True)
    assert consumed(workflows) == ["orders.workflow", "wfapp.tick"]


@pytest.mark.parametrize(
    ("pool", "name"),
    [
        ("prefork", "prefork"),
        ("processes", "prefork"),
        ("threads", "threads"),
        ("celery.concurrency.solo:TaskPool", "solo"),
        (prefork.TaskPool, "prefork"),
        (thread.TaskPool, "threads"),
        (solo.TaskPool, "solo"),
    ],
)
def test_the_kind_of_a_pool(pool: object, name: str) -> None:
    assert pool_name(pool) == name


def test_children_tell_their_boot_ids_and_each_is_lost_once() -> None:
    children = _Children()
    children.tell("boot-a")
    assert children.living({os.getpid()}) == [(os.getpid(), "boot-a")]
    assert children.lost({os.getpid()}) == []
    assert children.lost(set()) == ["boot-a"]
    assert children.lost(set()) == []


def test_a_child_that_has_ended_is_seen_before_it_is_waited_for() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(reading, 1)
        os._exit(0)
    assert not _has_ended(pid)
    os.write(writing, b"x")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert _has_ended(pid)
    assert os.waitpid(pid, 0)[0] == pid, "it was left to be waited for"
    assert _has_ended(pid)
    for end in (reading, writing):
        os.close(end)
