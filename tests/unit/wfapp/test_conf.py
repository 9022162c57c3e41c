from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from wfapp.conf import Config, config, keys, problems
from wfcore.history.limits import Limits
from wfcore.protocol.enums import IndexedValueType
from wfcore.service.host import Arrivals

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def test_without_the_setting_all_is_default(settings: Any) -> None:
    del settings.WORKFLOWS
    assert config() == Config()


def test_keys_and_groups_replace_defaults(settings: Any) -> None:
    settings.WORKFLOWS = {
        "DATABASE": "other",
        "LEASE": timedelta(seconds=3),
        "ARRIVALS": "locked",
        "TICKER": {"THREAD": False},
        "LIMITS": {"SIGNALS": 5, "RESEND_FIRST": timedelta(seconds=1)},
    }
    found = config()
    assert (found.database, found.lease) == ("other", timedelta(seconds=3))
    assert found.arrivals is Arrivals.LOCKED
    assert (found.ticker.thread, found.ticker.batch) == (False, 100)
    assert found.limits == Limits(signals=5, resend_first=timedelta(seconds=1))


def test_search_attributes_have_types(settings: Any) -> None:
    settings.WORKFLOWS = {
        "LIMITS": {"SEARCH_ATTRIBUTES": {"City": "Keyword", "Tags": "KeywordList"}}
    }
    assert config().limits.search_attributes == {
        "City": IndexedValueType.KEYWORD,
        "Tags": IndexedValueType.KEYWORD_LIST,
    }


def test_a_change_of_the_setting_is_seen(settings: Any) -> None:
    settings.WORKFLOWS = {"NAMESPACE": "one"}
    assert config().namespace == "one"
    settings.WORKFLOWS = {"NAMESPACE": "two"}
    assert config().namespace == "two"


def test_the_object_is_made_once(settings: Any) -> None:
    settings.WORKFLOWS = {}
    assert config() is config()


def test_an_unknown_key_names_its_neighbour() -> None:
    (problem,) = problems({"DATABASES": "default"})
    assert problem.unknown
    assert problem.key == "DATABASES"
    assert problem.hint == "Did you mean 'DATABASE'?"


def test_an_unknown_key_of_a_group_names_its_place() -> None:
    (problem,) = problems({"LIMITS": {"SIGNAL": 1}})
    assert problem.text == "WORKFLOWS['LIMITS'] has the unknown key 'SIGNAL'."
    assert problem.hint == "Did you mean 'SIGNALS'?"


def test_a_key_like_no_other_lists_all() -> None:
    (problem,) = problems({"???": 1})
    assert "DATABASE" in problem.hint


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"LEASE": 10}, "a positive datetime.timedelta"),
        ({"LEASE": timedelta()}, "a positive datetime.timedelta"),
        ({"DATABASE": None}, "a string"),
        ({"WORKFLOW_QUEUES": 1}, "True or False"),
        ({"TICKER": {"BATCH": 0}}, "a whole number above 0"),
        ({"TICKER": {"BATCH": True}}, "a whole number above 0"),
        ({"ARRIVALS": "hopeful"}, "one of 'optimistic', 'locked'"),
        ({"LIMITS": {"SEARCH_ATTRIBUTES": {"City": "Town"}}}, "None, or a dictionary of names"),
        ({"LIMITS": {"SEARCH_ATTRIBUTES": ["City"]}}, "None, or a dictionary of names"),
    ],
)
def test_a_wrong_value_says_what_it_must_be(value: dict[str, Any], wanted: str) -> None:
    (problem,) = problems(value)
    assert not problem.unknown
    assert problem.hint.startswith(f"It must be {wanted}")


@pytest.mark.parametrize("value", ["default", None, {"LIMITS": 3}])
def test_groups_and_the_setting_are_dictionaries(value: object) -> None:
    (problem,) = problems(value)
    assert "It must be a dictionary" in problem.hint


def test_using_a_wrong_setting_says_which_key(settings: Any) -> None:
    settings.WORKFLOWS = {"LEESE": 1}
    with pytest.raises(ImproperlyConfigured, match=r"LEESE.*Did you mean 'LEASE'"):
        config()


def test_every_key_stands_in_the_reference() -> None:
    text = REFERENCE.read_text()
    missing = [key for key in keys() if f"`{key}`" not in text]
    assert not missing
