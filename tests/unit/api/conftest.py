"""The API over ports in memory: no database, no worker, no login."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import resolve
from rest_framework.test import force_authenticate

from wfapp import operating
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.memory_ports import (
    MemoryDispatcher,
    MemoryStore,
    SequentialIds,
    SimulatedClock,
)

EVERYTHING = frozenset({"wfapp.view_workflowexecution", "wfapp.view_payloads", "wfapp.operate"})


@dataclass
class Person:
    """As much of a user as the API asks for."""

    permissions: frozenset[str] = EVERYTHING
    is_authenticated: bool = True
    is_active: bool = True

    def has_perms(self, names: tuple[str, ...]) -> bool:
        return set(names) <= self.permissions

    def has_perm(self, name: str) -> bool:
        return name in self.permissions

    def get_username(self) -> str:
        return "ann"


@dataclass
class Api:
    """Sends requests to the views as a server would, and reads the answers."""

    person: Person | None = field(default_factory=Person)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        text: str | bytes | None = None,
        content_type: str = "application/json",
        **extra: Any,
    ) -> HttpResponse:
        data = text if text is not None else (json.dumps(body) if body is not None else "")
        if isinstance(data, str):
            data = data.encode("utf-8", errors="surrogatepass")
        request = RequestFactory().generic(method, path, data, content_type=content_type, **extra)
        if self.person is not None:
            force_authenticate(request, self.person)
        request.urlconf = "wfapp.api.urls"
        match = resolve(request.path_info, request.urlconf)
        answer: Any = match.func(request, **match.kwargs)
        if hasattr(answer, "render"):
            answer.render()
        return answer

    def get(self, path: str, **options: Any) -> Any:
        return self._told(self.call("GET", path, **options))

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self._told(self.call("POST", path, body, **options))

    @staticmethod
    def _told(answer: HttpResponse) -> tuple[int, Any]:
        return answer.status_code, json.loads(answer.content)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> WorkflowService:
    clock = SimulatedClock()
    made = WorkflowService(MemoryStore(clock), MemoryDispatcher(clock), SequentialIds())
    monkeypatch.setattr(operating, "view_service", lambda: made)
    return made


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str, str]]:
    """What was recorded of people: action, workflow id, actor, reason."""
    entries: list[tuple[str, str, str, str]] = []

    @contextmanager
    def recorded(
        service: Any, action: str, target: Any, operator: Any, _facts: Any
    ) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(service=service)
        entries.append((action, target.workflow_id, operator.actor, operator.reason))

    monkeypatch.setattr(operating, "_recorded", recorded)
    return entries


@pytest.fixture
def api(service: WorkflowService, audit: list[Any]) -> Api:
    return Api()


@pytest.fixture
def started(api: Api) -> Callable[..., str]:
    """Starts a run that nobody works on, and gives its run id."""

    def start(workflow_id: str = "order-1", **fields: Any) -> str:
        body = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}, **fields}
        status, answer = api.post(f"/api/v1/namespaces/default/workflows/{workflow_id}", body)
        assert status == 200, answer
        run_id: str = answer["runId"]
        return run_id

    return start
