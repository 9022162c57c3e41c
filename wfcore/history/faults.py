"""What is wrong with a worker's answer, on its way to the place that decides what follows."""

from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause


class BadCommandError(Exception):
    """A command can't be carried out: the workflow task fails and nothing of the answer counts.

    `terminates`: the run ends too, since repeating the command would not make it smaller.
    """

    def __init__(self, cause: Cause, text: str = "", *, terminates: bool = False) -> None:
        self.cause = cause
        self.terminates = terminates
        name = cause_name(cause)
        super().__init__(f"{name}: {text}" if text else name)


def cause_name(cause: Cause) -> str:
    """``BadStartTimerAttributes``: the name of a cause as it stands in messages."""
    return "".join(part.capitalize() for part in cause.name.split("_"))
