"""The one place that fills the engine's ports: store, dispatcher, service, registry, worker.

Made at first use, one set per process: a fork begins with none, since threads, locks and
connections don't survive it. Importing this opens nothing and reads no setting.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from celery import Celery, current_app
from django.utils.module_loading import import_string

from wfapp.conf import config
from wfapp.dispatch.broker import BrokerLink, Circuit
from wfapp.dispatch.calls import AsyncCalls
from wfapp.dispatch.claims import Health, Judge, LeaseKeeper, LeaseTable, Process
from wfapp.dispatch.connections import leave_connection
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.dispatch.dispatcher import CeleryDispatcher
from wfapp.dispatch.lifecycle import HOST
from wfapp.dispatch.notices import LocalNotices, Notices, RedisNotices
from wfapp.dispatch.publisher import Publisher
from wfapp.dispatch.queues import QueueNames
from wfapp.dispatch.resending import EpochWatch, LostMessages
from wfapp.dispatch.routes import CeleryRoutes
from wfapp.dispatch.running import TaskWorker
from wfapp.store import DjangoStore
from wfcore.client import Calls, Client
from wfcore.converter import DataConverter
from wfcore.service.ids import RandomIds
from wfcore.service.workflow_service import WorkflowService

T = TypeVar("T")

#: Claims given up in one go, and how often that is repeated for one process.
_LOST_BATCH = 100
_LOST_BATCHES = 100


class Wiring:
    """The parts of one process, each made when it is first asked for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    def part(self, name: str, make: Callable[[], Any]) -> Any:
        """The part of this name; `make` is called once."""
        try:
            return self._made[name]
        except KeyError:
            pass
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    @contextmanager
    def replaced(self, parts: dict[str, Any]) -> Iterator[None]:
        """Use other parts; what else is asked for is made anew, and forgotten at the end."""
        with self._lock:
            before, self._made = self._made, dict(parts)
        try:
            yield
        finally:
            with self._lock:
                self._made = before

    def close(self) -> None:
        """Begin anew where a test has changed what the parts stand on."""
        link = self._made.get("link")
        if link is not None:
            link.close()
        self.forget()

    def forget(self) -> None:
        """Begin anew after a fork: what was made belongs to the parent."""
        link = self._made.get("link")
        self._lock = threading.RLock()
        self._made = {}
        if link is not None:
            link.forget()


_wiring = Wiring()
os.register_at_fork(after_in_child=_wiring.forget)


def reset() -> None:
    """Forget all parts, so that the next use reads settings and broker anew."""
    _wiring.close()


def part(name: str, make: Callable[[], T]) -> T:
    """This process's part of that name; `make` is called once."""
    found: T = _wiring.part(name, make)
    return found


@contextmanager
def replaced(**parts: Any) -> Iterator[None]:
    """Let these parts stand in for this process's own, for the length of a test."""
    with _wiring.replaced(parts):
        yield


def get_celery_app() -> Celery:
    """The project's Celery app: the one that is current."""
    app: Celery = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - how a proxy is left
    return app


def get_identity() -> str:
    """What histories call this process."""
    return config().identity or f"{os.getpid()}@{socket.gethostname()}"


def get_queue_names() -> QueueNames:
    """How task queues are called in Celery."""
    default = get_celery_app().conf.task_default_queue
    return QueueNames(celery_default=default, prefix=config().queue_prefix)


def get_store() -> DjangoStore:
    """The database that holds the workflows."""
    return part("store", lambda: DjangoStore(config().database, lock_wait=config().lock_wait))


def get_converter() -> DataConverter:
    """The data converter that the setting names, with its codecs."""
    return part("converter", _make_converter)


def get_notices() -> Notices:
    """News between processes, as the broker allows."""
    return part("notices", _make_notices)


def get_dispatcher() -> CeleryDispatcher:
    """What announces work."""
    return part("dispatcher", _make_dispatcher)


def get_service() -> WorkflowService:
    """The engine's service over the project's database and broker."""
    return part(
        "service",
        lambda: WorkflowService(
            get_store(),
            get_dispatcher(),
            RandomIds(),
            limits=config().limits,
            arrivals=config().arrivals,
            start_wait=config().lock_wait,
        ),
    )


def make_client(namespace: str, calls: Calls) -> Client:
    """A client of the service that makes its calls so."""
    return Client(
        get_service(),
        namespace=namespace,
        data_converter=get_converter(),
        identity=config().identity or None,
        calls=calls,
    )


