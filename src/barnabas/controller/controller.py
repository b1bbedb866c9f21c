"""The active controller: decides, appends, commits in groups, publishes, answers.

A request is decided on the image *ahead*, in which everything decided before has happened; its
records are appended at once. One sync in a thread then makes durable whatever was appended
meanwhile, and only what is durable reaches the committed image, its listeners and, last, those
who asked.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from barnabas.config.dynamic import Resolver
from barnabas.config.settings import BrokerSettings
from barnabas.controller.activation import activation_records, load
from barnabas.controller.apis import decider
from barnabas.controller.contacts import Contacts
from barnabas.controller.decision import Context
from barnabas.controller.new_topic_settings import NewTopicSettings
from barnabas.controller.snapshots import SnapshotSchedule, write_snapshot
from barnabas.log import Flush
from barnabas.metadata.delta import Delta
from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import Image
from barnabas.metadata.loader import Loader
from barnabas.raft import Quorum
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import NoOpRecord
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid

MAX_WAITING: Final = 10_000
"""Requests that may wait for the disk at once; more are told to come back."""

LEAST_WAIT_MS: Final = 5_000
"""Clients that do not wait for propagation send a timeout of 0, and still want their answer."""

_MAX_BATCH_BYTES: Final = 8 * 1024 * 1024

Listener = Callable[[Delta, Image], None]

_logger = logging.getLogger(__name__)


class ControllerFailed(Exception):  # noqa: N818 - the domain's word for it
    """The metadata log can no longer be written: this node must stop."""


@dataclass(slots=True, frozen=True)
class _Appended:
    """A batch that is in the log and not yet known to be durable."""

    last_offset: int
    epoch: int
    records: Sequence[Message]


class Controller:
    """The one controller of a cluster with one voter. Lives on one event loop."""

    def __init__(
        self,
        quorum: Quorum,
        settings: BrokerSettings,
        *,
        cluster_id: str,
        clock: Callable[[], int],
        on_failure: Callable[[ControllerFailed], None] | None = None,
    ) -> None:
        self.quorum = quorum
        self.image = Image()
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._on_failure = on_failure
        self._random = random.Random()
        self._loader = Loader(self.image)
        self._listeners: list[Listener] = []
        self._contacts = Contacts(settings["broker.session.timeout.ms"])
        self._schedule = SnapshotSchedule(
            settings["metadata.log.max.record.bytes.between.snapshots"],
            settings["metadata.log.max.snapshot.interval.ms"],
        )
        self._idle_interval_ms: int = settings["metadata.max.idle.interval.ms"]
        self._last_append_ms = 0
        self._appended: deque[_Appended] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._syncing: asyncio.Future[None] | None = None
        self._snapshot: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "metadata-sync")
        self.failure: ControllerFailed | None = None

    def start(self, bootstrap: Sequence[bytes] = ()) -> None:
        """Load what the log has, become its leader and, if it is empty, begin the cluster.

        `bootstrap` are the encoded records that formatting left for that moment. Blocks.
        """
        load(self.quorum.load(), self._loader)
        now_ms = self._clock()
        self.quorum.lead(now_ms)
        self._ahead = self.image.copy()
        self._resolver = Resolver(self._settings, self._ahead.configs)
        self._new_topic_settings = NewTopicSettings(self._resolver)
        self._schedule.restart(now_ms)
        in_transaction = self._loader.in_transaction
        self._append(activation_records(self._ahead, bootstrap, self._context(), in_transaction))
        self.quorum.flush()
        self._publish_committed()

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """Decide on a request; its response, once what it says is committed and published."""
        api = decider(request.API_KEY)
        try:
            self._require_room()
            context = self._context()
            decision = api.decide(request, self._ahead, context)
            if decision.contact is not None:
                self._contacts.touch(decision.contact)
            self._append(decision.records)
            await self._all_committed(timeout_ms)
        except KafkaError as error:
            return api.refuse(request, error)
        return decision.response

    def maintain(self, now_ms: int) -> None:
        """What time brings: a sign of life in a silent log, snapshots. To be called often."""
        if self.failure is not None:
            return
        if 0 < self._idle_interval_ms <= now_ms - self._last_append_ms:
            with suppress(KafkaError):  # the failure has been declared
                self._append([NoOpRecord()])
            self._commit()
        snapshot_is_running = self._snapshot is not None and not self._snapshot.done()
        if not snapshot_is_running and self._schedule.is_due(
            now_ms, self.quorum.bytes_since_snapshot
        ):
            self._schedule.restart(now_ms)
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot())

    async def close(self) -> None:
        """Commit what was appended, and let go; the log directory is closed by its owner."""
        if self._snapshot is not None:
            await asyncio.wait([self._snapshot])
        self._commit()
        while self._syncing is not None:
            await asyncio.wait([self._syncing])
        self._thread.shutdown()

    def _context(self) -> Context:
        return Context(
            now_ms=self._clock(),
            next_offset=self.quorum.end_offset,
            cluster_id=self._cluster_id,
            controller_id=self._settings.node_id,
            voter_ids=self.quorum.describe().voters.ids(),
            kraft_version=self.quorum.kraft_version,
            resolver=self._resolver,
            new_topic_settings=self._new_topic_settings,
            contacts=self._contacts,
            random_uuid=random_uuid,
            random_below=self._random.randrange,
        )

    def _require_room(self) -> None:
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        if len(self._waiting) >= MAX_WAITING:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{MAX_WAITING} changes are waiting for the metadata log's disk; try again.",
            )

    # Appending and committing

    def _append(self, records: Sequence[Message]) -> None:
        """Write records to the log and let them have happened in the image ahead."""
        if not records:
            return
        level = self._ahead.metadata_level
        frames = [encode_record(record, record_version(record, level)) for record in records]
        self._last_append_ms = now_ms = self._clock()
        delta = Delta()
        try:
            for start, end in _batches(frames):
                last_offset = self.quorum.append(frames[start:end], now_ms)
                batch = _Appended(last_offset, self.quorum.epoch, records[start:end])
                self._appended.append(batch)
        except OSError as error:
            raise self._fail(error) from error
        for record in records:
            self._ahead.apply(record, delta)
        if delta.configs_changed:
            self._resolver.changed(delta.configs_changed)

    async def _all_committed(self, timeout_ms: int) -> None:
        """Wait for everything decided so far: a decision without records rests on it, too."""
        if not self._appended:
            return
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[None] = loop.create_future()
        self._waiting.append((self._appended[-1].last_offset, committed))
        if self._syncing is None:
            loop.call_soon(self._commit)
        wait_s = max(timeout_ms, LEAST_WAIT_MS) / 1000
        timer = loop.call_later(wait_s, _time_out, committed)
        try:
            await committed
        finally:
            timer.cancel()

    def _commit(self) -> None:
        """Sync what was appended by now, unless a sync is on its way: then the next one will."""
        if self._syncing is not None or not self._appended or self.failure is not None:
            return
        flush = self.quorum.begin_flush()
        loop = asyncio.get_running_loop()
        self._syncing = loop.run_in_executor(self._thread, flush.sync)
        self._syncing.add_done_callback(lambda synced: self._synced(flush, synced))

    def _synced(self, flush: Flush, synced: asyncio.Future[None]) -> None:
        self._syncing = None
        error = synced.exception()
        if error is not None:
            self._fail(error)
            return
        self.quorum.finish_flush(flush)
        self._publish_committed()
        self._commit()

    def _publish_committed(self) -> None:
        high_watermark = self.quorum.high_watermark
        delta = Delta()
        while self._appended and self._appended[0].last_offset < high_watermark:
            batch = self._appended.popleft()
            self._loader.load(batch.records, batch.last_offset, batch.epoch, delta)
        if delta:
            self._publish(delta)
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, committed = self._waiting.popleft()
            if not committed.done():
                committed.set_result(None)

    def _publish(self, delta: Delta) -> None:
        for listener in self._listeners:
            try:
                listener(delta, self.image)
            except Exception:
                # What is committed is a fact: one who cannot follow does not stop the others.
                _logger.exception("A listener failed on the metadata at %d", self.image.offset)

    def _fail(self, cause: BaseException) -> KafkaError:
        """The disk refused: nobody can know what it has, so nothing may be decided any more."""
        if self.failure is None:
            self.failure = ControllerFailed(
                f"The metadata log cannot be written ({cause}). Free or replace the disk, then "
                "restart this node."
            )
            self.failure.__cause__ = cause
            _logger.critical("%s", self.failure)
            if self._on_failure is not None:
                self._on_failure(self.failure)
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))
        for _, committed in self._waiting:
            if not committed.done():
                committed.set_exception(error)
        self._waiting.clear()
        return error

    async def _take_snapshot(self) -> None:
        try:
            await write_snapshot(self.quorum, self.image.copy(), self._clock())
        except OSError as error:
            self._fail(error)


def _batches(frames: Sequence[bytes]) -> list[tuple[int, int]]:
    """Where to part frames so that no batch is too large; nearly always nowhere."""
    parts = []
    start = size_bytes = 0
    for number, frame in enumerate(frames):
        size_bytes += len(frame)
        if size_bytes > _MAX_BATCH_BYTES and number > start:
            parts.append((start, number))
            start, size_bytes = number, len(frame)
    parts.append((start, len(frames)))
    return parts


def _time_out(committed: asyncio.Future[None]) -> None:
    if not committed.done():
        committed.set_exception(
            KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "The change was not committed in time; it may still be.",
            )
        )
