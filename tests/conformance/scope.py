"""Which recorded scenarios are in scope, and why the others are not yet, or differ.

A scenario is *later* when it needs a feature of `LATER`; what may differ stands in `DIFFERENT` with
its reason.
"""

GROUPS = ("start", "delay", "tasks", "activities", "timers", "closing", "golden")

#: reason -> scenarios of these groups that need it
LATER: dict[str, tuple[str, ...]] = {}

#: scenario -> why our history rightly differs
DIFFERENT: dict[str, str] = {}

LATER_REASON = {name: reason for reason, names in LATER.items() for name in names}
