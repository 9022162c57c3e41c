"""All that one transition does to one run, collected before anything is stored."""

from dataclasses import dataclass, field
from datetime import datetime

from wfcore.history.effects import Effect, Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.events import (
    ActivityTaskScheduled,
    HistoryEvent,
    WorkflowExecutionStarted,
)
from wfcore.protocol.payloads import Memo, SearchAttributes


@dataclass(kw_only=True, slots=True)
class Change:
    """One run's part of a transaction.

    `activities` are the pending activities that the transition may look at: a store loads those
    that the request names. Rows to write are in `activity_rows` (None: the row goes away).
    """

    state: MutableState
    now: datetime
    #: the run is made by this change
    is_new: bool = False
    activities: dict[int, PendingActivity] = field(default_factory=dict)
    #: updates that `transition.needs` names, by id
    updates: dict[str, Update] = field(default_factory=dict)
    #: all that waits, in order of arrival
    inbox: list[InboxItem] = field(default_factory=list)
    #: attributes of event 1, memo and search attributes as they are now, when `transition.needs`
    #: asks for them
    start_event: WorkflowExecutionStarted | None = None
    #: attributes of SCHEDULED events of activities by their ids, likewise
    scheduled_events: dict[int, ActivityTaskScheduled] = field(default_factory=dict)
    current_memo: Memo | None = None
    current_search_attributes: SearchAttributes | None = None

    events: list[HistoryEvent] = field(default_factory=list)
    #: attributes of `events` as they are stored (msgspec JSON), one each, since they were counted
    encoded: list[bytes] = field(default_factory=list)
    activity_rows: dict[int, PendingActivity | None] = field(default_factory=dict)
    #: updates as they are after this change (None: the row goes away)
    update_rows: dict[str, Update | None] = field(default_factory=dict)
    #: ids of the inbox rows that became events or were dropped
    inbox_taken: list[int] = field(default_factory=list)
    #: memo and search attributes as they are after this change; None: as before
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    #: value of the search attribute TemporalReportedProblems after this change; empty: it goes
    #: away; None: as before
    reported_problems: tuple[str, ...] | None = None
    effects: list[Effect] = field(default_factory=list)
    journal: list[Journal] = field(default_factory=list)
    #: earliest deadline after this change, for `wakeup_at`; None: nothing can come due
    next_deadline: datetime | None = None
    #: this change closed the run
    closed: bool = False
    #: a run that follows in the same transaction (continue-as-new, retry, cron)
    next_run: "Change | None" = None
