"""What a worker does with a message: claim what it names, run it, and leave the rest to others.

A message whose work is done, taken or gone costs one indexed read. While the database is away the
message waits in its slot; its claim is repeated under the same name, so that a claim whose answer
was lost is had again.
"""

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from celery.exceptions import TimeLimitExceeded

from wfapp.dispatch.celery_tasks import is_default_policy
from wfapp.dispatch.connections import (
    thread_connections,
)
from wfapp.dispatch.following import (
    ClaimedActivity,
    ClaimedTask,
    Following,
    OwnSlot,
    chained,
    end_of_code,
    following,
)
from wfapp.dispatch.messages import (
    ActivityHint,
    MessageTooNewError,
    WorkflowTaskHint,
    activity_task_id,
    read_activity,
    read_query,
    read_workflow_task,
)
from wfapp.dispatch.own_service import OwnService
from wfapp.dispatch.transactional import Completion, completing
from wfcore.common import RetryPolicy
from wfcore.converter import DataConverter
from wfcore.exceptions import ApplicationError, NotFoundError, PayloadTooLargeError
from wfcore.history.effects import Effect
from wfcore.history.sizes import payloads_bytes
from wfcore.history.state import PendingActivity
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueResponse,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
)
from wfcore.service import tokens
from wfcore.service.ports import Dispatcher, QueryTask, RunBusyError
from wfcore.service.tokens import ActivityToken
from wfcore.service.workflow_service import WorkflowService
from wfcore.worker import (
    MAX_HEARTBEAT_THROTTLE,
    ActivityTaskRunner,
    Alarms,
    InstanceCache,
    Interceptor,
    LocalActivityRunner,
    Registry,
    WorkflowTaskRunner,
)

logger = logging.getLogger(__name__)

#: More than any process has slots.
_CLAIMS = 1000
#: Runs whose code a process keeps in memory (the default of Temporal's SDK).
LIVE_INSTANCES = 1000
#: Local activities that a process runs at once.
LOCAL_ACTIVITIES = 20


