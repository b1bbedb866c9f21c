"""Events of the logs of all nodes: appends, truncations, cleanings."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.cluster.events import (
    Appended,
    ClusterEvents,
    Replicated,
    SegmentsReplaced,
    Truncated,
)
from tests.simulation.cluster.layout import COMPACTED_TOPIC
from tests.simulation.world.disk import Killed
from tests.simulation.world.process import current_process

from barnabas.log import Log
from barnabas.log.maintenance import LogMaintenance
from barnabas.wire.records.batch import read_header


@contextmanager
def recorded_logs(events: ClusterEvents) -> Iterator[None]:
    """Every change of a log inside the context is an event."""
    hooks = _LogHooks(events)
    with ExitStack() as patches:
        for owner, name, hook in (
            (Log, "append_plain", hooks.append_plain),
            (Log, "append_as_leader", hooks.append_as_leader),
            (Log, "append_as_follower", hooks.append_as_follower),
            (Log, "truncate_to", hooks.truncate_to),
            (Log, "truncate_fully_and_start_at", hooks.truncate_fully_and_start_at),
            (LogMaintenance, "put_in_place", hooks.put_in_place),
        ):
            patches.enter_context(patch.object(owner, name, _as_method(hook)))
        yield


def _as_method(hook: Any) -> Any:
    """A function of a class is called with the object first; a bound method is not."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs)

    return method


class _LogHooks:
    """What replaces the methods of logs."""

    def __init__(self, events: ClusterEvents) -> None:
        self._events = events
        self._recorded = 0  # appends
        self._append_plain: Any = Log.append_plain
        self._append_as_leader: Any = Log.append_as_leader
        self._append_as_follower: Any = Log.append_as_follower
        self._truncate_to: Any = Log.truncate_to
        self._truncate_fully: Any = Log.truncate_fully_and_start_at
        self._put_in_place: Any = LogMaintenance.put_in_place

    def append_plain(self, log: Log, batch: Any, epoch: int, now_ms: int) -> int:
        """The lane calls it, and so does `append_as_leader`."""
        first_offset: int
        with self._interruptions(log, batch, epoch):
            first_offset = self._append_plain(log, batch, epoch, now_ms)
        if first_offset >= 0:
            self._on_append(log, batch, epoch)
        return first_offset

    def append_as_leader(self, log: Log, batch: Any, epoch: int, *args: Any, **kwargs: Any) -> Any:
        recorded = self._recorded
        with self._interruptions(log, batch, epoch):
            appended = self._append_as_leader(log, batch, epoch, *args, **kwargs)
        if not appended.duplicate and self._recorded == recorded:
            self._on_append(log, batch, epoch)
        return appended

    @contextmanager
    def _interruptions(self, log: Log, batch: Any, epoch: int) -> Iterator[None]:
        """The process may be killed after the batch got its offset."""
        recorded, end_offset = self._recorded, log.log_end_offset
        try:
            yield
        except Killed:
            is_new = self._recorded == recorded
            if is_new and read_header(batch.buffer).base_offset == end_offset:
                self._on_append(log, batch, epoch, is_interrupted=True)
            raise

    def _on_append(self, log: Log, batch: Any, epoch: int, *, is_interrupted: bool = False) -> None:
        self._recorded += 1
        header = read_header(batch.buffer)
        self._events.record(
            Appended(
                current_process().host,
                log.topic,
                log.partition,
                log.topic_id,
                epoch,
                header.base_offset,
                header.last_offset,
                bytes(batch.buffer),
                is_interrupted,
            )
        )

    def append_as_follower(self, log: Log, batches: Any, *args: Any, **kwargs: Any) -> Any:
        if log.topic == COMPACTED_TOPIC:
            host, key, end_offset = current_process().host, _key(log), log.log_end_offset
            self._events.record(Replicated(host, log.topic, key, end_offset, bytes(batches)))
        return self._append_as_follower(log, batches, *args, **kwargs)

    def truncate_to(self, log: Log, offset: int) -> None:
        self._truncate_to(log, offset)
        self._on_truncated(log)

    def truncate_fully_and_start_at(self, log: Log, offset: int) -> None:
        self._truncate_fully(log, offset)
        self._on_truncated(log)

    def _on_truncated(self, log: Log) -> None:
        host, end_offset = current_process().host, log.log_end_offset
        self._events.record(Truncated(host, log.topic, log.partition, log.topic_id, end_offset))

    def put_in_place(self, maintenance: Any, replaced: Any, cleaned: Any) -> None:
        log = maintenance._log
        host, base_offsets = current_process().host, tuple(item.base_offset for item in replaced)
        event = SegmentsReplaced(host, log.topic, _key(log), base_offsets, is_done=False)
        self._events.record(event)
        self._put_in_place(maintenance, replaced, cleaned)
        self._events.record(replace(event, is_done=True))


def _key(log: Log) -> tuple[bytes, int]:
    return log.topic_id, log.partition
