"""Every clock of a run. `next_deadline` is never later than the first of them, so that a sweep at
that time finds all that is due. Activities have a `due_at` of their own.
"""

from datetime import datetime

from wfcore.history.state import MutableState


def next_deadline(state: MutableState) -> datetime | None:
    """The earliest time at which something of the run comes due; None when nothing can."""
    raise NotImplementedError
