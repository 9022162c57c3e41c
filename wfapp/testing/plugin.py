"""For pytest: ``pytest_plugins = ["wfapp.testing.plugin"]`` in the project's conftest."""

from collections.abc import Iterator

import pytest

from wfapp.testing.environment import WorkflowEnvironment, environments


@pytest.fixture
def workflow_environment(db: None) -> Iterator[WorkflowEnvironment]:
    """Workflows without broker, worker or waiting, in the test's own transaction."""
    yield from environments()
