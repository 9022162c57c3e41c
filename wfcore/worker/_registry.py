"""Which workflows and activities a worker knows: checked once, read by every task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from wfcore.activity import Definition as ActivityDefinition
from wfcore.workflow import WorkflowDefinition


class Registry:
    """Workflows and activities by name, with at most one dynamic one of each kind.

    Args:
        workflows: classes decorated with ``@workflow.defn``.
        activities: callables decorated with ``@activity.defn``.

    Raises:
        ValueError: two have the same name, or a workflow isn't decorated.
        TypeError: an activity isn't decorated, or is a class where its instance is needed.
    """

    def __init__(
        self,
        workflows: Iterable[type] = (),
        activities: Iterable[Callable[..., Any]] = (),
    ) -> None:
        self._workflows: dict[str, WorkflowDefinition] = {}
        self._activities: dict[str, ActivityDefinition] = {}
        self._dynamic_workflow: WorkflowDefinition | None = None
        self._dynamic_activity: ActivityDefinition | None = None
        for workflow in workflows:
            self.add_workflow(workflow)
        for activity in activities:
            self.add_activity(activity)

    def add_workflow(self, workflow: type) -> None:
        """Add a class; see the class for errors."""
        definition = WorkflowDefinition.must_from_class(workflow)
        if definition.name is None:
            if self._dynamic_workflow:
                raise TypeError("More than one dynamic workflow")
            self._dynamic_workflow = definition
        elif definition.name in self._workflows:
            raise ValueError(f"More than one workflow named {definition.name}")
        else:
            self._workflows[definition.name] = definition

    def add_activity(self, activity: Callable[..., Any]) -> None:
        """Add a callable; see the class for errors."""
        definition = ActivityDefinition.must_from_callable(activity)
        if isinstance(activity, type):
            raise TypeError(f"Activity named {definition.name} is a class instead of an instance")
        if not inspect.ismethod(activity) and inspect.isfunction(activity):
            first = next(iter(inspect.signature(activity).parameters), None)
            if first == "self":
                raise TypeError(
                    f"Activity named {definition.name} has a first parameter named self that is "
                    "not bound: register the method of an object, not of the class"
                )
        if definition.name is None:
            if self._dynamic_activity:
                raise TypeError("More than one dynamic activity")
            self._dynamic_activity = definition
        elif definition.name in self._activities:
            raise ValueError(f"More than one activity named {definition.name}")
        else:
            self._activities[definition.name] = definition

    def workflow(self, name: str) -> WorkflowDefinition | None:
        """The workflow of this type, or the dynamic one."""
        return self._workflows.get(name, self._dynamic_workflow)

    def activity(self, name: str) -> ActivityDefinition | None:
        """The activity of this type, or the dynamic one."""
        return self._activities.get(name, self._dynamic_activity)

    @property
    def workflow_names(self) -> list[str]:
        """In alphabetical order, without the dynamic one."""
        return sorted(self._workflows)

    @property
    def activity_names(self) -> list[str]:
        """In alphabetical order, without the dynamic one."""
        return sorted(self._activities)

    @property
    def has_workflows(self) -> bool:
        """Whether there is any workflow to run."""
        return bool(self._workflows) or self._dynamic_workflow is not None

    @property
    def activities(self) -> list[ActivityDefinition]:
        """All activities, the dynamic one last."""
        found = list(self._activities.values())
        return [*found, self._dynamic_activity] if self._dynamic_activity else found
