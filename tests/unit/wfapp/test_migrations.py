"""No setting of a host makes migrations appear, and the hand-written SQL names what they make."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.utils import translation

from wfapp.store import statements


def changes() -> dict[str, list[object]]:
    loader = MigrationLoader(None)
    # As makemigrations does, which writes texts down in their own language.
    with translation.override(None):
        detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
        found: dict[str, list[object]] = detector.changes(graph=loader.graph)
    return {label: made for label, made in found.items() if label == "wfapp"}


@pytest.mark.parametrize(
    "host",
    [
        {},
        {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField"},
        {"DEFAULT_TABLESPACE": "fast", "DEFAULT_INDEX_TABLESPACE": "fast"},
        {"LANGUAGE_CODE": "de", "USE_TZ": False, "TIME_ZONE": "Europe/Berlin"},
        {"WORKFLOWS": {"NAMESPACE": "shop"}},
    ],
)
def test_no_setting_of_a_host_makes_migrations(settings: object, host: dict[str, object]) -> None:
    for name, value in host.items():
        setattr(settings, name, value)
    assert changes() == {}


def test_statements_name_the_tables_of_the_models() -> None:
    made = {model._meta.db_table for model in apps.get_app_config("wfapp").get_models()}
    named = {
        value
        for name, value in vars(statements).items()
        if name.isupper() and isinstance(value, str) and re.fullmatch(r"wfapp_\w+", value)
    }
    assert named < made
    assert len(named) == 11


def test_user_data_is_bytes_and_no_table_refers_to_another() -> None:
    kinds = {
        field.get_internal_type()
        for model in apps.get_app_config("wfapp").get_models()
        for field in model._meta.local_fields
    }
    assert not kinds & {"JSONField", "ForeignKey", "OneToOneField", "DateTimeField"}
    assert "BinaryField" in kinds


def test_every_table_and_index_stands_in_the_reference() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "tables.md").read_text()
    missing = []
    for model in apps.get_app_config("wfapp").get_models():
        columns = [field.column for field in model._meta.local_concrete_fields if field.column]
        indexes = [index.name for index in (*model._meta.indexes, *model._meta.constraints)]
        missing += [
            name for name in (model._meta.db_table, *columns, *indexes) if f"`{name}`" not in text
        ]
    assert not missing
