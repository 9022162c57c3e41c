"""Every number that bounds a run, with Temporal's defaults; a host overrides single ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from wfcore.protocol.enums import IndexedValueType

_KB = 1024
_MB = 1024 * _KB
_YEAR = timedelta(days=365)
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of one run; the name in a comment is Temporal's key of dynamic configuration."""

    #: `limit.historyCount.error`, `.warn`, `.suggestContinueAsNew`
    history_events: int = 51_200
    history_events_warn: int = 10_240
    history_events_suggest: int = 4_096
    #: `limit.historySize.error`, `.warn`, `.suggestContinueAsNew`
    history_bytes: int = 50 * _MB
    history_bytes_warn: int = 10 * _MB
    history_bytes_suggest: int = 4 * _MB
    #: `limit.blobSize.error`
    blob_bytes: int = 2 * _MB
    #: `limit.memoSize.error`
    memo_bytes: int = 2 * _MB
    #: `limit.mutableStateActivityFailureSize.error`
    kept_failure_bytes: int = 4 * _KB
    #: `limit.maxIDLength`
    id_bytes: int = 1_000
    #: `limit.numPendingActivities.error`
    pending_activities: int = 2_000
    #: `limit.numPendingChildExecutions.error`, `...Signals.error`, `...CancelRequests.error`
    pending_children: int = 2_000
    pending_signals: int = 2_000
    pending_cancels: int = 2_000
    #: `history.maximumSignalsPerExecution`
    signals: int = 10_000
    #: `history.maxInFlightUpdates`, `history.maxTotalUpdates`, `history.maxInFlightUpdatePayloads`
    updates_in_flight: int = 10
    updates: int = 2_000
    updates_bytes: int = 20 * _MB
    #: events that a speculative workflow task may show a worker and yet leave no trace
    #: (`history.discardSpeculativeWorkflowTaskMaximumEventsCount`)
    speculative_task_events: int = 10
    #: `history.maximumBufferedEventsBatch`, `history.maximumBufferedEventsSizeInBytes`
    buffered_events: int = 100
    buffered_bytes: int = 2 * _MB

    #: `frontend.searchAttributesNumberOfKeysLimit`, `...SizeOfValueLimit`, `...TotalSizeLimit`
    search_attribute_keys: int = 100
    search_attribute_bytes: int = 2 * _KB
    search_attributes_bytes: int = 40 * _KB
    #: types of registered search attributes; None: any name is taken, of the type that it names
    search_attributes: Mapping[str, IndexedValueType] | None = None

    #: longest duration; longer ones are capped
    duration: timedelta = 100 * _YEAR
    #: `history.defaultWorkflowTaskTimeout` and the cap, a constant
    workflow_task_timeout: timedelta = timedelta(seconds=10)
    workflow_task_timeout_cap: timedelta = timedelta(seconds=120)
    #: how long a speculative workflow task waits for a worker; a constant
    speculative_task_wait: timedelta = timedelta(seconds=5)
    #: how long the answer to a refused update is kept for who waits for it, and of how many
    update_answer: timedelta = timedelta(seconds=60)
    update_answers: int = 100
    #: `history.workflowTaskRetryMaxInterval`
    workflow_task_retry_max: timedelta = timedelta(minutes=10)
    #: `history.workflowTaskHeartbeatTimeout`
    workflow_task_heartbeat: timedelta = timedelta(minutes=30)
    #: `system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute`
    reported_problems: int = 5
    #: `history.workflowIdReuseMinimalInterval`
    continue_as_new_interval: timedelta = timedelta(seconds=1)
    #: `system.enableActivityEagerExecution`
    eager_activities: bool = True
    #: `system.enableEagerWorkflowStart`
    eager_starts: bool = True

    #: how much of what a run does to other workflow ids is done by whoever commits it; the rest
    #: waits for the ticker (`history.parentClosePolicyThreshold`)
    deliveries_at_once: int = 10

    #: the wait until a message that led to no claim is sent again, and until something is done
    #: again to another workflow id: first, doubled up to the last
    resend_first: timedelta = timedelta(seconds=10)
    resend_last: timedelta = timedelta(minutes=10)

    def resend_after(self, sent: int) -> timedelta:
        """How long what was sent or begun for the `sent`-th time may remain without an answer."""
        doublings = min(max(sent - 1, 0), _MOST_DOUBLINGS)
        return min(self.resend_first * (1 << doublings), self.resend_last)


DEFAULT_LIMITS = Limits()
