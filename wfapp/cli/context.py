"""What verbs work with: options, service, converter and printer."""

import getpass
import socket
from dataclasses import dataclass
from typing import Any

from wfapp import wiring
from wfapp.cli.answers import Printer, VerbError
from wfapp.conf import config
from wfapp.operating import Operator
from wfapp.presentation.values import Reader, encode
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.payloads import Payloads
from wfcore.service.workflow_service import WorkflowService


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """One call of one verb."""

    options: dict[str, Any]
    printer: Printer

    @property
    def namespace(self) -> str:
        return str(self.options["namespace"] or config().namespace)

    @property
    def service(self) -> WorkflowService:
        return wiring.get_service()

    @property
    def reader(self) -> Reader:
        """Who has a shell on this machine sees everything."""
        return Reader(wiring.get_converter())

    @property
    def workflow_id(self) -> str:
        """The workflow id, which may stand first or behind its flag.

        Raises:
            VerbError: it is missing, or given twice with two values.
        """
        first, flag = self.options.get("id") or "", self.options.get("workflow_id") or ""
        if first and flag and first != flag:
            raise VerbError(f"two workflow ids are given: {first} and {flag}")
        if not first and not flag:
            raise VerbError("a workflow id is missing")
        return str(first or flag)

    @property
    def execution(self) -> WorkflowExecution:
        """The run that is named."""
        return WorkflowExecution(
            workflow_id=self.workflow_id, run_id=self.options.get("run_id") or ""
        )

    @property
    def operator(self) -> Operator:
        """Who runs the command, and why."""
        return Operator(actor=account(), reason=self.options.get("reason") or "")

    def payloads(self, values: list[Any]) -> Payloads | None:
        """Payloads of arguments, None without any."""
        return encode(wiring.get_converter(), values) if values else None


def account() -> str:
    """The account that runs this command, as the audit log names it."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # no entry for this number, as in some containers
        name = "unknown"
    return f"{name}@{socket.gethostname()}"
