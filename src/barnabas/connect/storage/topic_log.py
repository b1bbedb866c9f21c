"""A compacted topic as a log: read from its beginning, followed, and written.

    log = TopicLog(CompactedTopic("connect-configs", content="..."), client_config, apply)
    await log.start()
    await log.append([(key, value)])

`apply` gets the records of each partition in order, once. When `append` returns, they are
acknowledged and applied. Transactions that were not committed are not read.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from barnabas.client._message import Message
from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.model import IsolationLevel
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.backoff import Deadline
from barnabas.client.compacted_topic import (
    CompactedTopic,
    TopicError,
    prepare_compacted_topic,
)
from barnabas.client.consumer.aio import AioConsumer
from barnabas.client.errors import KafkaError
from barnabas.client.producer.aio import AioProducer
from barnabas.client.values import OFFSET_BEGINNING, TopicPartition

KeyAndValue = tuple[bytes, bytes | None]
"""What is written: a value of None removes the key."""

_log = logging.getLogger(__name__)
_MAX_BATCH = 1000
_RETRY_PAUSE_S = 0.1
_IDLE_FETCH_WAIT_MS = 5_000


class TopicLog:
    """Lives on one event loop. `start` must have returned before anything else is called."""

    def __init__(
        self,
        topic: CompactedTopic,
        client_config: Mapping[str, Any],
        apply: Callable[[Message], None],
        *,
        start_timeout_ms: int = 60_000,
        timeout_ms: int = 30_000,
    ) -> None:
        self._topic = topic
        self._client_config = dict(client_config)
        self._apply = apply
        self._start_timeout_ms = start_timeout_ms
        self._timeout_ms = timeout_ms
        self._admin: AioAdminClient | None = None
        self._consumer: AioConsumer | None = None
        self._producer: AioProducer | None = None
        self._reader: asyncio.Task[None] | None = None
        self.positions: dict[int, int] = {}  # the offset after what was applied, by partition
        self._progress = asyncio.Condition()
        self._error = ""

    @property
    def topic(self) -> str:
        return self._topic.name

    async def start(self) -> None:
        """Creates the topic if there is none. Returns when it has been read to its end."""
        await prepare_compacted_topic(
            self._client_config,
            self._topic,
            start_timeout_ms=self._start_timeout_ms,
            timeout_ms=self._timeout_ms,
        )
        self._admin = AioAdminClient(self._client_config)
        self._consumer = AioConsumer(
            {
                **self._client_config,
                "group.id": f"{self.topic}-readers",  # required, never joined
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # if the log start offset has moved
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.max.wait.ms": _IDLE_FETCH_WAIT_MS,
            }
        )
        partitions = await self._partitions()
        self.positions = dict.fromkeys(partitions, 0)
        await self._consumer.assign(
            [TopicPartition(self.topic, each, OFFSET_BEGINNING) for each in partitions]
        )
        self._reader = asyncio.create_task(self._read(self._consumer))
        await self.read_to_end()

    async def stop(self) -> None:
        """Waits for records that were written without waiting, and closes the clients."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._producer is not None:
            await self._producer.close(self._timeout_ms / 1000)
        if self._consumer is not None:
            await self._consumer.close()
        if self._admin is not None:
            await self._admin.close()

    async def read_to_end(self) -> None:
        """Returns when everything is applied that was committed before the call."""
        assert self._admin is not None
        latest = {TopicPartition(self.topic, each): OffsetSpec.latest() for each in self.positions}
        ends = await self._admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED)
        await self.wait_until_applied(
            {partition.partition: ends[partition].offset for partition in latest}
        )

    async def wait_until_applied(self, positions: Mapping[int, int]) -> None:
        """Returns when everything before these offsets is applied. Raises TimeoutError."""

        def is_applied() -> bool:
            return all(self.positions.get(each, 0) >= end for each, end in positions.items())

        async with asyncio.timeout(self._timeout_ms / 1000), self._progress:
            await self._progress.wait_for(lambda: is_applied() or self._is_reader_done())
        if not is_applied():
            assert self._reader is not None
            await self._reader  # which raises why it ended

    async def append(self, records: Iterable[KeyAndValue]) -> None:
        """Returns when the records are acknowledged and applied. Raises KafkaException."""
        await self.wait_until_applied(next_offsets(await self.write(records)))

    async def write(self, records: Iterable[KeyAndValue]) -> Sequence[Message]:
        """Returns the records when they are acknowledged."""
        if self._producer is None:
            self._producer = AioProducer(writer_config(self._client_config))
        return await produce_all(self._producer, self.topic, records)

    async def _partitions(self) -> list[int]:
        """Returns the partitions, once every broker knows a new topic."""
        assert self._consumer is not None
        deadline = Deadline.after(self._timeout_ms)
        while True:
            cluster = await self._consumer.list_topics(self.topic, self._timeout_ms / 1000)
            topic = cluster.topics.get(self.topic)
            if topic is not None and topic.partitions:
                return sorted(topic.partitions)
            if deadline.has_passed:
                raise TopicError(f"Topic {self.topic} is gone, or this principal may not read it.")
            await asyncio.sleep(_RETRY_PAUSE_S)

    def _is_reader_done(self) -> bool:
        return self._reader is None or self._reader.done()

    async def _read(self, consumer: AioConsumer) -> None:
        try:
            while True:
                first = await consumer.poll(-1)
                for message in (first, *await consumer.consume(_MAX_BATCH, 0)):
                    if message is not None:
                        self._on_message(message)
                async with self._progress:
                    self._progress.notify_all()
        except Exception:
            _log.exception("topic %s is not read any more", self.topic)
            raise
        finally:
            async with self._progress:
                self._progress.notify_all()

    def _on_message(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        error = message.error()
        if error is None:
            assert partition is not None
            assert offset is not None
            self._apply(message)
            self.positions[partition] = offset + 1
            self._error = ""
        elif error.code() == KafkaError._PARTITION_EOF:
            assert partition is not None
            assert offset is not None
            self.positions[partition] = max(self.positions[partition], offset)
        elif error.str() != self._error:
            self._error = error.str()
            _log.warning("cannot read topic %s: %s", self.topic, self._error)


def writer_config(client_config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a producer of such a topic.

    Java's partitioner, because a key must stay in one partition to be compacted.
    """
    return {
        **client_config,
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 0,
        "allow.auto.create.topics": False,  # an auto-created topic is not compacted
    }


async def produce_all(
    producer: AioProducer, topic: str, records: Iterable[KeyAndValue]
) -> Sequence[Message]:
    """Returns the records when they are acknowledged."""
    deliveries = [await producer.produce(topic, value=value, key=key) for key, value in records]
    return await asyncio.gather(*deliveries)


def next_offsets(written: Iterable[Message]) -> dict[int, int]:
    """Returns the offset after the last of the records, by partition."""
    positions: dict[int, int] = {}
    for message in written:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        positions[partition] = max(positions.get(partition, 0), offset + 1)
    return positions


def json_record(key: str, value: Mapping[str, Any]) -> KeyAndValue:
    """Returns a record as Connect writes them: without spaces, and not in ASCII only."""
    return key.encode(), json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