class TaskWorker:
    """Runs the tasks that messages name, in the thread that got the message.

    Args:
        alias: the database that holds the workflows.
        identity, owner: who claims; asked after the fork.
        draining: whether this worker takes nothing more; work is then announced again.
        sends_itself: whether an activity of this type has messages of its own name.
        serves: whether this worker takes workflow tasks of a task queue.
        client: gives async activities of a namespace their client.
        build_id: of this worker's code, recorded with each workflow task.
        alarms: when heartbeats are sent; by default in threads of their own.
        workflow_interceptors: hooks of workflows alone.
        local_activities: so many run at once, in threads of this process.
        eager: of which task queues an activity is run at once, without a message, by the thread
            whose workflow task schedules it; None: of none.
        max_heartbeat_throttle: heartbeats of an activity are sent at least this often.
    """

    def __init__(
        self,
        *,
        service: WorkflowService,
        dispatcher: Dispatcher,
        registry: Registry,
        converter: DataConverter,
        alias: str,
        identity: Callable[[], str],
        owner: Callable[[], str],
        draining: Callable[[], bool],
        sends_itself: Callable[[str], bool],
        serves: Callable[[str], bool],
        client: Callable[[str], Any] | None = None,
        interceptors: Sequence[Interceptor] = (),
        workflow_interceptors: Sequence[Interceptor] = (),
        cache_size: int = LIVE_INSTANCES,
        build_id: str = "",
        local_activities: int = LOCAL_ACTIVITIES,
        eager: Callable[[str], bool] | None = None,
        max_heartbeat_throttle: timedelta = MAX_HEARTBEAT_THROTTLE,
        alarms: Alarms | None = None,
    ) -> None:
        self._service = service
        self._surviving: Any = OwnService(
            service,
            alias=alias,
            owner=owner,
            draining=draining,
            known_event_id=self._known_event_id,
        )
        self._dispatcher = dispatcher
        self._registry = registry
        self._converter = converter
        self._alias = alias
        self._identity = identity
        self._owner = owner
        self._draining = draining
        self._sends_itself = sends_itself
        self._serves = serves
        self._client = client
        self._interceptors = interceptors
        self._workflow_interceptors = (*interceptors, *workflow_interceptors)
        self._build_id = build_id
        self._alarms = alarms
        self._is_eager = eager or (lambda task_queue: False)
        self._eager = OwnSlot(self._own_queue) if eager is not None else None
        self._cache = InstanceCache(cache_size)
        self._local_activities = local_activities
        self._max_heartbeat_throttle = max_heartbeat_throttle
        self._workflows: dict[str, WorkflowTaskRunner] = {}
        self._local: dict[str, LocalActivityRunner] = {}
        self._activities: dict[tuple[str, str], ActivityTaskRunner] = {}

    # --- messages --------------------------------------------------------------------------------

    def workflow_task(self, fields: Mapping[str, Any]) -> None:
        """Run the workflow task that a message names, and those that follow at once."""
        try:
            hint = read_workflow_task(fields)
        except MessageTooNewError as error:
            logger.error("%s", error, extra={"action": "message_too_new"})
            return
        self._go_on(lambda: [hint.effect])

    def run_workflow_task(self, hint: WorkflowTaskHint) -> None:
        """Claim and run a workflow task, and those that follow at once."""
        if self._hand_back(hint.effect):
            return
        runner = self._workflow_runner(hint.namespace)
        try:
            task = self._surviving.claim_workflow_task(
                hint.key,
                identity=self._identity(),
                owner=self._owner(),
                request_id=str(uuid.uuid4()),
                after_event_id=runner.known_event_id(hint.run_id),
            )
        except RunBusyError as error:
            # A transaction of somebody's holds the run; when it ends, a message comes again.
            logger.warning("%s", error, extra={"action": "run_busy", "run_id": hint.run_id})
            return
        if task.task_token:
            runner.run(task)

    def query(self, fields: Mapping[str, Any]) -> None:
        """Answer the question that a message brings."""
        try:
            question = read_query(fields)
        except MessageTooNewError as error:
            logger.error("%s", error, extra={"action": "message_too_new"})
            return
        self.ask(question)

    def ask(self, question: QueryTask) -> None:
        """Let a run's code answer a question."""
        task = self._surviving.claim_query(question)
        if task.task_token:
            self._workflow_runner(question.namespace).run(task)

    def activity(self, fields: Mapping[str, Any]) -> None:
        """Run the attempt that a message names."""
        try:
            hint = read_activity(fields)
        except MessageTooNewError as error:
            logger.error("%s", error, extra={"action": "message_too_new"})
            return
        if self._sends_itself(hint.activity_type):
            # Who sent this didn't know the task; its limits and signals hold for its own messages.
            self._dispatcher.dispatch([hint.effect])
            return
        self._go_on(lambda: self._followed(lambda: self.claim_and_run(hint)))

    def claim_and_run(self, hint: ActivityHint) -> bool:
        """Run an attempt; False when it is done, taken or gone, or was handed back."""
        if self._hand_back(hint.effect):
            return False
        task = self._surviving.claim_activity(
            hint.effect,
            identity=self._identity(),
            owner=self._owner(),
            request_id=str(uuid.uuid4()),
        )
        if not task.task_token:
            return False
        self._run_claimed(ClaimedActivity(task_queue=hint.task_queue, task=task))
        return True

    def fail_timed_out(self, owners: Sequence[str], task_id: str, limit_seconds: float) -> None:
        """Fail the activity of a Celery task that was ended by its hard time limit.

        Its own process can't, and without this the attempt would count as lost and be repeated,
        which no time limit of Celery means.
        """
        for owner in owners:
            for row in self._service.host.store.claims_of(owner, _CLAIMS)[1]:
                if activity_task_id(row.run_id, row.scheduled_event_id) == task_id:
                    self._fail_timed_out(row, limit_seconds)
                    return

    def begin_shutdown(self) -> None:
        """Tell running activities that the worker is stopping."""
        for runner in list(self._activities.values()):
            runner.begin_shutdown()
        for local in list(self._local.values()):
            local.begin_shutdown()

    def forget(self) -> None:
        """Throw out the live instances of all runs, as the end of the process does."""
        self._cache.clear()

    # --- what follows at once --------------------------------------------------------------------

    def _go_on(self, begin: Callable[[], Sequence[Following]]) -> None:
        """Begin, then run what that makes ready, and what that makes ready, within bounds.

        What was claimed is run also when the work before it failed: nobody else would.
        """
        failed: Exception | None = None
        with chained() as chain:
            while True:
                try:
                    for task in begin():
                        self._run_following(task)
                except Exception as error:  # noqa: BLE001 - raised when all that is claimed was run
                    failed = failed or error
                if not chain.activities:
                    break
                claimed = chain.activities.popleft()
                begin = partial(self._followed, partial(self._run_claimed, claimed))
        if failed is not None:
            raise failed

    def _followed(self, run: Callable[[], object]) -> Sequence[Following]:
        """Run an activity; the workflow task that it makes ready, if this worker takes it."""
        with following(self._serves) as tasks:
            run()
        return tasks

    def _run_following(self, task: Following) -> None:
        if isinstance(task, ClaimedTask):
            self._workflow_runner(task.namespace).run(task.task)
        else:
            self.run_workflow_task(WorkflowTaskHint.of(task))

    def _run_claimed(self, claimed: ClaimedActivity) -> None:
        task = claimed.task
        runner = self._activity_runner(task.workflow_namespace, claimed.task_queue)
        with completing(Completion(complete=self._completer(task, runner), alias=self._alias)):
            runner.run(task)

    def _own_queue(self, activity: ScheduleActivityTask) -> str | None:
        """The task queue of an activity that may be run here without a message; else None."""
        name = activity.activity_type.name if activity.activity_type is not None else ""
        task_queue = activity.task_queue.name if activity.task_queue is not None else ""
        if self._draining() or self._sends_itself(name) or not self._is_eager(task_queue):
            return None
        return task_queue if self._registry.activity(name) is not None else None

    def _known_event_id(self, namespace: str, run_id: str) -> int:
        return self._workflow_runner(namespace).known_event_id(run_id)

    # --- the parts -------------------------------------------------------------------------------

    def _hand_back(self, effect: Effect) -> bool:
        if self._draining():
            self._dispatcher.dispatch([effect])
            return True
        return False

    def _fail_timed_out(self, row: PendingActivity, limit_seconds: float) -> None:
        token = ActivityToken(
            namespace=row.namespace,
            workflow_id=row.workflow_id,
            run_id=row.run_id,
            scheduled_event_id=row.scheduled_event_id,
            attempt=row.attempt,
        )
        failure = Failure(
            message=f"the task's time limit of {limit_seconds:g} s was exceeded",
            source="Python",
            application_failure_info=ApplicationFailureInfo(
                type=TimeLimitExceeded.__name__,
                non_retryable=is_default_policy(RetryPolicy.from_proto(row.retry_policy)),
            ),
        )
        with contextlib.suppress(NotFoundError):  # it ended by itself meanwhile
            self._service.respond_activity_task_failed(
                RespondActivityTaskFailedRequest(
                    task_token=tokens.encode(token),
                    failure=failure,
                    identity=self._identity(),
                    namespace=row.namespace,
                )
            )

    def _completer(
        self, task: PollActivityTaskQueueResponse, runner: ActivityTaskRunner
    ) -> Callable[[Any], None]:
        limit = self._service.host.limits.blob_bytes

        def complete(value: Any) -> None:
            result = runner.encode_result(task, value)
            if (size := payloads_bytes(result)) > limit:
                # The service would record a failure, and what was written would stand beside it.
                error = PayloadTooLargeError(
                    "the result of the activity", size_bytes=size, limit_bytes=limit
                )
                raise ApplicationError(
                    error.message, type=type(error).__name__, non_retryable=True
                ) from error
            end_of_code()
            self._service.respond_activity_task_completed(
                RespondActivityTaskCompletedRequest(
                    task_token=task.task_token,
                    result=result,
                    identity=self._identity(),
                    namespace=task.workflow_namespace,
                )
            )

        return complete

    def _workflow_runner(self, namespace: str) -> WorkflowTaskRunner:
        if namespace not in self._workflows:
            runner = WorkflowTaskRunner(
                self._surviving,
                self._registry,
                self._converter,
                self._identity(),
                self._cache,
                namespace=namespace,
                interceptors=self._workflow_interceptors,
                build_id=self._build_id,
                eager=self._eager,
                local_activities=self._local_runner(namespace),
            )
            self._workflows.setdefault(namespace, runner)  # another thread may have come first
        return self._workflows[namespace]

    def _local_runner(self, namespace: str) -> LocalActivityRunner:
        if namespace not in self._local:
            self._local[namespace] = LocalActivityRunner(
                self._registry,
                self._converter,
                self._client(namespace) if self._client else None,
                self._interceptors,
                namespace=namespace,
                max_concurrent=self._local_activities,
                in_thread=thread_connections,
            )
        return self._local[namespace]

    def _activity_runner(self, namespace: str, task_queue: str) -> ActivityTaskRunner:
        key = (namespace, task_queue)
        if key not in self._activities:
            runner = ActivityTaskRunner(
                self._surviving,
                self._registry,
                self._converter,
                self._identity(),
                self._client(namespace) if self._client else None,
                self._interceptors,
                namespace=namespace,
                task_queue=task_queue,
                max_heartbeat_throttle_interval=self._max_heartbeat_throttle,
                alarms=self._alarms,
            )
            self._activities.setdefault(key, runner)  # another thread may have come first
        return self._activities[key]
