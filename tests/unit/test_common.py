"""Policies, search attributes and call descriptions."""

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wfcore.common import (
    UNSET,
    AutoUpgradeVersioningOverride,
    MetricMeter,
    OneTimeVersioningOverride,
    PinnedVersioningOverride,
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    VersioningOverride,
    WorkerDeploymentVersion,
    arg_or_args,
    type_hints_from_func,
)
from wfcore.converter import (
    priority_from_protocol,
    priority_to_protocol,
    retry_policy_to_protocol,
    versioning_override_to_protocol,
)
from wfcore.protocol import common as protocol

COLOUR = SearchAttributeKey.for_keyword("Colour")
SIZE = SearchAttributeKey.for_int("Size")


# --- retry policy ---


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"initial_interval": timedelta(-1)}, "Initial interval cannot be negative"),
        ({"backoff_coefficient": 0.5}, "Backoff coefficient cannot be less than 1"),
        ({"maximum_interval": timedelta(-1)}, "Maximum interval cannot be negative"),
        (
            {"maximum_interval": timedelta(milliseconds=5)},
            "Maximum interval cannot be less than initial interval",
        ),
        ({"maximum_attempts": -1}, "Maximum attempts cannot be negative"),
    ],
)
def test_a_bad_retry_policy_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RetryPolicy(**fields).validate()


def test_with_one_attempt_nothing_else_is_checked() -> None:
    RetryPolicy(maximum_attempts=1, backoff_coefficient=0).validate()


def test_a_retry_policy_is_stored_with_its_maximum_interval() -> None:
    stored = retry_policy_to_protocol(
        RetryPolicy(maximum_attempts=3, non_retryable_error_types=["Fraud"])
    )
    assert stored == protocol.RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2.0,
        maximum_interval=timedelta(seconds=100),
        maximum_attempts=3,
        non_retryable_error_types=("Fraud",),
    )
    assert RetryPolicy.from_proto(stored) == RetryPolicy(
        maximum_interval=timedelta(seconds=100),
        maximum_attempts=3,
        non_retryable_error_types=["Fraud"],
    )


def test_a_bad_retry_policy_is_not_stored() -> None:
    with pytest.raises(ValueError, match="Backoff"):
        retry_policy_to_protocol(RetryPolicy(backoff_coefficient=0.1))


# --- priority, versions ---


def test_a_priority_survives_storing() -> None:
    priority = Priority(priority_key=2, fairness_key="shop", fairness_weight=1.5)
    assert priority_from_protocol(priority_to_protocol(priority)) == priority
    assert priority_from_protocol(None) is Priority.default
    assert priority_to_protocol(Priority.default) == protocol.Priority()


def test_a_priority_key_is_a_positive_integer() -> None:
    with pytest.raises(ValueError, match="positive"):
        Priority(priority_key=0)
    with pytest.raises(TypeError, match="integer"):
        Priority(priority_key="high")  # type: ignore[arg-type]


def test_a_versioning_override_is_stored_by_its_kind() -> None:
    version = WorkerDeploymentVersion("shop", "1")
    pinned = versioning_override_to_protocol(PinnedVersioningOverride(version))
    assert pinned.pinned is not None
    assert pinned.pinned.version is not None
    assert pinned.pinned.version.build_id == "1"
    assert versioning_override_to_protocol(AutoUpgradeVersioningOverride()).auto_upgrade
    once = versioning_override_to_protocol(OneTimeVersioningOverride(version))
    assert once.one_time is not None
    assert once.one_time.target_deployment_version is not None

    class Unknown(VersioningOverride):
        pass

    with pytest.raises(TypeError, match="use PinnedVersioningOverride"):
        versioning_override_to_protocol(Unknown())


def test_a_deployment_version_is_read_as_it_is_written() -> None:
    version = WorkerDeploymentVersion("shop", "1.2.3")
    assert WorkerDeploymentVersion.from_canonical_string("shop.1.2.3") == version
    assert version.to_canonical_string() == "shop.1.2.3"
    with pytest.raises(ValueError, match=r"<deployment_name>\.<build_id>"):
        WorkerDeploymentVersion.from_canonical_string("shop")


# --- search attributes ---


def test_attributes_stand_in_the_order_of_their_names() -> None:
    attributes = TypedSearchAttributes(
        [SearchAttributePair(SIZE, 5), SearchAttributePair(COLOUR, "red")]
    )
    assert [pair.key.name for pair in attributes] == ["Colour", "Size"]
    assert len(attributes) == 2


def test_a_key_finds_its_value_by_name_and_type() -> None:
    attributes = TypedSearchAttributes([SearchAttributePair(COLOUR, "red")])
    assert attributes[COLOUR] == "red"
    assert COLOUR in attributes
    assert SearchAttributeKey.for_text("Colour") not in attributes
    assert attributes.get(SIZE) is None
    assert attributes.get(SIZE, 7) == 7
    with pytest.raises(KeyError, match="Size"):
        attributes[SIZE]


