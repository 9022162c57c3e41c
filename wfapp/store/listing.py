"""Lists and counts of runs, page by page behind a key."""

import struct
import uuid
from collections.abc import Iterable

from django.db.models import Count, Q, QuerySet

from wfapp import models
from wfapp.models.columns import to_micros
from wfapp.store import rows
from wfapp.store.database import StorePart
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.payloads import SearchAttributes
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.service.ports import RunFilter

#: A page token: start time and run id of the last run shown.
_TOKEN = struct.Struct(">q16s")
#: Keys of two columns in one query: SQLite writes them as a tree, and takes none deeper than 1,000.
_KEYS_AT_ONCE = 500


class RunLists(StorePart):
    """What people ask about many runs."""

    def list_runs(
        self, namespace: str, wanted: RunFilter, *, limit: int, after: bytes = b""
    ) -> tuple[list[WorkflowExecutionInfo], bytes]:
        """As `Store.list_runs`."""
        found = self._matching(namespace, wanted)
        if after:
            found = found.filter(_behind(after))
        with self._database.telling():
            page = list(found.order_by("-start_time", "-run_id")[:limit])
            memos, attributes = self._shown(page)
        infos = [
            rows.read_info(
                row,
                rows.read_memo(memos.get(row.run_id)),
                attributes.get(row.run_id, SearchAttributes()),
            )
            for row in page
        ]
        token = _TOKEN.pack(page[-1].start_time, page[-1].run_id.bytes) if page else b""
        return infos, token if len(page) == limit else b""

    def count_runs(
        self, namespace: str, wanted: RunFilter, *, by_status: bool = False
    ) -> dict[WorkflowExecutionStatus | None, int]:
        """As `Store.count_runs`."""
        found = self._matching(namespace, wanted)
        with self._database.telling():
            if not by_status:
                return {None: found.count()}
            groups = found.values_list("status").annotate(Count("run_id")).order_by("status")
            return {WorkflowExecutionStatus(status): count for status, count in groups}

    def _matching(
        self, namespace: str, wanted: RunFilter
    ) -> QuerySet[models.WorkflowExecution, models.WorkflowExecution]:
        found = models.WorkflowExecution.objects.using(self._database.alias).filter(
            namespace=namespace
        )
        for column in ("workflow_id", "workflow_type", "task_queue"):
            if value := getattr(wanted, column):
                found = found.filter(**{column: value})
        if wanted.run_id:
            try:
                found = found.filter(run_id=uuid.UUID(wanted.run_id))
            except ValueError:
                return found.none()
        if wanted.statuses:
            found = found.filter(status__in=[int(status) for status in wanted.statuses])
        if wanted.started_after is not None:
            found = found.filter(start_time__gt=to_micros(wanted.started_after))
        if wanted.started_before is not None:
            found = found.filter(start_time__lt=to_micros(wanted.started_before))
        return found

    def _shown(
        self, page: Iterable[models.WorkflowExecution]
    ) -> tuple[dict[uuid.UUID, bytes], dict[uuid.UUID, SearchAttributes]]:
        """Memos and search attributes of a page, in few queries."""
        keys = [(row.shard, row.run_id) for row in page]
        if not keys:
            return {}, {}
        alias = self._database.alias
        memos = [
            memo
            for first in range(0, len(keys), _KEYS_AT_ONCE)
            for memo in models.Memo.objects.using(alias).filter(
                pk__in=keys[first : first + _KEYS_AT_ONCE]
            )
        ]
        attributes = models.SearchAttribute.objects.using(alias).filter(
            shard__in={shard for shard, _ in keys}, run_id__in=[run_id for _, run_id in keys]
        )
        pairs: dict[uuid.UUID, list[tuple[str, bytes]]] = {}
        for run_id, name, value in attributes.values_list("run_id", "name", "value"):
            pairs.setdefault(run_id, []).append((name, bytes(value)))
        return (
            {memo.run_id: bytes(memo.body) for memo in memos},
            {run_id: rows.read_search_attributes(found) for run_id, found in pairs.items()},
        )


def _behind(after: bytes) -> Q:
    """Runs that a list shows after the one that a token names.

    Raises:
        ValueError: it is no token of ours.
    """
    try:
        start_time, run_id = _TOKEN.unpack(after)
    except struct.error:
        raise ValueError(
            f"{after!r} is no page token of this store; pass on the one that the last page gave"
        ) from None
    # The first condition is what the index is entered by.
    return Q(start_time__lte=start_time) & (
        Q(start_time__lt=start_time) | Q(run_id__lt=uuid.UUID(bytes=run_id))
    )
