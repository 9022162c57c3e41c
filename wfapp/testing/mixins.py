"""For unittest: an environment for each test of a TestCase."""

from typing import Any

from wfapp.testing.environment import WorkflowEnvironment


class WorkflowTestMixin:
    """Put before Django's TestCase or TransactionTestCase; `self.workflows` is the environment."""

    workflows: WorkflowEnvironment

    def setUp(self) -> None:
        """Enter the environment."""
        super().setUp()  # type: ignore[misc]  # of the class beside it
        case: Any = self
        self.workflows = case.enterContext(WorkflowEnvironment())
