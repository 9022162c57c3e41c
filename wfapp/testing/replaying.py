"""Does today's code still agree with the histories that it must go on with?"""

import itertools
from collections.abc import Iterator

from asgiref.sync import async_to_sync

from wfapp import wiring
from wfapp.client import get_client
from wfcore.client import WorkflowHistory
from wfcore.worker import Replayer, WorkflowReplayResult


def replay_stored(query: str = "", *, limit: int | None = 100) -> list[WorkflowReplayResult]:
    """Replay the newest runs that a list query finds against the code of this process.

    Each result tells its history and, where the code disagrees with it, the failure. The database
    is only read.

    Example:
        ``assert not [r for r in replay_stored("ExecutionStatus = 'Running'") if r.replay_failure]``
    """
    registry = wiring.get_registry()
    definitions = [registry.workflow(name) for name in registry.workflow_names]
    replayer = Replayer(
        workflows=[definition.cls for definition in definitions if definition is not None],
        namespace=get_client().namespace,
        data_converter=wiring.get_converter(),
    )
    replay = async_to_sync(replayer.replay_workflow)
    return [replay(history, raise_on_replay_failure=False) for history in _histories(query, limit)]


def _histories(query: str, limit: int | None) -> Iterator[WorkflowHistory]:
    client = get_client()
    for run in itertools.islice(client.list_workflows(query), limit):
        yield client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