def get_async_client(namespace: str) -> Client:
    """Temporal's client over the project's database and broker."""
    return part(f"async client {namespace}", lambda: make_client(namespace, AsyncCalls(get_store)))


def get_registry() -> ProjectRegistry:
    """The workflows and activities of the installed apps."""
    return part("registry", lambda: ProjectRegistry.discover(get_celery_app()))


def get_task_worker() -> TaskWorker:
    """What runs the tasks that messages name."""
    return part("worker", _make_worker)


def get_lease_table() -> LeaseTable:
    """Who is alive."""
    return part("leases", lambda: LeaseTable(config().database, get_store().now, config().lease))


def get_health() -> Health:
    """Since when this process has had its database."""
    return part("health", lambda: Health(lease=config().lease))


def make_judge() -> Judge:
    """What finds dead workers."""
    return Judge(get_lease_table(), get_health(), lose_expired)


def make_epoch_watch() -> EpochWatch:
    """What notices that the broker was emptied."""
    return EpochWatch(
        broker=_key_prefix(),
        alias=config().database,
        epoch=get_notices().epoch,
        store=get_store(),
        dispatcher=get_dispatcher(),
    )


def make_lost_messages() -> LostMessages:
    """What announces again what waits beside an empty queue."""
    return LostMessages(
        alias=config().database,
        store=get_store(),
        dispatcher=get_dispatcher(),
        pause=config().limits.resend_after(1),
    )


def make_lease_keeper(
    living: Callable[[], Sequence[Process]], lost: Callable[[], Sequence[str]]
) -> LeaseKeeper:
    """What keeps this worker's leases."""
    return LeaseKeeper(
        get_lease_table(), get_health(), living=living, lost=lost, lose_claims=lose_ended
    )


def lose_expired(boot_id: str) -> None:
    """Give up the claims of a process that was not heard of for a lease."""
    _lose(boot_id, f"the lease of process {boot_id} expired")


def lose_ended(boot_id: str) -> None:
    """Give up the claims of a process that is known to have ended, or is about to."""
    _lose(boot_id, f"process {boot_id} ended")


def _lose(boot_id: str, why: str) -> None:
    for _ in range(_LOST_BATCHES):
        if get_service().lose_worker(boot_id, why, _LOST_BATCH) < _LOST_BATCH:
            return


def _make_converter() -> DataConverter:
    found = import_string(config().data_converter)
    converter: DataConverter = found() if callable(found) else found
    if not config().payload_codec:
        return converter
    codec = import_string(config().payload_codec)
    return replace(converter, payload_codec=codec() if callable(codec) else codec)


def _get_link() -> BrokerLink:
    return part(
        "link",
        lambda: BrokerLink(
            get_celery_app(),
            timeout=config().publish_timeout,
            circuit=Circuit(config().publish_pause),
        ),
    )


def _make_notices() -> Notices:
    link = _get_link()
    return RedisNotices(link, _key_prefix()) if link.is_redis else LocalNotices()


def _make_dispatcher() -> CeleryDispatcher:
    app = get_celery_app()
    return CeleryDispatcher(
        publisher=Publisher(app, _get_link()),
        names=get_queue_names(),
        notices=get_notices(),
        store=get_store(),
        celery_task=lambda name: get_registry().celery_queue(name),
        serving=get_lease_table().serving,
        resting=lambda: leave_connection(config().database),
    )


def _make_worker() -> TaskWorker:
    return TaskWorker(
        service=get_service(),
        dispatcher=get_dispatcher(),
        registry=get_registry(),
        converter=get_converter(),
        alias=config().database,
        identity=get_identity,
        owner=lambda: HOST.boot_id,
        draining=lambda: HOST.draining,
        serves=HOST.serves_workflows,
        sends_itself=lambda name: get_registry().celery_queue(name) is not None,
        workflow_interceptors=[CeleryRoutes(lambda name: get_registry().has_route(name))],
        client=get_async_client,
        build_id=config().build_id,
        local_activities=config().local_activities,
        eager=HOST.serves_activities if config().eager_activities else None,
        max_heartbeat_throttle=config().max_heartbeat_throttle,
    )


def _key_prefix() -> str:
    return f"{config().queue_prefix}wfapp."
