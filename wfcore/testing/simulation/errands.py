"""A workflow of real code that does a little of everything, as its own random numbers say.

It ends by itself, or soon after it is told to.
"""

import asyncio
from datetime import timedelta

from wfcore import workflow
from wfcore.common import RetryPolicy, SearchAttributeKey
from wfcore.exceptions import ActivityError, ApplicationError

_NOTE = SearchAttributeKey.for_keyword("CustomKeywordField")
#: Runs that a chain may have before it ends.
_CHAIN = 3
_ROUNDS = 5


@workflow.defn(name="Errand")
class Errand:
    """Waits, has activities done, cancels some, takes notes, and goes on as a new run."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._read = 0
        self._is_told_to_end = False

    @workflow.run
    async def run(self, runs: int = 0) -> int:
        chance = workflow.random()
        for _ in range(chance.randint(1, _ROUNDS)):
            if self._is_told_to_end:
                break
            await self._one_thing()
        if not self._is_told_to_end and runs < _CHAIN and chance.random() < 0.2:
            workflow.continue_as_new(args=[runs + 1])
        if chance.random() < 0.1:
            raise ApplicationError("the errand fails")
        return len(self._notes)

    async def _one_thing(self) -> None:
        chance = workflow.random()
        kinds = [
            self._sleep,
            self._chore,
            self._chores,
            self._wait_for_note,
            self._impatient_chore,
            self._take_notes,
        ]
        await chance.choice(kinds)()

    async def _sleep(self) -> None:
        wait = asyncio.ensure_future(asyncio.sleep(workflow.random().choice([0.5, 5, 60])))
        await workflow.wait_condition(lambda: wait.done() or self._is_told_to_end)
        wait.cancel()

    async def _chore(self) -> None:
        try:
            await workflow.execute_activity(
                "chore",
                start_to_close_timeout=timedelta(seconds=20),
                heartbeat_timeout=timedelta(seconds=8),
                retry_policy=RetryPolicy(maximum_attempts=2),
            )
        except ActivityError as error:
            if workflow.patched("tell"):
                workflow.logger.info("a chore failed: %s", error)

    async def _chores(self) -> None:
        await asyncio.gather(self._chore(), self._chore(), asyncio.sleep(2))

    async def _wait_for_note(self) -> None:
        limit = workflow.random().choice([None, timedelta(seconds=10)])
        try:
            await workflow.wait_condition(
                lambda: len(self._notes) > self._read or self._is_told_to_end, timeout=limit
            )
        except TimeoutError:
            return
        self._read = len(self._notes)

    async def _impatient_chore(self) -> None:
        kind = workflow.random().choice(list(workflow.ActivityCancellationType))
        handle = workflow.start_activity(
            "chore",
            schedule_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=5),
            cancellation_type=kind,
        )
        await asyncio.sleep(workflow.random().choice([0, 0.5, 3]))
        handle.cancel()
        try:
            await handle
        except ActivityError:
            return

    async def _take_notes(self) -> None:
        workflow.upsert_memo({"notes": len(self._notes)})
        workflow.upsert_search_attributes([_NOTE.value_set(str(workflow.uuid4()))])

    @workflow.signal
    def note(self, text: str) -> None:
        """Something to remember; `end` ends the errand."""
        self._notes.append(text)
        self._is_told_to_end |= text == "end"

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def ask(self, text: str) -> str:
        """Something to answer, at once or after a while."""
        if workflow.random().random() < 0.5:
            await asyncio.sleep(workflow.random().choice([0.5, 5]))
        self._notes.append(text)
        return f"answer to {text}"

    @ask.validator
    def _check(self, text: str) -> None:
        if text.endswith("3"):
            raise ApplicationError("not threes", type="Negative")

    @workflow.query
    def events(self) -> int:
        """How much history the code has seen."""
        return workflow.info().get_current_history_length()
