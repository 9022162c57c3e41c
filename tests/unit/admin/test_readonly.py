"""Every table of the admin is read from the engine's database."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from wfapp import conf
from wfapp.models import AuditEntry, Namespace, WorkerProcess, WorkflowExecution


@pytest.mark.parametrize("model", [AuditEntry, Namespace, WorkerProcess, WorkflowExecution])
def test_a_table_is_read_where_the_engine_writes(model: Any, settings: Any) -> None:
    settings.WORKFLOWS = {"DATABASE": "elsewhere"}
    conf.config.cache_clear()
    request = RequestFactory().get("/")
    assert admin.site.get_model_admin(model).get_queryset(request).db == "elsewhere"
