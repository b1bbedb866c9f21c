"""The `_schemas` topic: every instance reads it from its beginning, and the leader writes it.

Writes are transactions of one transactional id, the topic's own. A new leader initializes it again,
which fences the former leader at the broker: an instance that was paused and does not know that it
has been replaced can do no harm. Then the leader appends a NOOP. Once it has read that back, it has
read everything that was ever written.

If the topic is deleted, the state stays readable and cannot be changed. If the topic is created
again, its content replaces the state.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from barnabas.client._message import Message
from barnabas.client.cluster import ClusterClient
from barnabas.client.compacted_topic import CompactedTopic, prepare_compacted_topic
from barnabas.client.consumer.aio import AioConsumer
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.transactional_writer import RecordsTooLargeError, TransactionalWriter
from barnabas.client.values import OFFSET_BEGINNING, TopicPartition
from barnabas.registry import errors
from barnabas.registry.records import (
    RegistryRecord,
    UnreadableRecordError,
    decode_record,
    encode_record,
    noop_record,
)
from barnabas.registry.settings import RegistrySettings
from barnabas.registry.state import RegistryState

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PARTITION = 0
_MAX_BATCH = 1000
_RETRY_PAUSE_S = 1
_TOPIC_CHECK_INTERVAL_S = 5  # between checks that the topic has not been recreated
_DELETED = (
    "topic %s is gone: what it said can be read here, and be changed once it is created again"
)


class SchemaLog:
    """`state` follows from the records that have been read."""

    def __init__(self, settings: RegistrySettings, cluster: ClusterClient) -> None:
        self.state = RegistryState()
        self._settings = settings
        self._cluster = cluster
        self._timeout_s = settings.timeout_ms / 1000
        self._topic_id = b""
        self._is_deleted = False
        self._applied_offset = -1  # of the last record that was applied
        self._progress = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._writer = TransactionalWriter(
            settings.kafka_client_config,
            settings.topic,
            f"schema-registry-{settings.topic}",  # whichever the group
            settings.timeout_ms,
        )
        self._has_resigned = False

    async def start(self) -> None:
        """Creates the topic if there is none. Returns when it has been read to its end."""
        await prepare_compacted_topic(
            self._settings.kafka_client_config,
            CompactedTopic(
                self._settings.topic,
                content="schemas",
                is_single_partition=True,
                replication_factor=self._settings.replication_factor,
            ),
            start_timeout_ms=self._settings.start_timeout_ms,
            timeout_ms=self._settings.timeout_ms,
        )
        await self._restart_reader(await self._fetch_topic_id())
        self._watcher = asyncio.create_task(self._watch_topic())

    def require_topic(self) -> None:
        """Raises RegistryError 50001 if the topic is known to be deleted."""
        if self._is_deleted:
            raise errors.log_failed(_DELETED % self._settings.topic)

    async def become_leader(self) -> None:
        """Fences the former leader, and returns when everything it wrote has been read."""
        self._has_resigned = False
        await self._with_timeout(self._writer.open())
        deleted_ids = self.state.highest_deleted_ids
        await self.append([noop_record(deleted_ids)])
        if self.state.highest_deleted_ids != deleted_ids:  # the latest NOOP must have all of them
            await self.append([noop_record(self.state.highest_deleted_ids)])

    @property
    def applied_offset(self) -> int:
        return self._applied_offset

    @property
    def is_leader(self) -> bool:
        return self._writer.is_open and not self._has_resigned

    def resign(self) -> None:
        """Another instance is the leader: a write in progress may end, the next is not allowed."""
        self._has_resigned = True

    async def append(self, records: Sequence[RegistryRecord]) -> None:
        """Appends all records or none. Returns when they are applied here."""
        await self._with_timeout(self._transaction(records))

    async def wait_until_applied(self, offset: int) -> None:
        """Returns when the record at `offset` has been applied."""
        async with self._progress:
            await self._progress.wait_for(lambda: self._applied_offset >= offset)

    async def stop(self) -> None:
        await self._writer.close()
        for task in (self._watcher, self._reader):
            await _cancel(task)

    async def _transaction(self, records: Sequence[RegistryRecord]) -> None:
        before = self._applied_offset
        try:
            messages = await self._writer.write(map(encode_record, records), _PARTITION)
        except RecordsTooLargeError as failure:
            raise errors.too_large(
                "Register operation failed because schema is too large"
            ) from failure
        last_offset = max(_offset(message) for message in messages)
        if last_offset <= before:  # the topic was recreated, and has still to be read
            self._applied_offset = -1
        await self.wait_until_applied(last_offset)

    async def _with_timeout(self, write: Coroutine[Any, Any, T]) -> T:
        """After a failure it is unknown whether the write succeeded, so the writer is closed."""
        try:
            return await asyncio.wait_for(write, self._timeout_s)
        except TimeoutError:
            await self._writer.close()
            raise errors.log_timed_out(
                f"Write to {self._settings.topic} timed out after {self._timeout_s:g} s"
            ) from None
        except KafkaException as failure:
            await self._writer.close()
            raise _registry_error(self._settings.topic, error_in(failure)) from failure

    async def _watch_topic(self) -> None:
        """Restarts the reader when the topic was recreated, or when reading has failed."""
        while True:
            assert self._reader is not None
            if self._reader.done():  # and could not be restarted
                await asyncio.sleep(_RETRY_PAUSE_S)
            await asyncio.wait([self._reader], timeout=_TOPIC_CHECK_INTERVAL_S)
            try:
                topic_id = await self._fetch_topic_id()
                self._note_deletion(is_deleted=not topic_id)
                self._topic_id = self._topic_id or topic_id  # unknown just after its creation
                is_the_same = topic_id == self._topic_id and not self._reader.done()
                if self._is_deleted or is_the_same:
                    continue
                failure = self._reader.exception() if self._reader.done() else "it was recreated"
                _log.error(
                    "topic %s is read again from its beginning: %s", self._settings.topic, failure
                )
                self.resign()
                await self._restart_reader(topic_id)
            except Exception as error:
                _log.warning("topic %s cannot be read: %s", self._settings.topic, error)

    def _note_deletion(self, *, is_deleted: bool) -> None:
        if is_deleted and not self._is_deleted:
            _log.error(_DELETED, self._settings.topic)
        self._is_deleted = is_deleted

    async def _restart_reader(self, topic_id: bytes) -> None:
        """Reads the topic from its beginning. Returns when its end has been reached."""
        await _cancel(self._reader)
        self._topic_id = topic_id
        self._applied_offset = -1
        reached_end = asyncio.Event()
        self._reader = asyncio.create_task(self._run_reader(reached_end))
        waiting = asyncio.create_task(reached_end.wait())
        try:
            await asyncio.wait([self._reader, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not reached_end.is_set():
            await self._reader  # which raises why it ended

    async def _fetch_topic_id(self) -> bytes:
        """Returns the id of the existing topic, or b"" if there is none."""
        described = await self._cluster.describe(
            [self._settings.topic], timeout_ms=self._settings.timeout_ms
        )
        topic = described.topics[0]
        if topic.error_code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return b""
        # Any other error does not mean that the topic has changed.
        return self._topic_id if topic.error_code else topic.topic_id

    async def _run_reader(self, reached_end: asyncio.Event) -> None:
        conf = {
            **self._settings.kafka_client_config,
            "group.id": f"{self._settings.group_id}-readers",  # required, never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # if the log start offset has moved
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        state = RegistryState()
        last_offset = published_offset = -1
        async with AioConsumer(conf) as consumer:
            start = TopicPartition(self._settings.topic, _PARTITION, OFFSET_BEGINNING)
            await consumer.assign([start])
            while True:
                first = await consumer.poll(-1)
                for message in (first, *await consumer.consume(_MAX_BATCH, 0)):
                    if message is None:
                        continue
                    if (error := message.error()) is None:
                        last_offset = self._apply(state, message, last_offset)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        self.state = state  # not before: readers never see a part of it
                        reached_end.set()
                    else:
                        _log.warning("cannot read %s: %s", self._settings.topic, error.str())
                async with self._progress:
                    # Once: the leader may have reset the offset because the topic was recreated.
                    if self.state is state and last_offset > published_offset:
                        self._applied_offset = published_offset = last_offset
                    self._progress.notify_all()

    def _apply(self, state: RegistryState, message: Message, last_offset: int) -> int:
        """Applies the message and returns its offset."""
        if (offset := _offset(message)) <= last_offset:
            raise _OffsetsRestartedError(f"offset {offset} follows {last_offset}")
        try:
            _, timestamp_ms = message.timestamp()
            state.apply(decode_record(message.key(), message.value(), timestamp_ms))
        except UnreadableRecordError as unreadable:
            _log.warning("skipped a record of %s: %s", self._settings.topic, unreadable)
        return offset


class _OffsetsRestartedError(Exception):
    """An offset is lower than the one before it: the topic was recreated, or lost records."""


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _registry_error(topic: str, error: KafkaError) -> errors.RegistryError:
    if error.code() in (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT):
        return errors.log_timed_out(f"Write to {topic} timed out: {error.str()}")
    return errors.log_failed(f"Write to {topic} failed: {error.str()}")
