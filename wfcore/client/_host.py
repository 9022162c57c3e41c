"""Where `Client.connect` finds the service: a host that runs in this process registers itself."""

from collections.abc import Callable

from wfcore.exceptions import HostNotRegisteredError
from wfcore.service.workflow_service import WorkflowService

#: Gives the service for a target, such as the alias of a database.
HostConnect = Callable[[str], WorkflowService]

_connect: HostConnect | None = None


def register_host(connect: HostConnect | None) -> HostConnect | None:
    """Let `Client.connect` use this host; gives the one that it replaces."""
    global _connect
    before, _connect = _connect, connect
    return before


def connect_host(target: str) -> WorkflowService:
    """The service that the host gives for a target.

    Raises:
        HostNotRegisteredError: there is no host.
    """
    if _connect is None:
        raise HostNotRegisteredError(target)
    return _connect(target)
