"""Task queues are Celery queues of the same name, and workflow tasks have queues of their own."""

from wfapp.dispatch.queues import QueueNames

PLAIN = QueueNames(celery_default="celery")
PREFIXED = QueueNames(celery_default="celery", prefix="shop.")


def test_the_default_task_queue_is_the_default_queue_of_the_app() -> None:
    assert PLAIN.activities("default") == "celery"
    assert PLAIN.workflows("default") == "celery.workflow"
    assert PREFIXED.activities("default") == "celery"


def test_every_other_task_queue_keeps_its_name_behind_the_prefix() -> None:
    assert PLAIN.activities("orders") == "orders"
    assert PREFIXED.activities("orders") == "shop.orders"
    assert PREFIXED.workflows("orders") == "shop.orders.workflow"
    assert PREFIXED.tick == "shop.wfapp.tick"


def test_the_way_back() -> None:
    for names in (PLAIN, PREFIXED):
        for task_queue in ("default", "orders"):
            assert names.task_queue(names.activities(task_queue)) == task_queue
            assert names.task_queue(names.workflows(task_queue)) == task_queue
        assert names.task_queue(names.tick) is None
    assert PREFIXED.task_queue("orders") is None


def test_a_worker_of_a_queue_takes_its_workflow_tasks_too() -> None:
    assert PLAIN.beside(["celery", "orders", "orders.workflow", "wfapp.tick"]) == [
        "celery.workflow"
    ]
    assert PLAIN.beside(["orders.workflow"]) == []
