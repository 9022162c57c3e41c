"""Conversion for threads: at once where no codec is set, else by waiting on the shared loop."""

from collections.abc import Sequence
from typing import Any

from wfcore.activity import Definition
from wfcore.common import RawValue
from wfcore.converter import DataConverter
from wfcore.exceptions import ApplicationError
from wfcore.protocol import wellformed
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import Payloads
from wfcore.worker._async_loop import run_blocking


def encode(converter: DataConverter, values: Sequence[Any]) -> Payloads:
    """Payloads of the values.

    Raises:
        Exception: a value can't be converted, or the codec failed.
    """
    if converter.payload_codec is None:
        return converter.payload_converter.to_payloads_wrapper(values)
    return run_blocking(converter.encode_wrapper(values))


def encode_payloads(converter: DataConverter, payloads: Payloads) -> Payloads:
    """Payloads that were converted before, with the codec applied."""
    if converter.payload_codec is None:
        return payloads
    return run_blocking(converter.payload_codec.encode_wrapper(payloads))


def decode(
    converter: DataConverter, payloads: Payloads | None, type_hints: Sequence[Any] | None = None
) -> list[Any]:
    """Values of the payloads.

    Raises:
        Exception: a payload can't be converted, or the codec failed.
    """
    if converter.payload_codec is None:
        return converter.payload_converter.from_payloads_wrapper(payloads, type_hints)
    return run_blocking(converter.decode_wrapper(payloads, type_hints))


def decode_args(
    converter: DataConverter, definition: Definition, payloads: Payloads | None
) -> list[Any]:
    """The arguments for an activity's function.

    Raises:
        ApplicationError: they can't be converted.
    """
    count = len(payloads.payloads) if payloads else 0
    hints: Sequence[Any] | None = definition.arg_types
    if definition.dynamic:
        hints = [RawValue] * count
    elif hints is not None and len(hints) != count:
        hints = None  # as many values as there are; the call itself tells what is missing
    try:
        args = decode(converter, payloads, hints)
    except Exception as err:
        raise ApplicationError("Failed decoding arguments") from err
    return [args] if definition.dynamic else args


def encode_failure(converter: DataConverter, error: BaseException) -> Failure:
    """The failure that records an exception.

    Raises:
        ValueError: the failure converter made one that can't be stored.
        Exception: the failure converter, a payload converter or the codec failed.
    """
    if converter.payload_codec is None:
        failure = converter.failure_converter.to_failure(error, converter.payload_converter)
    else:
        failure = run_blocking(converter.encode_failure(error))
    if wrong := wellformed.fault(failure):
        raise ValueError(wrong)
    return failure
