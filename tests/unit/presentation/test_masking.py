from wfapp.presentation.masking import HIDDEN, hide_payloads
from wfcore.protocol import events as ev
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import (
    Header,
    Memo,
    Payload,
    Payloads,
    SearchAttributes,
    UserMetadata,
)
from wfcore.protocol.rpc.info import WorkflowExecutionConfig, WorkflowExecutionInfo
from wfcore.protocol.rpc.workflows import DescribeWorkflowExecutionResponse

SECRET = Payload(metadata={"encoding": b"json/plain"}, data=b'"secret"')
SECRETS = Payloads(payloads=(SECRET, SECRET))


def test_payloads_are_hidden_wherever_they_stand() -> None:
    started = ev.WorkflowExecutionStarted(
        input=SECRETS,
        memo=Memo(fields={"a": SECRET}),
        header=Header(fields={"h": SECRET}),
        workflow_id="w",
        continued_failure=Failure(
            message="told", application_failure_info=ApplicationFailureInfo(details=SECRETS)
        ),
    )
    hidden = hide_payloads(started)
    assert "secret" not in str(hidden)
    assert hidden.input == Payloads(payloads=(HIDDEN, HIDDEN))
    assert hidden.memo == Memo(fields={"a": HIDDEN})
    assert hidden.continued_failure is not None
    assert (hidden.workflow_id, hidden.continued_failure.message) == ("w", "told")


def test_search_attributes_stay() -> None:
    answer = DescribeWorkflowExecutionResponse(
        execution_config=WorkflowExecutionConfig(user_metadata=UserMetadata(summary=SECRET)),
        workflow_execution_info=WorkflowExecutionInfo(
            search_attributes=SearchAttributes(indexed_fields={"City": SECRET})
        ),
    )
    hidden = hide_payloads(answer)
    assert hidden.workflow_execution_info == answer.workflow_execution_info
    assert hidden.execution_config is not None
    assert hidden.execution_config.user_metadata == UserMetadata(summary=HIDDEN)
