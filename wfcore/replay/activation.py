"""Events of a history to workflow tasks: what each one learnt, and what it asked for.

Only a task that completed, or the one that is started now, counts. What a failed or timed-out task
was told is told again by the next one, together with what arrived since.
"""

from collections.abc import Iterator, Sequence

from wfcore.exceptions import MalformedHistoryError
from wfcore.protocol import events
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message

#: Events that a worker's commands become; they follow the completion of the task at once.
COMMAND_EVENTS: frozenset[type[Message]] = frozenset(
    {
        events.ActivityTaskScheduled,
        events.ActivityTaskCancelRequested,
        events.TimerStarted,
        events.TimerCanceled,
        events.MarkerRecorded,
        events.StartChildWorkflowExecutionInitiated,
        events.SignalExternalWorkflowExecutionInitiated,
        events.RequestCancelExternalWorkflowExecutionInitiated,
        events.UpsertWorkflowSearchAttributes,
        events.WorkflowPropertiesModified,
        events.NexusOperationScheduled,
        events.NexusOperationCancelRequested,
        events.WorkflowExecutionUpdateAccepted,
        events.WorkflowExecutionUpdateCompleted,
        events.WorkflowExecutionCompleted,
        events.WorkflowExecutionFailed,
        events.WorkflowExecutionCanceled,
        events.WorkflowExecutionContinuedAsNew,
    }
)
#: What follows the start of a task that came to nothing.
_NOT_COMPLETED: frozenset[type[Message]] = frozenset(
    {
        events.WorkflowTaskFailed,
        events.WorkflowTaskTimedOut,
        events.WorkflowExecutionTimedOut,
        events.WorkflowExecutionTerminated,
    }
)


class Recorded:
    """What the history holds of a task's answer: its completion and the commands' events.

    `next_event` is what follows them; None where the history ends, so that some may be missing.
    """

    __slots__ = ("commands", "completed", "is_whole", "next_event")

    def __init__(
        self,
        completed: HistoryEvent,
        commands: Sequence[HistoryEvent],
        next_event: HistoryEvent | None,
    ) -> None:
        self.completed = completed
        self.commands = commands
        self.next_event = next_event
        self.is_whole = next_event is not None


class Turn:
    """One workflow task: what happened before it, and its answer if that is in the history.

    Attributes:
        started: the event by which the task was given to a worker; its time is the code's time.
        facts: what happened since the answer of the task before, in the history's order.
        answer: what the history holds of this task's answer; None if it is to be found out now.
    """

    __slots__ = ("answer", "facts", "started")

    def __init__(
        self, started: HistoryEvent, facts: Sequence[HistoryEvent], answer: Recorded | None
    ) -> None:
        self.started = started
        self.facts = facts
        self.answer = answer


class HistoryCursor:
    """Walks through a history that comes whole or in parts, and remembers where it stands.

    `last_event_id` is the last event that was consumed: the next part may begin anywhere up to the
    one after it. `is_answer_due` tells that the last task given has no answer yet.
    """

    __slots__ = ("is_answer_due", "last_event_id")

    def __init__(self) -> None:
        self.last_event_id = 0
        self.is_answer_due = False

    def walk(
        self, history: Sequence[HistoryEvent], *, with_open_task: bool = True
    ) -> Iterator[Turn | Recorded]:
        """Give each task, and the answer of one given before; consumes what it gives.

        A `Turn` comes with its answer, if that is here, which is then also given as a `Recorded`
        after it. With `with_open_task` false, a started task without an answer stays unread.

        Raises:
            MalformedHistoryError: events are missing or in an impossible order.
        """
        index, size = self._skip_known(history), len(history)
        while index < size:
            if self.is_answer_due:
                answer = self._read_answer(history, index)
                index += 1 + len(answer.commands)
                self.last_event_id += 1 + len(answer.commands)
                self.is_answer_due = False
                yield answer
                continue
            end = _find_task(history, index)
            if end < 0:
                return
            following = _read_following(history, end)
            if following is None and not with_open_task:
                return
            turn = Turn(history[end], history[index:end], following)
            self.last_event_id = turn.started.event_id
            self.is_answer_due = True
            index = end + 1
            yield turn

    def _skip_known(self, history: Sequence[HistoryEvent]) -> int:
        if not history:
            return 0
        index = self.last_event_id - history[0].event_id + 1
        if index < 0:
            raise MalformedHistoryError(
                f"the history begins at event {history[0].event_id}, but events from "
                f"{self.last_event_id + 1} on were expected; load the whole history"
            )
        return index

    def _read_answer(self, history: Sequence[HistoryEvent], index: int) -> Recorded:
        answer = _read_following(history, index - 1)
        if answer is None:
            found = history[index]
            raise MalformedHistoryError(
                f"event {found.event_id} ({found.event_type.name}) follows a workflow task whose "
                "completion was expected: the task was not committed; evict this instance and "
                "load the whole history"
            )
        return answer


def _find_task(history: Sequence[HistoryEvent], index: int) -> int:
    """Where the next task is started that completed or is open; -1 if there is none."""
    size = len(history)
    for position in range(index, size):
        kind = type(history[position].attributes)
        if kind is not events.WorkflowTaskStarted:
            if kind is events.WorkflowTaskCompleted:
                raise _out_of_order(history[position])
            continue
        if position + 1 == size:
            return position
        following = type(history[position + 1].attributes)
        if following is events.WorkflowTaskCompleted:
            return position
        if following not in _NOT_COMPLETED:
            raise _out_of_order(history[position + 1])
    return -1


def _read_following(history: Sequence[HistoryEvent], started: int) -> Recorded | None:
    """The answer that stands behind the event at this place, if one does."""
    first, size = started + 2, len(history)
    if first > size or type(history[started + 1].attributes) is not events.WorkflowTaskCompleted:
        return None
    last = first
    while last < size and type(history[last].attributes) in COMMAND_EVENTS:
        last += 1
    return Recorded(
        history[started + 1], history[first:last], history[last] if last < size else None
    )


def _out_of_order(event: HistoryEvent) -> MalformedHistoryError:
    return MalformedHistoryError(
        f"event {event.event_id} ({event.event_type.name}) can't stand where it does: a workflow "
        "task is scheduled, started, and then completed, failed or timed out, with nothing between"
    )
