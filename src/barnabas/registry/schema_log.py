"""`_schemas`: read from its beginning for ever, and written by one instance at a time.

Writes are transactions of one transactional id, the topic's own. Whoever takes over begins with
it anew, which shuts out whoever wrote before, at the broker: a writer that was paused and does
not know that it has been replaced can do no harm. Then it appends a NOOP; once that is read back,
all that was ever written has been read.

If the topic is deleted, what it said stays known, and cannot be changed. If it is created again,
what it says then is all that is known.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from barnabas.client._message import Message
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.aio import AioConsumer
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.producer.aio import AioProducer
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
from barnabas.registry.topic import prepare_topic

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PARTITION = 0
_BATCH = 1000
_PAUSE_S = 1
_GLANCE_S = 5  # how often it is looked at whether the topic is still the same
_GONE = "topic %s is gone: what it said can be read here, and be changed once it is created again"


class SchemaLog:
    """`state` is what the topic says, as far as it has been read."""

    def __init__(self, settings: RegistrySettings, cluster: Cluster) -> None:
        self.state = RegistryState()
        self._settings = settings
        self._cluster = cluster
        self._timeout_s = settings.timeout_ms / 1000
        self._topic_id = b""
        self._is_gone = False
        self._read_up_to = -1  # the offset of the last record that was applied
        self._progress = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._producer: AioProducer | None = None
        self._is_retired = False

    async def start(self) -> None:
        """Have the topic, and read what it holds."""
        await prepare_topic(self._settings)
        await self._begin(await self._topic())
        self._watching = asyncio.create_task(self._watch())

    def require_topic(self) -> None:
        """RegistryError 50001 if it is known to be gone."""
        if self._is_gone:
            raise errors.log_failed(_GONE % self._settings.topic)

    async def become_leader(self) -> None:
        """Be the one who writes, knowing all that was written."""
        await self._step_down()
        conf = {
            **self._settings.kafka_client_config,
            "transactional.id": f"schema-registry-{self._settings.topic}",  # whatever the group
            "transaction.timeout.ms": max(1000, self._settings.timeout_ms),
            "delivery.timeout.ms": self._settings.timeout_ms,
            "request.timeout.ms": self._settings.timeout_ms,
            "linger.ms": 0,
            "allow.auto.create.topics": False,  # it would not be compacted
        }
        self._producer = AioProducer(conf)
        self._is_retired = False
        await self._in_time(self._producer.init_transactions(self._timeout_s))
        known = self.state.highest_deleted_ids
        await self.append([noop_record(known)])
        if (
            self.state.highest_deleted_ids != known
        ):  # which was not read yet: the latest NOOP has to tell all
            await self.append([noop_record(self.state.highest_deleted_ids)])

    @property
    def applied_offset(self) -> int:
        return self._read_up_to

    @property
    def is_leader(self) -> bool:
        return self._producer is not None and not self._is_retired

    def resign(self) -> None:
        """Somebody else writes: what is under way may end, but then it has to be taken over."""
        self._is_retired = True

    async def append(self, records: Sequence[RegistryRecord]) -> None:
        """All of them or none. Return when they are applied here."""
        await self._in_time(self._transaction(records))

    async def wait_until_applied(self, offset: int) -> None:
        """Return when what is at `offset` has been applied."""
        async with self._progress:
            await self._progress.wait_for(lambda: self._read_up_to >= offset)

    async def _step_down(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.purge()
            await producer.close(0)

    async def stop(self) -> None:
        await self._step_down()
        for task in (self._watching, self._reading):
            await _ended(task)

    async def _transaction(self, records: Sequence[RegistryRecord]) -> None:
        producer = self._producer
        assert producer is not None
        before = self._read_up_to
        await producer.begin_transaction()
        try:
            messages = await self._delivered(producer, records)
        except KafkaException as failure:
            if error_in(failure).code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            # This says nothing against who writes: the next one may be smaller.
            await producer.abort_transaction(self._timeout_s)
            raise errors.too_large(
                "Register operation failed because schema is too large"
            ) from failure
        await producer.commit_transaction(self._timeout_s)
        written = max(_offset(message) for message in messages)
        if written <= before:  # in another topic of the name, which has still to be read
            self._read_up_to = -1
        await self.wait_until_applied(written)

    async def _delivered(
        self, producer: AioProducer, records: Sequence[RegistryRecord]
    ) -> Sequence[Message]:
        deliveries = []
        for record in records:
            key, value = encode_record(record)
            deliveries.append(
                await producer.produce(
                    self._settings.topic, value=value, key=key, partition=_PARTITION
                )
            )
        return await asyncio.gather(*deliveries)

    async def _in_time(self, writing: Coroutine[Any, Any, T]) -> T:
        """What fails leaves it open whether it was written: only a new beginning tells."""
        try:
            return await asyncio.wait_for(writing, self._timeout_s)
        except TimeoutError:
            await self._step_down()
            raise errors.log_timed_out(
                f"Write to {self._settings.topic} timed out after {self._timeout_s:g} s"
            ) from None
        except KafkaException as failure:
            await self._step_down()
            raise _told(self._settings.topic, error_in(failure)) from failure

    async def _watch(self) -> None:
        """Begin anew when there is another topic of the name, or reading it has failed."""
        while True:
            assert self._reading is not None
            if self._reading.done():  # and could not be begun again
                await asyncio.sleep(_PAUSE_S)
            await asyncio.wait([self._reading], timeout=_GLANCE_S)
            try:
                there = await self._topic()
                self._notice(is_gone=not there)
                self._topic_id = self._topic_id or there  # just created, it was not heard of yet
                is_the_same = there == self._topic_id and not self._reading.done()
                if self._is_gone or is_the_same:
                    continue
                failure = self._reading.exception() if self._reading.done() else "it is another"
                _log.error("topic %s is read anew: %s", self._settings.topic, failure)
                self.resign()
                await self._begin(there)
            except Exception as error:
                _log.warning("topic %s cannot be read: %s", self._settings.topic, error)

    def _notice(self, *, is_gone: bool) -> None:
        if is_gone and not self._is_gone:
            _log.error(_GONE, self._settings.topic)
        self._is_gone = is_gone

    async def _begin(self, topic_id: bytes) -> None:
        """Read the topic from its beginning for ever; return when its end has been reached."""
        await _ended(self._reading)
        self._topic_id = topic_id
        self._read_up_to = -1
        at_the_end = asyncio.Event()
        self._reading = asyncio.create_task(self._read(at_the_end))
        waiting = asyncio.create_task(at_the_end.wait())
        try:
            await asyncio.wait([self._reading, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not at_the_end.is_set():
            await self._reading  # which tells why it ended

    async def _topic(self) -> bytes:
        """The id of the topic that is there; nothing if there is none."""
        told = await self._cluster.describe(
            [self._settings.topic], timeout_ms=self._settings.timeout_ms
        )
        topic = told.topics[0]
        if topic.error_code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return b""
        # Any other error says nothing about which it is.
        return self._topic_id if topic.error_code else topic.topic_id

    async def _read(self, at_the_end: asyncio.Event) -> None:
        conf = {
            **self._settings.kafka_client_config,
            "group.id": f"{self._settings.group_id}-readers",  # asked for, but never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # should the beginning have moved meanwhile
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        state, last, told = RegistryState(), -1, -1
        async with AioConsumer(conf) as consumer:
            place = TopicPartition(self._settings.topic, _PARTITION, OFFSET_BEGINNING)
            await consumer.assign([place])
            while True:
                first = await consumer.poll(-1)
                for message in (first, *await consumer.consume(_BATCH, 0)):
                    if message is None:
                        continue
                    if (error := message.error()) is None:
                        last = self._applied_to(state, message, last)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        self.state = state  # from here on: nobody is told half of it
                        at_the_end.set()
                    else:
                        _log.warning("reading %s: %s", self._settings.topic, error.str())
                async with self._progress:
                    # Once: whoever writes may know by now that the topic is another.
                    if self.state is state and last > told:
                        self._read_up_to = told = last
                    self._progress.notify_all()

    def _applied_to(self, state: RegistryState, message: Message, last: int) -> int:
        """The offset of the message, once it has been applied."""
        if (offset := _offset(message)) <= last:
            raise _BegunAnewError(f"offset {offset} follows {last}")
        try:
            _, timestamp_ms = message.timestamp()
            state.apply(decode_record(message.key(), message.value(), timestamp_ms))
        except UnreadableRecordError as unreadable:
            _log.warning("a record of %s is left out: %s", self._settings.topic, unreadable)
        return offset


class _BegunAnewError(Exception):
    """Offsets have begun anew: the topic is another, or has lost its end."""


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _told(topic: str, error: KafkaError) -> errors.RegistryError:
    if error.code() in (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT):
        return errors.log_timed_out(f"Write to {topic} timed out: {error.str()}")
    return errors.log_failed(f"Write to {topic} failed: {error.str()}")
