"""For the tests of a project: workflows without broker, worker or waiting.

class OrderTest(WorkflowTestMixin, TestCase):
    def test_an_order_expires(self):
        handle = get_client().start_workflow(Order.run, 17)
        self.assertEqual(handle.result(), "expired")  # three days pass at once
"""

from wfapp.testing.environment import NothingToDoError, WorkflowEnvironment
from wfapp.testing.mixins import WorkflowTestMixin
from wfapp.testing.replaying import replay_stored

__all__ = ["NothingToDoError", "WorkflowEnvironment", "WorkflowTestMixin", "replay_stored"]
