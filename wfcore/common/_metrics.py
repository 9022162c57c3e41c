"""A meter that user code can always call; without a host's meter nothing is recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar, Self, TypeAlias

MetricAttributes: TypeAlias = Mapping[str, str | int | float | bool]


class MetricCommon(ABC):
    """What all instruments have."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The metric's name."""

    @property
    @abstractmethod
    def description(self) -> str | None:
        """What it counts."""

    @property
    @abstractmethod
    def unit(self) -> str | None:
        """In which unit."""

    @abstractmethod
    def with_additional_attributes(self, additional_attributes: MetricAttributes) -> Self:
        """The same instrument, whose values carry these attributes too."""


class MetricCounter(MetricCommon):
    """Counts upwards."""

    @abstractmethod
    def add(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Add to the counter; the value must not be negative."""


class MetricHistogram(MetricCommon):
    """Distribution of whole numbers."""

    @abstractmethod
    def record(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Record one value; it must not be negative."""


class MetricHistogramFloat(MetricCommon):
    """Distribution of numbers."""

    @abstractmethod
    def record(self, value: float, additional_attributes: MetricAttributes | None = None) -> None:
        """Record one value; it must not be negative."""


class MetricHistogramTimedelta(MetricCommon):
    """Distribution of durations."""

    @abstractmethod
    def record(
        self, value: timedelta, additional_attributes: MetricAttributes | None = None
    ) -> None:
        """Record one duration; it must not be negative."""


class MetricGauge(MetricCommon):
    """A whole number that goes up and down."""

    @abstractmethod
    def set(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Set the gauge; the value must not be negative."""


class MetricGaugeFloat(MetricCommon):
    """A number that goes up and down."""

    @abstractmethod
    def set(self, value: float, additional_attributes: MetricAttributes | None = None) -> None:
        """Set the gauge; the value must not be negative."""


class MetricMeter(ABC):
    """Makes instruments."""

    noop: ClassVar[MetricMeter]

    @abstractmethod
    def create_counter(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricCounter:
        """A counter."""

    @abstractmethod
    def create_histogram(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogram:
        """A histogram of whole numbers."""

    @abstractmethod
    def create_histogram_float(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogramFloat:
        """A histogram of numbers."""

    @abstractmethod
    def create_histogram_timedelta(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogramTimedelta:
        """A histogram of durations."""

    @abstractmethod
    def create_gauge(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricGauge:
        """A gauge of whole numbers."""

    @abstractmethod
    def create_gauge_float(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricGaugeFloat:
        """A gauge of numbers."""

    @abstractmethod
    def with_additional_attributes(self, additional_attributes: MetricAttributes) -> MetricMeter:
        """A meter whose instruments carry these attributes too."""


class _NoopMetric(MetricCommon):
    def __init__(self, name: str, description: str | None, unit: str | None) -> None:
        self._name = name
        self._description = description
        self._unit = unit

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str | None:
        return self._description

    @property
    def unit(self) -> str | None:
        return self._unit

    def with_additional_attributes(self, additional_attributes: MetricAttributes) -> Self:
        return self


class _NoopCounter(_NoopMetric, MetricCounter):
    def add(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Record nothing."""


class _NoopHistogram(_NoopMetric, MetricHistogram):
    def record(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Record nothing."""


class _NoopHistogramFloat(_NoopMetric, MetricHistogramFloat):
    def record(self, value: float, additional_attributes: MetricAttributes | None = None) -> None:
        """Record nothing."""


class _NoopHistogramTimedelta(_NoopMetric, MetricHistogramTimedelta):
    def record(
        self, value: timedelta, additional_attributes: MetricAttributes | None = None
    ) -> None:
        """Record nothing."""


class _NoopGauge(_NoopMetric, MetricGauge):
    def set(self, value: int, additional_attributes: MetricAttributes | None = None) -> None:
        """Record nothing."""


class _NoopGaugeFloat(_NoopMetric, MetricGaugeFloat):
    def set(self, value: float, additional_attributes: MetricAttributes | None = None) -> None:
        """Record nothing."""


class _NoopMeter(MetricMeter):
    def create_counter(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricCounter:
        return _NoopCounter(name, description, unit)

    def create_histogram(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogram:
        return _NoopHistogram(name, description, unit)

    def create_histogram_float(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogramFloat:
        return _NoopHistogramFloat(name, description, unit)

    def create_histogram_timedelta(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricHistogramTimedelta:
        return _NoopHistogramTimedelta(name, description, unit)

    def create_gauge(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricGauge:
        return _NoopGauge(name, description, unit)

    def create_gauge_float(
        self, name: str, description: str | None = None, unit: str | None = None
    ) -> MetricGaugeFloat:
        return _NoopGaugeFloat(name, description, unit)

    def with_additional_attributes(self, additional_attributes: MetricAttributes) -> MetricMeter:
        return self


MetricMeter.noop = _NoopMeter()
