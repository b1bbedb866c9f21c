"""Adapter for kafka-python."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, ConfigSourceType
from kafka.codec import has_snappy
from kafka.errors import BrokerResponseError, for_code
from tests.conformance.clients.client import (
    DEADLINE_S,
    DEFAULT,
    EARLIEST,
    BrokerError,
    Cluster,
    IncrementalAlterConfigsClient,
    ListOffsetsClient,
    LogDirsClient,
    Partition,
    ProducerOptions,
    ReceivedRecord,
    SentRecord,
    Setting,
)

APPEND_TIME = 1


class KafkaPythonClient(IncrementalAlterConfigsClient, ListOffsetsClient, LogDirsClient):
    compressions = ("none", "gzip", "lz4", "zstd", *(["snappy"] if has_snappy() else []))

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._threads = ThreadPoolExecutor()

    def close(self) -> None:
        self._threads.shutdown()
        self._admin.close()

    def produce(
        self, topic: str, records: Sequence[SentRecord], options: ProducerOptions = DEFAULT
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=options.acks,
            compression_type=None if options.compression == "none" else options.compression,
            enable_idempotence=options.idempotent,
            max_request_size=options.max_request_bytes,
            linger_ms=options.linger_ms,
            delivery_timeout_ms=DEADLINE_S * 1000 + 10_000,
            request_timeout_ms=DEADLINE_S * 1000,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(timeout=DEADLINE_S)
            with translated_errors():
                offsets = [future.get(DEADLINE_S).offset for future in futures]
            return [-1 if options.acks == 0 else offset for offset in offsets]
        finally:
            producer.close(timeout=DEADLINE_S)

    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[ReceivedRecord]]:
        received: dict[int, list[ReceivedRecord]] = {partition: [] for partition in offsets}
        topic_partitions = {
            TopicPartition(topic, partition): at for partition, at in offsets.items()
        }
        missing, deadline = count, time.monotonic() + DEADLINE_S
        with self._consumer(max_partition_fetch_bytes=max_partition_bytes) as consumer:
            consumer.assign(list(topic_partitions))
            for topic_partition, offset in topic_partitions.items():
                if offset == EARLIEST:
                    consumer.seek_to_beginning(topic_partition)
                else:
                    consumer.seek(topic_partition, offset)
            while missing:
                assert time.monotonic() < deadline, f"{missing} of {count} records did not come"
                with translated_errors():
                    polled = consumer.poll(200, max_records=missing)
                for topic_partition, records in polled.items():
                    received[topic_partition.partition] += map(received_from, records)
                    missing -= len(records)
        return received

    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[ReceivedRecord]:
        def wait() -> ReceivedRecord:
            with self._consumer(fetch_max_wait_ms=max_wait_ms) as consumer:
                topic_partition = TopicPartition(topic, 0)
                consumer.assign([topic_partition])
                consumer.seek_to_end(topic_partition)
                (record,) = consumer.poll(DEADLINE_S * 1000, max_records=1)[topic_partition]
                return received_from(record)

        return self._threads.submit(wait)

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        with self._consumer() as consumer:
            topic_partition = TopicPartition(topic, partition)
            result = consumer.offsets_for_times({topic_partition: timestamp_ms})[topic_partition]
            return result.offset if result else None

    def watermarks(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        isolation_level = "read_committed" if reads_committed else "read_uncommitted"
        with self._consumer(isolation_level=isolation_level) as consumer, translated_errors():
            topic_partition = TopicPartition(topic, partition)
            first = consumer.beginning_offsets([topic_partition])[topic_partition]
            return first, consumer.end_offsets([topic_partition])[topic_partition]

    def send_create_topics(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        options = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(configs),
        }
        with translated_errors():
            self._admin.create_topics({topic: options}, validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        with translated_errors():
            self._admin.delete_topics([topic])

    def create_partitions(self, topic: str, total: int) -> None:
        with translated_errors():
            self._admin.create_partitions({topic: total})

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def describe_topic(self, topic: str) -> list[Partition]:
        (described,) = self._admin.describe_topics([topic])
        raise_for_code(described["error_code"])
        partitions = sorted(
            described["partitions"], key=lambda partition: partition["partition_index"]
        )
        return [
            Partition(
                partition["partition_index"],
                partition["leader_id"],
                list(partition["replica_nodes"]),
                list(partition["isr_nodes"]),
            )
            for partition in partitions
        ]

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        topic_partition = TopicPartition(topic, partition)
        with translated_errors():
            return self._admin.delete_records({topic_partition: before_offset})[topic_partition][
                "low_watermark"
            ]

    def list_offset(self, topic: str, spec: int, *, partition: int = 0) -> int:
        topic_partition = TopicPartition(topic, partition)
        return self._admin.list_partition_offsets({topic_partition: spec})[topic_partition].offset

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_configs(self, node: int) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.BROKER, str(node)))

    def change_topic_config(self, topic: str, name: str, operation: str, value: str | None) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: (operation, value)})
        response = self._admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
        result = response["topic"][topic]
        if failure := re.search(r"\[Error (\d+)\]", result):
            raise BrokerError(int(failure[1]), result)

    def describe_cluster(self) -> Cluster:
        described = self._admin.describe_cluster()
        return Cluster(
            described["cluster_id"],
            described["controller_id"],
            {
                setting["broker_id"]: f"{setting['host']}:{setting['port']}"
                for setting in described["brokers"]
            },
        )

    def log_dirs(self, topic: str) -> dict[str, dict[int, int]]:
        (response,) = self._admin.describe_log_dirs([topic])
        return {
            log_dir["log_dir"]: {
                partition["partition_index"]: partition["partition_size"]
                for described in log_dir["topics"]
                for partition in described["partitions"]
            }
            for log_dir in response["log_dirs"]
        }

    def _configs(self, resource: ConfigResource) -> dict[str, Setting]:
        by_type = self._admin.describe_configs([resource], config_filter="all")
        (by_name,) = by_type.values()
        return {
            name: Setting(
                entry["value"],
                ConfigSourceType[entry["config_source"]].value,
                entry["read_only"],
                entry["is_sensitive"],
            )
            for name, entry in by_name[resource.name].items()
        }

    @contextmanager
    def _consumer(self, **settings: Any) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            request_timeout_ms=3 * DEADLINE_S * 1000,
            **settings,
        )
        try:
            yield consumer
        finally:
            consumer.close()


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


@contextmanager
def translated_errors() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as exception:
        raise BrokerError(exception.errno, str(exception)) from exception
