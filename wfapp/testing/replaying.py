"""Does today's code still agree with the histories that it must go on with?"""

from asgiref.sync import async_to_sync

from wfapp import wiring
from wfapp.conf import config
from wfcore.client import Client, InlineCalls, WorkflowHistory, run_inline
from wfcore.worker import Replayer, WorkflowReplayResult


def replay_stored(
    query: str = "", *, limit: int | None = 100, namespace: str = ""
) -> list[WorkflowReplayResult]:
    """Replay the newest runs that a list query finds against the code of this process.

    Each result tells its history and, where the code disagrees with it, the failure. The database
    is only read.

    Example:
        ``assert not [r for r in replay_stored("ExecutionStatus = 'Running'") if r.replay_failure]``
    """
    registry = wiring.get_registry()
    definitions = [registry.workflow(name) for name in registry.workflow_names]
    client = Client(
        wiring.get_service(),
        namespace=namespace or config().namespace,
        data_converter=wiring.get_converter(),
        calls=InlineCalls(),
    )
    replayer = Replayer(
        workflows=[definition.cls for definition in definitions if definition is not None],
        namespace=client.namespace,
        data_converter=client.data_converter,
    )

    replay = async_to_sync(replayer.replay_workflow)
    return [
        replay(history, raise_on_replay_failure=False)
        for history in run_inline(_histories(client, query, limit))
    ]


async def _histories(client: Client, query: str, limit: int | None) -> list[WorkflowHistory]:
    return [
        await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        async for run in client.list_workflows(query or None, limit=limit)
    ]
