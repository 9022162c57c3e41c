"""Small parts that decide alone: sizes, retry policies, limits, deadlines, rebuilding."""

from datetime import timedelta

import pytest

from tests.support.histories import (
    NOON,
    a_failure,
    a_run,
    blob,
    complete_run,
    schedule_activity,
    seconds,
    start_timer,
    text,
)
from wfcore.history.deadlines import next_deadline
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.rebuild import rebuild
from wfcore.history.retries import backoff, check_policy, fill_policy, is_retryable
from wfcore.history.sizes import (
    failure_bytes,
    marker_bytes,
    memo_bytes,
    payload_bytes,
    payloads_bytes,
    shorten_failure,
)
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import TimeoutType
from wfcore.protocol.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    ServerFailureInfo,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from wfcore.protocol.payloads import Memo, Payload, Payloads

# ---- sizes; the numbers are those of protobuf's encoding


def test_payloads_are_measured_to_the_byte() -> None:
    value = Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')
    assert payload_bytes(value) == (2 + (2 + 8) + (2 + 10)) + (2 + 7)
    assert payloads_bytes(Payloads(payloads=(value, value))) == 2 * (2 + payload_bytes(value))
    assert payload_bytes(Payload()) == 0
    assert payloads_bytes(None) == memo_bytes(None) == failure_bytes(None) == 0


@pytest.mark.parametrize(("length", "prefix"), [(127, 2), (128, 3), (16_383, 3), (16_384, 4)])
def test_lengths_take_more_bytes_as_they_grow(length: int, prefix: int) -> None:
    assert payload_bytes(Payload(data=b"x" * length)) == prefix + length


def test_names_count_by_their_bytes() -> None:
    value = Payload(data=b"1")
    assert memo_bytes(Memo(fields={"é": value})) == 2 + (2 + 2) + (2 + 3)
    assert marker_bytes({"é": Payloads(payloads=(value,))}) == 2 + 2 + 3


def test_failures_are_measured_with_their_causes() -> None:
    plain = Failure(message="abc", source="s", stack_trace="line")
    assert failure_bytes(plain) == 5 + 3 + 6
    assert failure_bytes(Failure(cause=plain)) > failure_bytes(plain)
    detailed = a_failure(details=blob(1000))
    assert failure_bytes(detailed) > 1000
    for info in (
        Failure(timeout_failure_info=TimeoutFailureInfo(last_heartbeat_details=blob(1000))),
        Failure(canceled_failure_info=CanceledFailureInfo(details=blob(1000))),
        Failure(encoded_attributes=Payload(data=b"x" * 1000)),
    ):
        assert 1000 < failure_bytes(info) < 1100


def test_a_small_failure_stays_as_it_is() -> None:
    failure = a_failure()
    assert shorten_failure(failure, 4096, non_retryable=False) is failure
    assert shorten_failure(None, 10, non_retryable=False) is None


def test_what_is_kept_of_a_big_failure_is_what_says_most() -> None:
    inner = a_failure("Inner", "why")
    big = Failure(
        message="m" * 1000,
        stack_trace="s" * 9000,
        cause=inner,
        application_failure_info=ApplicationFailureInfo(type="Outer", non_retryable=True),
    )
    kept = shorten_failure(big, 4096, non_retryable=False)
    assert kept is not None
    assert kept.cause is not None
    assert kept.cause.message == "m" * 1000
    assert kept.cause.application_failure_info == ApplicationFailureInfo(
        type="Outer", non_retryable=True
    )
    assert kept.cause.stack_trace
    assert set(kept.cause.stack_trace) == {"s"}
    assert failure_bytes(kept.cause) <= 4096


def test_causes_are_kept_while_there_is_room() -> None:
    big = Failure(
        message="outer",
        server_failure_info=ServerFailureInfo(non_retryable=True),
        cause=Failure(message="i" * 9000),
    )
    kept = shorten_failure(big, 1000, non_retryable=True)
    assert kept is not None
    assert kept.cause is not None
    assert kept.cause.server_failure_info == ServerFailureInfo(non_retryable=True)
    assert kept.cause.cause is not None
    assert 900 < len(kept.cause.cause.message) < 1000


def test_a_text_is_never_cut_within_a_character() -> None:
    kept = shorten_failure(Failure(message="é" * 5000), 1001, non_retryable=False)
    assert kept is not None
    assert kept.cause is not None
    assert set(kept.cause.message) == {"é"}


