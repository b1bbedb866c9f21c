"""Adapter for confluent-kafka."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.conformance.clients.client import (
    DEADLINE_S,
    DEFAULT,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AlterConfigsClient,
    BrokerError,
    Cluster,
    ErrorCode,
    IncrementalAlterConfigsClient,
    ListOffsetsClient,
    Partition,
    ProducerOptions,
    ReceivedRecord,
    SentRecord,
    Setting,
)


class ConfluentClient(AlterConfigsClient, IncrementalAlterConfigsClient, ListOffsetsClient):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._threads = ThreadPoolExecutor()

    def close(self) -> None:
        self._threads.shutdown()

    def produce(
        self, topic: str, records: Sequence[SentRecord], options: ProducerOptions = DEFAULT
    ) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": options.acks,
                "compression.type": options.compression,
                "enable.idempotence": options.idempotent,
                "message.max.bytes": options.max_request_bytes,
                "linger.ms": options.linger_ms,
                "delivery.timeout.ms": DEADLINE_S * 1000,
            }
        )
        reports: dict[int, tuple[Any, Message]] = {}
        for index, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
                on_delivery=lambda error, message, index=index: reports.update(
                    {index: (error, message)}
                ),
            )
        assert producer.flush(DEADLINE_S) == 0, "not all records were delivered in time"
        for error, _ in reports.values():
            if error:
                raise BrokerError(error.code(), error.str())
        offsets = [reports[index][1].offset() for index in range(len(records))]
        return [-1 if options.acks == 0 else offset for offset in offsets]

    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[ReceivedRecord]]:
        received: dict[int, list[ReceivedRecord]] = {partition: [] for partition in offsets}
        topic_partitions = [
            TopicPartition(topic, partition, at) for partition, at in offsets.items()
        ]
        missing, deadline = count, time.monotonic() + DEADLINE_S
        with self._consumer({"fetch.message.max.bytes": max_partition_bytes}) as consumer:
            consumer.assign(topic_partitions)
            while missing:
                assert time.monotonic() < deadline, f"{missing} of {count} records did not come"
                for message in consumer.consume(missing, timeout=0.2):
                    received[message.partition()].append(received_from(message))
                    missing -= 1
        return received

    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[ReceivedRecord]:
        def wait() -> ReceivedRecord:
            with self._consumer({"fetch.wait.max.ms": max_wait_ms}) as consumer:
                consumer.assign([TopicPartition(topic, 0, LATEST)])
                message = consumer.poll(DEADLINE_S)
                assert message is not None, "no record in time"
                return received_from(message)

        return self._threads.submit(wait)

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        with self._consumer() as consumer:
            requested = TopicPartition(topic, partition, timestamp_ms)
            with translated_errors():
                (result,) = consumer.offsets_for_times([requested], timeout=DEADLINE_S)
            return result.offset if result.offset >= 0 else None

    def watermarks(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        isolation_level = "read_committed" if reads_committed else "read_uncommitted"
        with self._consumer({"isolation.level": isolation_level}) as consumer, translated_errors():
            topic_partition = TopicPartition(topic, partition)
            return consumer.get_watermark_offsets(topic_partition, timeout=DEADLINE_S)

    def send_create_topics(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replication_factor, config=dict(configs))
        single_result(self._admin.create_topics([new], validate_only=validate_only))

    def delete_topic(self, topic: str) -> None:
        single_result(self._admin.delete_topics([topic]))

    def create_partitions(self, topic: str, total: int) -> None:
        single_result(self._admin.create_partitions([NewPartitions(topic, total)]))

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=DEADLINE_S).topics)

    def describe_topic(self, topic: str) -> list[Partition]:
        described = single_result(self._admin.describe_topics(TopicCollection([topic])))
        return [
            Partition(
                partition.id,
                partition.leader.id,
                [node.id for node in partition.replicas],
                [node.id for node in partition.isr],
            )
            for partition in described.partitions
        ]

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        topic_partition = TopicPartition(topic, partition, before_offset)
        return single_result(self._admin.delete_records([topic_partition])).low_watermark

    def list_offset(self, topic: str, spec: int, *, partition: int = 0) -> int:
        specs = {
            EARLIEST: OffsetSpec.earliest(),
            LATEST: OffsetSpec.latest(),
            MAX_TIMESTAMP: OffsetSpec.max_timestamp(),
        }
        requested = specs.get(spec) or OffsetSpec.for_timestamp(spec)
        return single_result(
            self._admin.list_offsets({TopicPartition(topic, partition): requested})
        ).offset

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs(ConfigResource(ResourceType.TOPIC, topic))

    def broker_configs(self, node: int) -> dict[str, Setting]:
        return self._configs(ConfigResource(ResourceType.BROKER, str(node)))

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        single_result(self._admin.alter_configs([resource]))

    def change_topic_config(self, topic: str, name: str, operation: str, value: str | None) -> None:
        entry = ConfigEntry(
            name, value, incremental_operation=getattr(AlterConfigOpType, operation)
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        single_result(self._admin.incremental_alter_configs([resource]))

    def describe_cluster(self) -> Cluster:
        described = self._admin.describe_cluster().result(DEADLINE_S)
        return Cluster(
            described.cluster_id,
            described.controller.id,
            {node.id: f"{node.host}:{node.port}" for node in described.nodes},
        )

    def _configs(self, resource: ConfigResource) -> dict[str, Setting]:
        entries = single_result(self._admin.describe_configs([resource]))
        return {
            name: Setting(
                entry.value, int(entry.source), bool(entry.is_read_only), bool(entry.is_sensitive)
            )
            for name, entry in entries.items()
        }

    @contextmanager
    def _consumer(self, settings: Mapping[str, Any] | None = None) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "not-joined",  # the library requires a name
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **(settings or {}),
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()


def received_from(message: Message) -> ReceivedRecord:
    if error := message.error():
        out_of_range = error.code() == KafkaError._AUTO_OFFSET_RESET
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE if out_of_range else error.code(), error.str()
        )
    timestamp_type, timestamp_ms = message.timestamp()
    return ReceivedRecord(
        message.offset(),
        timestamp_ms,
        timestamp_type == TIMESTAMP_LOG_APPEND_TIME,
        message.key(),
        message.value(),
        list(message.headers() or []),
    )


def single_result(futures: Mapping[Any, "Future[Any]"]) -> Any:
    (future,) = futures.values()
    with translated_errors():
        return future.result(DEADLINE_S)


@contextmanager
def translated_errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        raise BrokerError(error.code(), error.str()) from exception
