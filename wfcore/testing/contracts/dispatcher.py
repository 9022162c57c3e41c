"""Who waits is told, and questions find their answers."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from wfcore.history.effects import NotifyHistory, NotifyUpdate
from wfcore.protocol.enums import QueryResultType
from wfcore.protocol.rpc.info import WorkflowQuery, WorkflowQueryResult
from wfcore.service.ports import (
    Dispatcher,
    QueryTask,
    RunKey,
)
from wfcore.testing.clocks import SequentialIds
from wfcore.testing.contracts.base import (
    PATIENCE,
    SHORT,
    PortContract,
)
from wfcore.testing.port_builders import NAMESPACE, payloads


class DispatcherPorts(PortContract):
    """What a dispatcher must keep: who waits is told, and questions find their answers."""

    @pytest.fixture
    def dispatcher(self) -> Iterator[Dispatcher]:
        """The dispatcher under test; a host overrides this."""
        raise NotImplementedError

    @pytest.fixture
    def key(self) -> RunKey:
        ids = SequentialIds(threading.get_ident())
        return RunKey(
            namespace=NAMESPACE,
            workflow_id=f"contract-{ids.request_id()}",
            run_id=ids.request_id(),
        )

    @staticmethod
    def _question(key: RunKey, query_id: str) -> QueryTask:
        return QueryTask(
            query_id=query_id,
            namespace=key.namespace,
            workflow_id=key.workflow_id,
            run_id=key.run_id,
            workflow_type="contract",
            task_queue=key.workflow_id,
            query=WorkflowQuery(query_type="q", query_args=payloads("argument")),
        )

    def test_a_reader_is_told_of_growth(self, dispatcher: Dispatcher, key: RunKey) -> None:
        waiting = self.apart(lambda: dispatcher.wait_history(key, 5, timedelta(seconds=PATIENCE)))
        effect = NotifyHistory(
            namespace=key.namespace,
            workflow_id=key.workflow_id,
            run_id=key.run_id,
            next_event_id=6,
        )
        dispatcher.dispatch((effect,))
        waiting.result(PATIENCE / 2)

    def test_who_waits_for_an_update_is_told(self, dispatcher: Dispatcher, key: RunKey) -> None:
        patience = timedelta(seconds=PATIENCE)
        waiting = self.apart(lambda: dispatcher.wait_update(key, "u", 4, patience))
        effect = NotifyUpdate(
            namespace=key.namespace,
            workflow_id=key.workflow_id,
            run_id=key.run_id,
            update_id="u",
            version=5,
        )
        dispatcher.dispatch((effect,))
        waiting.result(PATIENCE / 2)

    def test_a_wait_ends_in_time(self, dispatcher: Dispatcher, key: RunKey) -> None:
        self.apart(lambda: dispatcher.wait_history(key, 5, SHORT)).result(PATIENCE)
        self.apart(lambda: dispatcher.wait_update(key, "u", 5, SHORT)).result(PATIENCE)
        self.apart(lambda: dispatcher.wait_tasks(key.namespace, key.workflow_id, SHORT)).result(
            PATIENCE
        )

    def test_an_answer_reaches_who_asked(self, dispatcher: Dispatcher, key: RunKey) -> None:
        query_id = f"query-{key.run_id}"
        answer = WorkflowQueryResult(
            result_type=QueryResultType.ANSWERED, answer=payloads("answer")
        )
        dispatcher.dispatch_query(self._question(key, query_id))
        assert dispatcher.wait_answer(query_id, SHORT) is None
        assert dispatcher.answer_query(query_id, answer)
        assert dispatcher.wait_answer(query_id, timedelta(seconds=PATIENCE)) == answer
        dispatcher.forget_query(query_id)

    def test_a_question_waits_for_a_poller_or_goes_out(
        self, dispatcher: Dispatcher, key: RunKey
    ) -> None:
        question = self._question(key, f"query-{key.run_id}")
        dispatcher.dispatch_query(question)
        assert dispatcher.take_query(key.namespace, key.workflow_id) in (question, None)
        assert dispatcher.take_query(key.namespace, key.workflow_id) is None
        dispatcher.forget_query(question.query_id)

    def test_a_worker_that_asks_is_seen(self, dispatcher: Dispatcher, key: RunKey) -> None:
        dispatcher.note_worker(key.namespace, key.workflow_id)
        assert dispatcher.worker_seen(key.namespace, key.workflow_id)

    def test_announcing_never_raises(self, dispatcher: Dispatcher) -> None:
        dispatcher.dispatch(())
