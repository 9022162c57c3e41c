"""Which recorded scenarios are in scope, and why the others are not yet, or differ.

A scenario is *later* when it needs a feature of `LATER`; what may differ stands in `DIFFERENT`, or
for one set of ports in `DIFFERENT_ON`, with its reason.
"""

GROUPS = (
    "start",
    "delay",
    "tasks",
    "activities",
    "local",
    "timers",
    "closing",
    "messages",
    "children",
    "chains",
    "metadata",
    "golden",
    "repair",
)

#: reason -> scenarios of these groups that need it
LATER: dict[str, tuple[str, ...]] = {
    "workflow pause": (
        "pause-activity-completes",
        "pause-cancel",
        "pause-idle",
        "pause-messages",
        "pause-task-in-flight",
        "pause-task-scheduled",
        "pause-terminate",
        "pause-timer",
    ),
    "completion callbacks": ("conflict-attach-callback", "start-with-callback"),
    "changed options of a run": ("options-before-task", "options-priority"),
    "Nexus": ("nexus-fails", "nexus-no-endpoint", "nexus-ok", "nexus-times-out"),
    "sticky queues": (
        "golden-open-scheduled",
        "sticky-fails",
        "sticky-fails-twice",
        "sticky-start-to-close",
        "sticky-times-out",
        "sticky-times-out-bundled",
        "sticky-unavailable",
    ),
}

#: scenario -> why our history rightly differs
DIFFERENT: dict[str, str] = {
    "activity-result-too-large": (
        "Temporal's SDK refuses the result before it is sent and reports a retryable failure of "
        "its own; here the engine refuses it as the server does when it gets it: not retryable, "
        "since a repetition can't succeed"
    ),
    "update-fails-task": (
        "the server's task came from a sticky queue, where a failure doesn't raise the attempt; "
        "here are no sticky queues"
    ),
    "outside-fail-retry": (
        "the driver completes the activity 0.4 s after its failure: on the recorded server the "
        "second attempt still waited for its dispatch then, here a worker has taken it"
    ),
    "task-deadlock": "the failure names the class of the error, which is this project's own",
}

#: the same for one set of ports alone
DIFFERENT_ON: dict[str, dict[str, str]] = {
    "postgres": {
        "start-eager": (
            "the first task goes out with the answer only to a worker in the client's process; "
            "Celery's workers are others"
        ),
    },
}


#: scenario -> the one other outcome that is right too, and why: two workflows' tasks race in it
RACES: dict[str, tuple[str, str]] = {
    "golden-child-cancelled": (
        (
            "found    ... WORKFLOW_TASK_SCHEDULED CHILD_WORKFLOW_EXECUTION_CANCELED "
            "WORKFLOW_TASK_STARTED WORKFLOW_TASK_COMPLETED ..."
        ),
        (
            "the child's end comes before the parent's task is started: on the recorded server it "
            "came 13 ms after; here the child, which hears first that it is to cancel, has often "
            "ended by then"
        ),
    ),
    "reset-same-request": (
        "found    ... WORKFLOW_TASK_STARTED WORKFLOW_TASK_COMPLETED WORKFLOW_EXECUTION_TERMINATED",
        (
            "the run that the first reset has made answers its task before the second reset ends "
            "it: on the recorded server the task was still under way"
        ),
    ),
}


def is_race(name: str, findings: list[str]) -> bool:
    """Whether a scenario came out in its other right way, and differs in nothing else."""
    other = RACES.get(name)
    return other is not None and len(findings) == 1 and other[0] in findings[0]


def different(ports: str) -> dict[str, str]:
    """All that may differ on these ports, with the reasons."""
    return {**DIFFERENT, **DIFFERENT_ON.get(ports, {})}


LATER_REASON = {name: reason for reason, names in LATER.items() for name in names}
