"""What a workflow class may look like, and what is said of one that may not."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from wfcore import workflow
from wfcore.common import RawValue, VersioningBehavior
from wfcore.workflow import (
    HandlerUnfinishedPolicy,
    QueryDefinition,
    SignalDefinition,
    UpdateDefinition,
    WorkflowDefinition,
)


class Base:
    @workflow.signal
    def base_signal(self) -> None:
        pass


@workflow.defn(
    name="order",
    failure_exception_types=[KeyError],
    versioning_behavior=VersioningBehavior.PINNED,
    sandboxed=False,
)
class Order(Base):
    @workflow.init
    def __init__(self, number: int, note: str | None = None) -> None:
        self.number = number

    @workflow.run
    async def run(self, number: int, note: str | None = None) -> str:
        return f"{number}{note}"

    @workflow.signal(name="go!", unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def go(self, how: str) -> None:
        pass

    @workflow.signal(dynamic=True, description="anything else")
    def anything(self, name: str, args: Sequence[RawValue]) -> None:
        pass

    @workflow.query
    def state(self) -> list[int]:
        return []

    @workflow.query(name="state-of")
    def state_of(self, item: str) -> int:
        return 0

    @workflow.update
    async def change(self, to: int) -> str:
        return ""

    @change.validator
    def check(self, to: int) -> None:
        pass


def test_a_class_is_read_once() -> None:
    found = WorkflowDefinition.must_from_class(Order)
    assert found.name == "order"
    assert found.cls is Order
    assert found.arg_types == [int, str | None]
    assert found.ret_type is str
    assert found.has_init
    assert not found.sandboxed
    assert found.failure_exception_types == (KeyError,)
    assert found.versioning_behavior is VersioningBehavior.PINNED
    assert set(found.signals) == {"go!", None, "base_signal"}
    assert found.signals["go!"].arg_types == [str]
    assert found.signals["go!"].unfinished_policy is HandlerUnfinishedPolicy.ABANDON
    assert found.signals[None].description == "anything else"
    assert set(found.queries) == {"state", "state-of"}
    assert found.queries["state"].ret_type == list[int]
    assert found.updates["change"].validator is not None


def test_a_class_without_a_name_is_called_as_itself() -> None:
    @workflow.defn
    class Plain:
        @workflow.run
        async def run(self) -> None:
            pass

    assert WorkflowDefinition.must_from_class(Plain).name == "Plain"


def test_names_and_types_of_references() -> None:
    assert WorkflowDefinition.name_and_result_type("x") == ("x", None)
    assert WorkflowDefinition.name_and_result_type(Order.run) == ("order", str)
    assert SignalDefinition.name_of("x") == "x"
    assert SignalDefinition.name_of(Order.go) == "go!"
    assert QueryDefinition.name_of(Order.state_of) == "state-of"
    assert UpdateDefinition.name_and_result_type(Order.change) == ("change", str)
    assert UpdateDefinition.name_and_result_type("x") == ("x", None)


def test_references_that_mean_nothing() -> None:
    async def plain() -> None:
        pass

    with pytest.raises(ValueError, match=r"decorated with @workflow.run"):
        WorkflowDefinition.name_and_result_type(plain)
    with pytest.raises(TypeError, match="string or callable"):
        WorkflowDefinition.name_and_result_type(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"decorated with @workflow.signal"):
        SignalDefinition.name_of(plain)
    with pytest.raises(RuntimeError, match="dynamic signal"):
        SignalDefinition.name_of(Order.anything)
    with pytest.raises(ValueError, match=r"decorated with @workflow.defn"):
        WorkflowDefinition.must_from_class(Base)


def test_a_subclass_has_no_definition_of_its_own() -> None:
    class Later(Order):
        pass

    assert WorkflowDefinition.from_class(Later) is None


def test_a_dynamic_workflow_takes_raw_values() -> None:
    @workflow.defn(dynamic=True)
    class Anything:
        @workflow.run
        async def run(self, args: Sequence[RawValue]) -> None:
            pass

        @workflow.dynamic_config
        def config(self) -> workflow.DynamicWorkflowConfig:
            return workflow.DynamicWorkflowConfig()

    found = WorkflowDefinition.must_from_class(Anything)
    assert found.name is None
    assert found.dynamic_config_fn is not None
    with pytest.raises(ValueError, match="dynamic workflow"):
        WorkflowDefinition.name_and_result_type(Anything.run)


class Without:
    pass


class Twice:
    @workflow.run
    async def one(self) -> None:
        pass

    @workflow.run
    async def two(self) -> None:
        pass


class Inherited(Twice):
    pass


class SameSignals:
    @workflow.run
    async def run(self) -> None:
        pass

    @workflow.signal(name="x")
    def one(self) -> None:
        pass

    @workflow.signal(name="x")
    def two(self) -> None:
        pass


class UnmarkedOverride(Base):
    @workflow.run
    async def run(self) -> None:
        pass

    def base_signal(self) -> None:
        pass


class OtherInit:
    @workflow.init
    def __init__(self, number: int) -> None:
        pass

    @workflow.run
    async def run(self, text: str) -> None:
        pass


class OtherValidator:
    @workflow.run
    async def run(self) -> None:
        pass

    @workflow.update
    def change(self, to: int) -> None:
        pass

    @change.validator  # type: ignore[arg-type]
    def check(self, to: str) -> None:
        pass


class NotDynamic:
    @workflow.run
    async def run(self) -> None:
        pass

    @workflow.dynamic_config
    def config(self) -> workflow.DynamicWorkflowConfig:
        return workflow.DynamicWorkflowConfig()


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (Without, r"Missing @workflow.run method"),
        (Twice, r"Multiple @workflow.run methods found \(at least on two and one\)"),
        (Inherited, r"must be defined on Inherited"),
        (SameSignals, r"Multiple signal methods found for x \(at least on two and one\)"),
        (UnmarkedOverride, r"@workflow.signal defined on Base.base_signal but not on the override"),
        (OtherInit, r"@workflow.init and @workflow.run method parameters do not match"),
        (OtherValidator, r"validator method check parameters do not match update method change"),
        (NotDynamic, r"can only be used in dynamic workflows"),
    ],
)
def test_a_class_that_is_not_well_formed_is_refused(cls: type, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        workflow.defn(cls)


def test_a_class_is_decorated_once() -> None:
    with pytest.raises(ValueError, match="already contains"):
        workflow.defn(Order)


def test_a_dynamic_workflow_must_take_raw_values() -> None:
    class Typed:
        @workflow.run
        async def run(self, number: int) -> None:
            pass

    with pytest.raises(TypeError, match="RawValue"):
        workflow.defn(dynamic=True)(Typed)


def _sync_run() -> None:
    @workflow.run  # type: ignore[type-var]
    def run(self: object) -> None:
        pass


def _named_and_dynamic() -> None:
    @workflow.signal(name="x", dynamic=True)
    def handle(self: object, name: str, args: Sequence[RawValue]) -> None:
        pass


def _dynamic_without_name() -> None:
    @workflow.signal(dynamic=True)
    def handle(self: object, args: Sequence[RawValue]) -> None:
        pass


def _dynamic_update_with_varargs() -> None:
    @workflow.update(dynamic=True)
    def handle(self: object, name: str, *args: Any) -> None:
        pass


def _async_validator() -> None:
    @workflow.update
    def change(self: object) -> None:
        pass

    @change.validator
    async def check(self: object) -> None:
        pass


def _init_elsewhere() -> None:
    @workflow.init
    def setup(self: object) -> None:
        pass


def _config_with_arguments() -> None:
    @workflow.dynamic_config  # type: ignore[arg-type]
    def config(self: object, more: int) -> workflow.DynamicWorkflowConfig:
        return workflow.DynamicWorkflowConfig()


@pytest.mark.parametrize(
    ("define", "error", "text"),
    [
        (_sync_run, ValueError, "must be an async function"),
        (_named_and_dynamic, RuntimeError, "name and dynamic"),
        (_dynamic_without_name, RuntimeError, "must have 3 arguments"),
        (_dynamic_update_with_varargs, RuntimeError, "do not support a vararg"),
        (_async_validator, ValueError, "must not be an async function"),
        (_init_elsewhere, ValueError, "__init__"),
        (_config_with_arguments, ValueError, "only take self"),
    ],
)
def test_marks_that_make_no_sense_are_refused(
    define: Callable[[], None], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        define()


def test_old_forms_of_dynamic_handlers_are_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="vararg"):

        @workflow.signal(dynamic=True)
        def handle(self: object, name: str, *args: Any) -> None:
            pass

    definition = SignalDefinition.from_fn(handle)
    assert definition is not None
    assert definition.takes_varargs
