"""What polls for workflow tasks and for activities have in common."""

from datetime import timedelta

from wfcore.exceptions import FailedPreconditionError
from wfcore.protocol.common import TaskQueue
from wfcore.service import validation
from wfcore.service.host import Host

#: Shortest time for which a poll may be ready to wait.
SHORTEST_POLL = timedelta(seconds=2)
#: How many waiting tasks a poll tries to claim before it answers that there are none.
POLL_TRIES = 10


def check_poll(
    host: Host,
    namespace: str,
    queue: TaskQueue | None,
    identity: str,
    timeout: timedelta | None,
) -> str:
    """The name of the queue that a worker's poll asks for.

    Raises:
        NamespaceNotFoundError: the namespace isn't registered.
        InvalidArgumentError: queue or identity are missing or malformed.
        FailedPreconditionError: the poll would not wait long enough to get anything.
    """
    validation.namespace(host, namespace)
    name = validation.task_queue(queue, host.limits).name
    if len(identity.encode()) > host.limits.id_bytes:
        raise validation.fail("Identity length exceeds limit.")
    if timeout is not None and timeout < SHORTEST_POLL:
        raise FailedPreconditionError("Context timeout is too short.")
    return name
