"""The feature table, row by row.

`rows.py` is the table. `test_<group>_*.py` hold one test for each row, named and marked by it, with
the fixture `world`: an engine with a client, workers and a clock that the test moves, in memory
and on the project's own parts (`worlds.py`). Histories are read as exported (`histories.py`).

    @feature("A1")
    def test_A01_start_creates_the_run(world: World) -> None:
        run = world.start(Greets.run, "Ada")
        assert run.kinds() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]

- `world.serve([Greets], [charge])` is a worker; without one, tasks are taken by hand (`world.poll`,
  `world.answer`, `world.take_activity`).
- `world.settle()` runs what can run now, `world.advance(seconds)` lets time pass, and a call that
  waits (`run.result()`) does both by itself.
- `@pytest.mark.parametrize("limits", [{"signals": 5}])` sets limits; `world.mode` names the ports.
"""

import pytest

#: `@feature("A1")`: the test shows this row of the table.
feature = pytest.mark.feature
