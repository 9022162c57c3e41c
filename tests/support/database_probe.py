"""A client and a worker at once over the ORM store; the app's own wiring gets the same service."""

from collections.abc import Iterator

import pytest

from tests.support.probing import Probe
from wfapp import wiring
from wfapp.store import DjangoStore
from wfcore.service.ids import RandomIds
from wfcore.service.workflow_service import WorkflowService


class DatabaseProbe(Probe):
    """`Probe` with its runs in the database; time stands still all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.store = DjangoStore("default", clock=self.clock.now)
        self.service = WorkflowService(self.store, self.dispatcher, RandomIds())


@pytest.fixture
def probe(transactional_db: None) -> Iterator[DatabaseProbe]:
    """Runs made by hand, as views, admin and command line of this process see them."""
    wiring.reset()
    made = DatabaseProbe()
    for name in ("service", "view_service"):
        wiring.part(name, lambda: made.service)
    wiring.part("store", lambda: made.store)
    yield made
    wiring.reset()
