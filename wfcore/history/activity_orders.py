"""What operators ask of pending activities."""

from dataclasses import dataclass
from datetime import timedelta

from wfcore.protocol.rpc.info import ActivityOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """Nobody takes another attempt, and no timeout ends the one that runs."""

    identity: str = ""
    reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unpause:
    """Attempts go on; one that waited may start after a random part of `jitter`."""

    reset_attempts: bool = False
    reset_heartbeat: bool = False
    jitter: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset:
    """Begin with the first attempt again, at once or after a random part of `jitter`."""

    reset_heartbeat: bool = False
    keep_paused: bool = False
    restore_original: bool = False
    jitter: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateOptions:
    """Take over those options that `paths` names, in snake_case, or all that the SCHEDULED event
    has."""

    options: ActivityOptions
    paths: tuple[str, ...] = ()
    restore_original: bool = False


Order = Pause | Unpause | Reset | UpdateOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class OperateActivities:
    """An order for those open activities that have this id, or this type, or for all of them."""

    order: Order
    activity_id: str = ""
    activity_type: str = ""

    @property
    def order_restores(self) -> bool:
        """Whether the options of the SCHEDULED events are asked for."""
        return isinstance(self.order, Reset | UpdateOptions) and self.order.restore_original
