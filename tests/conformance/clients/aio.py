"""aiokafka: Kafka's protocol in plain Python, on asyncio."""

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
    BrokerError,
    Cluster,
    Code,
    Partition,
    Producing,
    Received,
    ReplacesConfigs,
    Sent,
    Setting,
)

APPEND_TIME = 1

Result = TypeVar("Result")


class AiokafkaClient(ReplacesConfigs):
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
        self, topic: str, records: Sequence[Sent], producing: Producing = DEFAULT
    ) -> list[int]:
        async def send_all() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if producing.acks == -1 else producing.acks,
                compression_type=None if producing.compression == "none" else producing.compression,
                enable_idempotence=producing.idempotent,
                max_request_size=producing.max_request_bytes,
                linger_ms=producing.linger_ms,
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
    ) -> dict[int, list[Received]]:
        async def fetch() -> dict[int, list[Received]]:
            received: dict[int, list[Received]] = {partition: [] for partition in offsets}
            places = {TopicPartition(topic, partition): at for partition, at in offsets.items()}
            missing = count
            limit = {"max_partition_fetch_bytes": max_partition_bytes}
            async with self._consumer(*places, **limit) as consumer:
                for place, offset in places.items():
                    if offset == EARLIEST:
                        await consumer.seek_to_beginning(place)
                    else:
                        consumer.seek(place, offset)
                while missing:
                    polled = await consumer.getmany(timeout_ms=200, max_records=missing)
                    for place, records in polled.items():
                        received[place.partition] += map(received_from, records)
                        missing -= len(records)
            return received

        return self._run(fetch())

    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[Received]:
        async def wait() -> Received:
            place = TopicPartition(topic, 0)
            async with self._consumer(place, fetch_max_wait_ms=max_wait_ms) as consumer:
                await consumer.seek_to_end(place)
                return received_from(await consumer.getone())

        return self._submit(wait())

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        async def find() -> int | None:
            place = TopicPartition(topic, partition)
            async with self._consumer(place) as consumer:
                found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
                return found.offset if found else None

        return self._run(find())

    def ends(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        async def find() -> tuple[int, int]:
            place = TopicPartition(topic, partition)
            isolation = "read_committed" if reads_committed else "read_uncommitted"
            async with self._consumer(place, isolation_level=isolation) as consumer:
                first = (await consumer.beginning_offsets([place]))[place]
                return first, (await consumer.end_offsets([place]))[place]

        return self._run(find())

    def ask_for_topic(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, topic_configs=dict(configs))
        answer = self._run(self._admin.create_topics([new], validate_only=validate_only))
        refuse(answer.topic_errors[0][1])

    def delete_topic(self, topic: str) -> None:
        answer = self._run(self._admin.delete_topics([topic]))
        refuse(answer.topic_error_codes[0][1])

    def create_partitions(self, topic: str, total: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def topics(self) -> set[str]:
        return set(self._run(self._admin.list_topics()))

    def describe_topic(self, topic: str) -> list[Partition]:
        (described,) = self._run(self._admin.describe_topics([topic]))
        refuse(described["error_code"])
        partitions = sorted(described["partitions"], key=lambda each: each["partition"])
        return [
            Partition(each["partition"], each["leader"], each["replicas"], each["isr"])
            for each in partitions
        ]

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        deleted = self._run(self._admin.delete_records({place: RecordsToDelete(before_offset)}))
        return deleted[place]

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_configs(self, node: int) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.BROKER, str(node)))

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        (answer,) = self._run(self._admin.alter_configs([resource]))
        refuse(answer.resources[0][0])

    def describe_cluster(self) -> Cluster:
        described = self._run(self._admin.describe_cluster())
        return Cluster(
            described["cluster_id"],
            described["controller_id"],
            {each["node_id"]: f"{each['host']}:{each['port']}" for each in described["brokers"]},
        )

    def _configs(self, resource: ConfigResource) -> dict[str, Setting]:
        (answer,) = self._run(self._admin.describe_configs([resource]))
        code, _, _, _, entries = answer.resources[0][:5]
        refuse(code)
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
        self, *places: TopicPartition, **settings: Any
    ) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="none",
            **settings,
        )
        consumer.assign(places)
        async with consumer:
            yield consumer

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        async def within_deadline() -> Result:
            try:
                return await asyncio.wait_for(work, DEADLINE_S)
            except OffsetOutOfRangeError as refused:
                raise BrokerError(Code.OFFSET_OUT_OF_RANGE, str(refused)) from refused
            except UnknownError as refused:
                raise BrokerError(None, "aiokafka does not know this error") from refused
            except BrokerResponseError as refused:
                raise BrokerError(refused.errno, str(refused)) from refused

        return asyncio.run_coroutine_threadsafe(within_deadline(), self._loop)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._submit(work).result(DEADLINE_S + 5)


def received_from(record: Any) -> Received:
    return Received(
        record.offset,
        record.timestamp,
        record.timestamp_type == APPEND_TIME,
        record.key,
        record.value,
        list(record.headers),
    )


def refuse(code: int) -> None:
    if code:
        raise BrokerError(code, for_code(code).__name__)