def test_a_name_occurs_once() -> None:
    with pytest.raises(ValueError, match="Duplicate search attribute entries found for key Colour"):
        TypedSearchAttributes(
            [
                SearchAttributePair(COLOUR, "red"),
                SearchAttributePair(SearchAttributeKey.for_text("Colour"), "blue"),
            ]
        )


def test_an_update_replaces_by_name_and_leaves_the_original() -> None:
    attributes = TypedSearchAttributes([SearchAttributePair(COLOUR, "red")])
    changed = attributes.updated(SearchAttributePair(COLOUR, "blue"), SearchAttributePair(SIZE, 1))
    assert (changed[COLOUR], changed[SIZE]) == ("blue", 1)
    assert attributes[COLOUR] == "red"


def test_updates_carry_the_key() -> None:
    assert COLOUR.value_set("red").value == "red"
    assert COLOUR.value_unset().value is None
    assert COLOUR.value_unset().key is COLOUR


@pytest.mark.parametrize("kind", ["Text", "Keyword", "Int", "Double", "Bool", "Datetime"])
def test_a_key_is_made_from_the_type_in_the_metadata(kind: str) -> None:
    key = SearchAttributeKey.from_metadata_type("A", kind)
    assert key is not None
    assert key.indexed_value_type.metadata_type == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a"], "KEYWORD"),
        (["a", "b"], "KEYWORD_LIST"),
        ([1], "INT"),
        ([True], "BOOL"),
        ([1.5], "DOUBLE"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "DATETIME"),
    ],
)
def test_a_key_is_guessed_from_untyped_values(values: Any, kind: str) -> None:
    key = SearchAttributeKey.guess_from_untyped_values("A", values)
    assert key is not None
    assert key.indexed_value_type.name == kind


def test_nothing_is_guessed_from_nothing() -> None:
    assert SearchAttributeKey.guess_from_untyped_values("A", []) is None
    odd: Any = [object()]
    assert SearchAttributeKey.guess_from_untyped_values("A", odd) is None


def test_a_list_of_keywords_has_a_class_to_check_against() -> None:
    assert SearchAttributeKey.for_keyword_list("A").origin_value_type is Sequence
    assert SearchAttributeKey.from_metadata_type("A", "Nonsense") is None


# --- calls ---


def test_arguments_are_one_or_a_list() -> None:
    assert list(arg_or_args(1, [])) == [1]
    assert list(arg_or_args(None, [])) == [None]
    assert list(arg_or_args(UNSET, [1, 2])) == [1, 2]
    with pytest.raises(ValueError, match="Cannot have arg and args"):
        arg_or_args(1, [2])


def _plain(x: int, y: str = "z") -> bool:
    return bool(x and y)


def _without_hints(x, y):  # type: ignore[no-untyped-def]
    return x, y


def _keyword_only(x: int, *, y: int = 1) -> bool:
    return bool(x and y)


def _variadic(x: int, *rest: int) -> None:
    del x, rest


class _Called:
    def __call__(self, x: int) -> str:
        return str(x)

    def method(self, x: "int | None") -> str:
        return str(x)


@pytest.mark.parametrize(
    ("call", "hints"),
    [
        (_plain, ([int, str], bool)),
        (_without_hints, ([None, None], None)),
        (_keyword_only, (None, bool)),
        (_variadic, (None, type(None))),
        (_Called(), ([int], str)),
        (_Called().method, ([int | None], str)),
        (_Called.method, ([int | None], str)),
        (_Called, (None, None)),
        (functools.partial(_plain, 1), (None, None)),
    ],
)
def test_hints_are_read_off_a_callable(call: Callable[..., Any], hints: Any) -> None:
    assert type_hints_from_func(call) == hints


def test_a_hint_that_can_not_be_resolved_is_told() -> None:
    def broken(x: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
        del x

    with pytest.raises(NameError, match="Missing"):
        type_hints_from_func(broken)


# --- metrics ---


def test_the_meter_without_a_host_takes_everything() -> None:
    meter = MetricMeter.noop.with_additional_attributes({"queue": "q"})
    counter = meter.create_counter("orders", "Orders taken", "1")
    assert (counter.name, counter.description, counter.unit) == ("orders", "Orders taken", "1")
    counter.with_additional_attributes({"kind": "new"}).add(1)
    meter.create_histogram("size").record(1)
    meter.create_histogram_float("size").record(1.5)
    meter.create_histogram_timedelta("time").record(timedelta(seconds=1))
    meter.create_gauge("open").set(1)
    meter.create_gauge_float("load").set(0.5)
