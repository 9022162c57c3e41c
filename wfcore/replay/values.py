"""Values of workflow code to payloads and back, in the converter's context of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wfcore.converter import (
    ActivitySerializationContext,
    CompositePayloadConverter,
    DataConverter,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from wfcore.exceptions import FailureError
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import Payload, Payloads, UserMetadata

_NOTHING = Payloads()


class Values:
    """A data converter without its codec, for one context."""

    __slots__ = ("_converter", "_failures", "_wants_context", "payloads")

    def __init__(self, converter: DataConverter) -> None:
        self._converter = converter
        self._failures = converter.failure_converter
        #: The payload converter itself.
        self.payloads = converter.payload_converter
        self._wants_context = _wants(self.payloads) or _wants(self._failures)

    def for_workflow(self, namespace: str, workflow_id: str) -> Values:
        """The same for a workflow: this run's own, a child's or another one's."""
        if not self._wants_context:
            return self
        context = WorkflowSerializationContext(namespace, workflow_id)
        return Values(self._converter.with_context(context))

    def for_activity(self, context: Callable[[], ActivitySerializationContext]) -> Values:
        """The same for an activity that this run calls."""
        return Values(self._converter.with_context(context())) if self._wants_context else self

    def encode(self, values: Sequence[Any]) -> Payloads | None:
        """Arguments; nothing for no values."""
        return Payloads(payloads=tuple(self.payloads.to_payloads(values))) if values else None

    def encode_one(self, value: Any) -> Payloads:
        """A result.

        Raises:
            ValueError: the converter made more than one payload of it, or none.
        """
        payloads = self.payloads.to_payloads([value])
        if len(payloads) != 1:
            raise ValueError(f"Expected 1 result payload, got {len(payloads)}")
        return Payloads(payloads=(payloads[0],))

    def encode_map(self, values: Mapping[str, Any]) -> dict[str, Payload]:
        """A memo."""
        return {name: self.payloads.to_payload(value) for name, value in values.items()}

    def decode(
        self,
        payloads: Payloads | None,
        types: Sequence[Any] | None,
        is_failure: Callable[[BaseException], bool],
    ) -> list[Any]:
        """Arguments; types count only if there is one for each payload.

        Raises:
            RuntimeError: a payload can't be decoded; this fails the workflow task.
            FailureError: it can't, and that is to fail the workflow.
        """
        found = (payloads or _NOTHING).payloads
        if not found:
            return []
        if types is not None and len(types) != len(found):
            types = None
        try:
            return self.payloads.from_payloads(found, types)
        except FailureError:
            raise
        except Exception as error:
            if is_failure(error):
                raise
            raise RuntimeError("Failed decoding arguments") from error

    def to_failure(self, error: BaseException) -> Failure:
        """The failure that records an exception."""
        return self._failures.to_failure(error, self.payloads)

    def from_failure(self, failure: Failure | None) -> BaseException:
        """The exception that a failure records."""
        return self._failures.from_failure(failure or Failure(), self.payloads)

    def metadata(self, summary: str | None, details: str | None = None) -> UserMetadata | None:
        """What people read about a command."""
        if not summary and not details:
            return None
        return UserMetadata(
            summary=self.payloads.to_payload(summary) if summary else None,
            details=self.payloads.to_payload(details) if details else None,
        )


def _wants(part: object) -> bool:
    """Whether a converter, or a part of it, takes a context; asked once, not for each call."""
    if not isinstance(part, WithSerializationContext):
        return False
    if type(part).with_context is not CompositePayloadConverter.with_context:
        return True
    return isinstance(part, CompositePayloadConverter) and any(
        map(_wants, part.converters.values())
    )
