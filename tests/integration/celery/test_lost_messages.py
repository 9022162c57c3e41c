"""What waits beside an empty queue is announced again, once, before its own resend is due."""

from datetime import timedelta

from redis import Redis

from tests.integration.celery.conftest import World
from tests.integration.celery.shop import workflows
from wfapp import wiring
from wfapp.client import get_client
from wfapp.dispatch.resending import LostMessages


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def lost_messages(clock: Clock, waited: timedelta = timedelta(microseconds=1)) -> LostMessages:
    return LostMessages(
        alias=wiring.get_store().alias,
        store=wiring.get_store(),
        dispatcher=wiring.get_dispatcher(),
        pause=waited,
        clock=clock,
    )


def test_a_lost_message_is_sent_again_once(world: World, name: str) -> None:
    queue = wiring.get_queue_names().workflows(f"unserved-{name}")
    get_client().start_workflow(workflows.Hello.run, "x", id=name, task_queue=f"unserved-{name}")
    redis = Redis.from_url(world.services.redis_url)
    assert redis.llen(queue) == 1
    clock = Clock()
    lost = lost_messages(clock)

    lost.look()
    assert redis.llen(queue) == 1, "what stands in the queue is not lost"

    redis.delete(queue)
    clock.seconds += 1
    lost.look()
    assert redis.llen(queue) == 1
    redis.delete(queue)
    lost.look()
    assert redis.llen(queue) == 0, "not again at the same time"


def test_what_has_not_waited_long_is_not_looked_for(world: World, name: str) -> None:
    queue = wiring.get_queue_names().workflows(f"unserved-{name}")
    get_client().start_workflow(workflows.Hello.run, "x", id=name, task_queue=f"unserved-{name}")
    redis = Redis.from_url(world.services.redis_url)
    redis.delete(queue)
    lost_messages(Clock(), timedelta(hours=1)).look()
    assert redis.llen(queue) == 0