# ---- retry policies


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (None, ""),
        (RetryPolicy(), ""),
        (RetryPolicy(maximum_attempts=1, backoff_coefficient=0.5), ""),
        (RetryPolicy(backoff_coefficient=1), ""),
        (
            RetryPolicy(initial_interval=-seconds(1)),
            "invalid InitialInterval set on retry policy: negative duration",
        ),
        (
            RetryPolicy(maximum_interval=-seconds(1)),
            "invalid MaximumInterval set on retry policy: negative duration",
        ),
        (
            RetryPolicy(backoff_coefficient=-1),
            "BackoffCoefficient cannot be less than 1 on retry policy.",
        ),
        (
            RetryPolicy(non_retryable_error_types=("TemporalTimeout:Foo",)),
            "Invalid timeout type value: Foo.",
        ),
        (RetryPolicy(non_retryable_error_types=("TemporalTimeout:Heartbeat", "Any")), ""),
    ],
)
def test_policies_are_checked_in_the_servers_words(policy: RetryPolicy | None, fault: str) -> None:
    assert check_policy(policy) == fault


def test_what_a_policy_leaves_out_is_filled_in() -> None:
    assert fill_policy(None) == RetryPolicy(
        initial_interval=seconds(1), backoff_coefficient=2.0, maximum_interval=seconds(100)
    )
    given = RetryPolicy(initial_interval=seconds(5), maximum_attempts=4)
    assert fill_policy(given).maximum_interval == seconds(500)
    assert fill_policy(fill_policy(given)) == fill_policy(given)


def test_a_wait_beyond_all_numbers_is_the_longest() -> None:
    policy = fill_policy(RetryPolicy(backoff_coefficient=10))
    assert backoff(policy, 5_000) == seconds(100)
    assert backoff(RetryPolicy(backoff_coefficient=2.0), 9) == seconds(100)


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (None, True),
        (Failure(message="of no kind"), True),
        (Failure(terminated_failure_info=TerminatedFailureInfo()), False),
        (Failure(canceled_failure_info=CanceledFailureInfo()), False),
        (Failure(server_failure_info=ServerFailureInfo()), True),
        (Failure(server_failure_info=ServerFailureInfo(non_retryable=True)), False),
        *(
            (Failure(timeout_failure_info=TimeoutFailureInfo(timeout_type=kind)), again)
            for kind, again in (
                (TimeoutType.START_TO_CLOSE, True),
                (TimeoutType.HEARTBEAT, False),
                (TimeoutType.SCHEDULE_TO_START, False),
                (TimeoutType.SCHEDULE_TO_CLOSE, False),
            )
        ),
    ],
)
def test_the_kind_of_a_failure_decides(failure: Failure | None, again: bool) -> None:
    policy = RetryPolicy(non_retryable_error_types=("TemporalTimeout:Heartbeat",))
    assert is_retryable(failure, policy) is again


# ---- limits and deadlines


def test_the_limits_are_temporals() -> None:
    limits = DEFAULT_LIMITS
    assert (limits.history_events, limits.history_events_suggest) == (51_200, 4_096)
    assert (limits.history_bytes, limits.blob_bytes) == (50 * 1024**2, 2 * 1024**2)
    assert (limits.pending_activities, limits.signals, limits.buffered_events) == (
        2_000,
        10_000,
        100,
    )
    assert limits.duration == timedelta(days=36_500)


def test_pauses_between_messages_double_up_to_the_last() -> None:
    limits = Limits(resend_first=seconds(1), resend_last=seconds(5))
    pauses = [limits.resend_after(sent) for sent in (0, 1, 2, 3, 4, 10_000)]
    assert pauses == [seconds(value) for value in (1, 1, 2, 4, 5, 5)]


def test_the_nearest_clock_counts() -> None:
    run = a_run(workflow_run_timeout=seconds(30), workflow_execution_timeout=seconds(300))
    assert next_deadline(run.state) == NOON + seconds(10), "the message may be lost"
    run.work(start_timer("far", 100), start_timer("near", 20))
    assert next_deadline(run.state) == NOON + seconds(20)
    run.tick(20)
    run.work()
    assert next_deadline(run.state) == NOON + seconds(30)


def test_a_run_that_waits_for_nothing_has_no_deadline() -> None:
    run = a_run()
    run.work()
    assert next_deadline(run.state) is None
    run.signal()
    run.work(complete_run())
    assert next_deadline(run.state) is None


# ---- rebuilding


def test_a_history_must_begin_with_its_start_and_have_no_gap() -> None:
    run = a_run()
    run.work(schedule_activity("a", input=text("x")))
    names = {"namespace": "default", "workflow_id": "order-1", "run_id": "run-0"}
    assert rebuild(run.events, **names) == run.state.recorded
    with pytest.raises(ValueError, match="begins with event 1"):
        rebuild([], **names)
    with pytest.raises(ValueError, match="begins with event 1"):
        rebuild(run.events[1:], **names)
    with pytest.raises(ValueError, match="event 4 follows event 2"):
        rebuild([*run.events[:2], *run.events[3:]], **names)
    second = run.events[1]
    first = type(second)(event_id=1, event_time=NOON, attributes=second.attributes)
    with pytest.raises(ValueError, match="WORKFLOW_EXECUTION_STARTED"):
        rebuild([first], **names)
