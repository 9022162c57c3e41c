"""What a client raises beside the service's own errors."""

from wfcore.exceptions import TemporalError
from wfcore.protocol.enums import WorkflowExecutionStatus


class WorkflowFailureError(TemporalError):
    """The workflow did not complete; `cause` is the failure, cancellation, termination or timeout.

    Raised by `WorkflowHandle.result`.
    """

    def __init__(self, *, cause: BaseException) -> None:
        super().__init__("Workflow execution failed")
        self.__cause__ = cause

    @property
    def cause(self) -> BaseException:
        """Why it did not complete."""
        if self.__cause__ is None:
            raise RuntimeError("the cause of a workflow failure was taken away")
        return self.__cause__


class WorkflowContinuedAsNewError(TemporalError):
    """The run continued as new, and `result` was not to follow it."""

    def __init__(self, new_execution_run_id: str) -> None:
        super().__init__("Workflow continued as new")
        self.new_execution_run_id = new_execution_run_id


class WorkflowQueryRejectedError(TemporalError):
    """The query was refused because of the workflow's status."""

    def __init__(self, status: WorkflowExecutionStatus | None) -> None:
        super().__init__(f"Query rejected, status: {status}")
        self.status = status


class WorkflowQueryFailedError(TemporalError):
    """The query's handler failed, or there is none."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class AsyncActivityCancelledError(TemporalError):
    """The activity that was to be kept alive from outside should be cancelled."""

    def __init__(self, details: object = None) -> None:
        super().__init__("Activity cancelled")
        self.details = details


class WorkflowUpdateFailedError(TemporalError):
    """The update was refused or failed, or the workflow ended before it; `cause` tells why.

    Raised by `WorkflowUpdateHandle.result` and `WorkflowHandle.execute_update`.
    """

    def __init__(self, cause: BaseException) -> None:
        super().__init__("Workflow update failed")
        self.__cause__ = cause

    @property
    def cause(self) -> BaseException:
        """Why it failed."""
        if self.__cause__ is None:
            raise RuntimeError("the cause of an update's failure was taken away")
        return self.__cause__


class RPCTimeoutOrCancelledError(TemporalError):
    """A call ended by its time limit or by its caller."""


class WorkflowUpdateRPCTimeoutOrCancelledError(RPCTimeoutOrCancelledError):
    """A call that waited for an update ended so; the update itself goes on."""

    def __init__(self) -> None:
        super().__init__("Timeout or cancellation waiting for update")
