"""Adapter for aiokafka."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError, OffsetOutOfRangeError, UnknownError, for_code
from tests.conformance.clients.client import (
    DEADLINE_S,
    DEFAULT,
    EARLIEST,
    AlterConfigsClient,
    BrokerError,
    Cluster,
    ErrorCode,
    Partition,
    ProducerOptions,
    ReceivedRecord,
    SentRecord,
    Setting,
)

APPEND_TIME = 1

Result = TypeVar("Result")


class AiokafkaClient(AlterConfigsClient):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self._admin = self._run(self._open_admin())

    def close(self) -> None:
        self._run(self._admin.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def produce(
        self, topic: str, records: Sequence[SentRecord], options: ProducerOptions = DEFAULT
    ) -> list[int]:
        async def send_all() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if options.acks == -1 else options.acks,
                compression_type=None if options.compression == "none" else options.compression,
                enable_idempotence=options.idempotent,
                max_request_size=options.max_request_bytes,
                linger_ms=options.linger_ms,
                request_timeout_ms=DEADLINE_S * 1000,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        record.partition,
                        record.timestamp_ms,
                        list(record.headers),
                    )
                    for record in records
                ]
                deliveries = await asyncio.gather(*futures)
                return [delivery.offset if delivery else -1 for delivery in deliveries]

        return self._run(send_all())

    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[ReceivedRecord]]:
        async def fetch() -> dict[int, list[ReceivedRecord]]:
            received: dict[int, list[ReceivedRecord]] = {partition: [] for partition in offsets}
            topic_partitions = {
                TopicPartition(topic, partition): at for partition, at in offsets.items()
            }
            missing = count
            limit = {"max_partition_fetch_bytes": max_partition_bytes}
            async with self._consumer(*topic_partitions, **limit) as consumer:
                for topic_partition, offset in topic_partitions.items():
                    if offset == EARLIEST:
                        await consumer.seek_to_beginning(topic_partition)
                    else:
                        consumer.seek(topic_partition, offset)
                while missing:
                    polled = await consumer.getmany(timeout_ms=200, max_records=missing)
                    for topic_partition, records in polled.items():
                        received[topic_partition.partition] += map(received_from, records)
                        missing -= len(records)
            return received

        return self._run(fetch())

    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[ReceivedRecord]:
        async def wait() -> ReceivedRecord:
            topic_partition = TopicPartition(topic, 0)
            async with self._consumer(topic_partition, fetch_max_wait_ms=max_wait_ms) as consumer:
                await consumer.seek_to_end(topic_partition)
                return received_from(await consumer.getone())

        return self._submit(wait())

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        async def find() -> int | None:
            topic_partition = TopicPartition(topic, partition)
            async with self._consumer(topic_partition) as consumer:
                result = (await consumer.offsets_for_times({topic_partition: timestamp_ms}))[
                    topic_partition
                ]
                return result.offset if result else None

        return self._run(find())

    def watermarks(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        async def find() -> tuple[int, int]:
            topic_partition = TopicPartition(topic, partition)
            isolation_level = "read_committed" if reads_committed else "read_uncommitted"
            async with self._consumer(topic_partition, isolation_level=isolation_level) as consumer:
                first = (await consumer.beginning_offsets([topic_partition]))[topic_partition]
                return first, (await consumer.end_offsets([topic_partition]))[topic_partition]

        return self._run(find())

    def send_create_topics(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, topic_configs=dict(configs))
        response = self._run(self._admin.create_topics([new], validate_only=validate_only))
        raise_for_code(response.topic_errors[0][1])

    def delete_topic(self, topic: str) -> None:
        response = self._run(self._admin.delete_topics([topic]))
        raise_for_code(response.topic_error_codes[0][1])

    def create_partitions(self, topic: str, total: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def describe_topic(self, topic: str) -> list[Partition]:
        (described,) = self._run(self._admin.describe_topics([topic]))
        raise_for_code(described["error_code"])
        partitions = sorted(described["partitions"], key=lambda partition: partition["partition"])
        return [
            Partition(
                partition["partition"], partition["leader"], partition["replicas"], partition["isr"]
            )
            for partition in partitions
        ]

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        topic_partition = TopicPartition(topic, partition)
        deleted = self._run(
            self._admin.delete_records({topic_partition: RecordsToDelete(before_offset)})
        )
        return deleted[topic_partition]

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_configs(self, node: int) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.BROKER, str(node)))

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        (response,) = self._run(self._admin.alter_configs([resource]))
        raise_for_code(response.resources[0][0])

    def describe_cluster(self) -> Cluster:
        described = self._run(self._admin.describe_cluster())
        return Cluster(
            described["cluster_id"],
            described["controller_id"],
            {
                setting["node_id"]: f"{setting['host']}:{setting['port']}"
                for setting in described["brokers"]
            },
        )

    def _configs(self, resource: ConfigResource) -> dict[str, Setting]:
        (response,) = self._run(self._admin.describe_configs([resource]))
        code, _, _, _, entries = response.resources[0][:5]
        raise_for_code(code)
        return {
            name: Setting(value, source, read_only, sensitive)
            for name, value, read_only, source, sensitive, *_ in entries
        }

    async def _open_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        return admin

    @asynccontextmanager
    async def _consumer(
        self, *topic_partitions: TopicPartition, **settings: Any
    ) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="none",
            **settings,
        )
        consumer.assign(topic_partitions)
        async with consumer:
            yield consumer

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        async def within_deadline() -> Result:
            try:
                return await asyncio.wait_for(work, DEADLINE_S)
            except OffsetOutOfRangeError as exception:
                raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, str(exception)) from exception
            except UnknownError as exception:
                raise BrokerError(None, "aiokafka does not know this error") from exception
            except BrokerResponseError as exception:
                raise BrokerError(exception.errno, str(exception)) from exception

        return asyncio.run_coroutine_threadsafe(within_deadline(), self._loop)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._submit(work).result(DEADLINE_S + 5)


def received_from(record: Any) -> ReceivedRecord:
    return ReceivedRecord(
        record.offset,
        record.timestamp,
        record.timestamp_type == APPEND_TIME,
        record.key,
        record.value,
        list(record.headers),
    )


def raise_for_code(code: int) -> None:
    if code:
        raise BrokerError(code, for_code(code).__name__)
