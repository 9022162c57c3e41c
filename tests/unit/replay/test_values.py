"""Converters that want a context get that of the workflow, or of the activity that is called."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.support.live_run import LiveRun
from wfcore import workflow
from wfcore.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultPayloadConverter,
    SerializationContext,
    WorkflowSerializationContext,
)
from wfcore.protocol.payloads import Payload

seen: list[SerializationContext | None] = []


class Watching(DefaultPayloadConverter):
    """Notes the context of everything that it encodes."""

    def __init__(self, context: SerializationContext | None = None) -> None:
        super().__init__()
        self.context = context

    def with_context(self, context: SerializationContext) -> "Watching":
        return Watching(context)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        seen.append(self.context)
        return super().to_payloads(values)


@workflow.defn
class Calls:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(
            "a", "x", start_to_close_timeout=timedelta(seconds=1), result_type=str
        )


def test_each_call_has_its_context() -> None:
    seen.clear()
    run = LiveRun(
        Calls, data_converter=DataConverter(payload_converter_class=Watching), checks_replay=False
    )
    run.work()
    run.complete_activity("1", "done")
    run.work()
    activity, returned = seen
    assert activity == ActivitySerializationContext(
        namespace="test",
        activity_id=None,
        activity_type="a",
        activity_task_queue="queue",
        workflow_id="order-1",
        workflow_type="Calls",
        is_local=False,
    )
    assert returned == WorkflowSerializationContext("test", "order-1")
