"""What a history says about the rules under which it was written; it is replayed by the same."""

from enum import IntEnum

from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata


class CoreFlag(IntEnum):
    """Numbers in `coreUsedFlags` of a completed workflow task."""

    IDS_AND_TYPES = 1  # ids and types of activities and children must match
    UPSERT_ON_PATCH = 2  # a patch marker is followed by an upsert of TemporalChangeVersion
    CLOSE_LAST = 3  # what was asked for after the run's end comes before the closing command
    NEXUS_NAMES = 4  # service and operation of a Nexus call must match


class LangFlag(IntEnum):
    """Numbers in `langUsedFlags` of a completed workflow task."""

    CANCEL_MEETS_RESULT = 1  # a cancel that meets an activity's result is raised, not lost
    ONE_BATCH = 2  # all jobs of a task are applied before any code runs


#: The rules of new workflow tasks.
CORE = frozenset(CoreFlag)
LANG = frozenset({LangFlag.CANCEL_MEETS_RESULT})


class Flags:
    """The rules that hold for the current workflow task.

    While a recorded task is replayed, those that it and the tasks before it name; in a new one ours
    too, of which `new_core` and `new_lang` are yet to be recorded.
    """

    __slots__ = ("_core", "_is_new", "_lang")

    def __init__(self) -> None:
        self._core: frozenset[int] = frozenset()
        self._lang: frozenset[int] = frozenset()
        self._is_new = False

    def enter_recorded(self, metadata: WorkflowTaskCompletedMetadata | None) -> None:
        """A task is replayed whose completion says this."""
        self._is_new = False
        if metadata is not None:
            if metadata.core_used_flags:
                self._core |= set(metadata.core_used_flags)
            if metadata.lang_used_flags:
                self._lang |= set(metadata.lang_used_flags)

    def enter_new(self) -> None:
        """A task is run for the first time."""
        self._is_new = True

    def core(self, flag: CoreFlag) -> bool:
        """Whether this rule holds."""
        return flag in self._core or self._is_new

    def lang(self, flag: LangFlag) -> bool:
        """Whether this rule holds."""
        return flag in self._lang or (self._is_new and flag in LANG)

    @property
    def new_core(self) -> tuple[int, ...]:
        """Rules of this task that the history does not name yet."""
        return tuple(sorted(CORE - self._core)) if self._is_new else ()

    @property
    def new_lang(self) -> tuple[int, ...]:
        """Rules of this task that the history does not name yet."""
        return tuple(sorted(LANG - self._lang)) if self._is_new else ()
