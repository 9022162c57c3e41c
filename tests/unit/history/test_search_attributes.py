"""Search attributes: names, types, sizes, and what a run has after some were changed."""

import pytest

from tests.support.histories import NAMESPACE, a_run, continue_as_new, upsert_search_attributes
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.search_attributes import merged, name_fault, size_fault, typed
from wfcore.protocol.enums import IndexedValueType as Type
from wfcore.protocol.payloads import Payload, SearchAttributes


def value(data: bytes, kind: str = "") -> Payload:
    metadata = {"encoding": b"json/plain"} | ({"type": kind.encode()} if kind else {})
    return Payload(metadata=metadata, data=data)


def of(**fields: Payload) -> SearchAttributes:
    return SearchAttributes(indexed_fields=fields)


NULL = Payload(metadata={"encoding": b"binary/null"})


def test_changes_merge_by_key_and_an_empty_value_takes_one_away() -> None:
    run = a_run(search_attributes=of(Colour=value(b'"red"'), Size=value(b"3")))
    run.work(
        upsert_search_attributes(Colour=value(b'"blue"'), Size=NULL),
        upsert_search_attributes(Extra=value(b"true")),
    )
    assert run.search_attributes == of(Colour=value(b'"blue"'), Extra=value(b"true"))
    assert run.kinds(5) == ["UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"] * 2
    assert run.event(5).search_attributes == of(Colour=value(b'"blue"'), Size=NULL)


def test_a_fault_takes_all_of_an_answer_back() -> None:
    run = a_run(search_attributes=of(Size=value(b"3")))
    run.take_task()
    with pytest.raises(InvalidArgumentError):
        run.answer(
            upsert_search_attributes(Size=value(b"4")), upsert_search_attributes(RunId=value(b"1"))
        )
    assert run.search_attributes == of(Size=value(b"3"))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Type.INT, [b"3", b"[3]"], [b'"x"', b"1.5", b"true", b"[1,2]"]),
        (Type.DOUBLE, [b"3", b"1.5"], [b'"x"', b"true"]),
        (Type.BOOL, [b"true"], [b"1", b'"true"']),
        (Type.KEYWORD, [b'"x"', b'["x"]'], [b"3", b'["x","y"]']),
        (Type.TEXT, [b'"x y"'], [b"3"]),
        (Type.KEYWORD_LIST, [b'["x","y"]', b'"x"', b"[]"], [b"3", b"[3]"]),
        (Type.DATETIME, [b'"2030-01-02T03:04:05Z"'], [b'"tomorrow"', b'"2030-01-02"', b"3"]),
    ],
)
def test_values_are_held_against_their_types(
    kind: Type, good: list[bytes], bad: list[bytes]
) -> None:
    limits = Limits(search_attributes={"A": kind})
    for data in good:
        assert name_fault(of(A=value(data)), NAMESPACE, limits) == ""
    for data in bad:
        assert name_fault(of(A=value(data)), NAMESPACE, limits).startswith(
            "invalid value for search attribute A of type "
        )
    assert name_fault(of(A=NULL), NAMESPACE, limits) == ""


def test_faults_are_worded_as_the_servers() -> None:
    limits = Limits(search_attributes={"ProbeKeyword": Type.KEYWORD})
    assert name_fault(of(ProbeKeyword=value(b'["x","y"]')), NAMESPACE, limits) == (
        "invalid value for search attribute ProbeKeyword of type Keyword: [x y]"
    )
    assert name_fault(of(NoSuch=value(b"1")), NAMESPACE, limits) == (
        "Namespace default has no mapping defined for search attribute NoSuch"
    )
    broken = Payload(metadata={"encoding": b"json/plain"}, data=b"{")
    assert name_fault(of(ProbeKeyword=broken), NAMESPACE, limits) == (
        "invalid value for search attribute ProbeKeyword of type Keyword: {"
    )


def test_without_a_registry_a_value_says_its_type_itself() -> None:
    assert name_fault(of(Any=value(b"3")), NAMESPACE, DEFAULT_LIMITS) == ""
    assert name_fault(of(Any=value(b"3", "Int")), NAMESPACE, DEFAULT_LIMITS) == ""
    assert name_fault(of(Any=value(b'"x"', "Int")), NAMESPACE, DEFAULT_LIMITS) != ""
    assert name_fault(of(Any=value(b"3", "Integer")), NAMESPACE, DEFAULT_LIMITS) == (
        "invalid search attribute type: Integer"
    )


def test_names_that_begin_like_the_engines_own_are_refused() -> None:
    assert name_fault(of(TemporalMine=value(b"3")), NAMESPACE, DEFAULT_LIMITS) != ""
    patches = of(TemporalChangeVersion=value(b'["p"]', "KeywordList"))
    assert name_fault(patches, NAMESPACE, DEFAULT_LIMITS) == ""


def test_numbers_and_sizes_are_limited() -> None:
    limits = Limits(search_attribute_keys=2, search_attribute_bytes=10, search_attributes_bytes=15)
    three = of(A=value(b"1"), B=value(b"1"), C=value(b"1"))
    assert "exceeds limit 2" in name_fault(three, NAMESPACE, limits)
    assert size_fault(of(A=value(b"1" * 11)), limits) == (
        "search attribute A value size 11 exceeds size limit 10"
    )
    assert "total size 18" in size_fault(of(A=value(b"1" * 8), B=value(b"1" * 8)), limits)
    assert size_fault(of(A=value(b"1" * 10)), limits) == ""


def test_what_a_run_has_in_all_is_limited_too() -> None:
    run = a_run(Limits(search_attributes_bytes=1000))
    run.work(upsert_search_attributes(A=value(b"1" * 600)), force_create_new_workflow_task=True)
    run.take_task()
    with pytest.raises(InvalidArgumentError, match="BadSearchAttributes: total size"):
        run.answer(upsert_search_attributes(B=value(b"1" * 600)))
    assert run.kinds()[-1] == "TERMINATED"


def test_a_run_that_continues_must_not_take_bad_ones_along() -> None:
    run = a_run()
    run.take_task()
    with pytest.raises(InvalidArgumentError, match="RunId attribute can't be set"):
        run.answer(continue_as_new(search_attributes=of(RunId=value(b'"x"'))))
    run.take_task()
    assert run.state.volatile.task is not None
    assert run.state.volatile.task.attempt == 2


def test_nor_too_big_ones() -> None:
    run = a_run(Limits(search_attribute_bytes=10))
    run.take_task()
    with pytest.raises(InvalidArgumentError, match="value size 11 exceeds"):
        run.answer(continue_as_new(search_attributes=of(A=value(b"1" * 11))))
    assert run.kinds()[-1] == "TERMINATED"


def test_the_type_is_written_to_a_payload_that_does_not_name_it() -> None:
    limits = Limits(search_attributes={"A": Type.KEYWORD_LIST})
    assert typed(of(A=value(b'"x"'), B=value(b"1")), limits) == of(
        A=value(b'"x"', "KeywordList"), B=value(b"1")
    )
    assert typed(of(A=value(b'"x"', "Keyword")), limits) == of(A=value(b'"x"', "Keyword"))


def test_merging_into_nothing_keeps_what_is_set() -> None:
    assert merged(None, of(A=value(b"1"), B=NULL)) == of(A=value(b"1"))
