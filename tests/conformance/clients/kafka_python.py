"""kafka-python: Kafka's protocol in plain Python, with threads."""

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
    ChangesConfigs,
    Cluster,
    DescribesLogDirs,
    ListsOffsets,
    Partition,
    Producing,
    Received,
    Sent,
    Setting,
)

APPEND_TIME = 1


class KafkaPythonClient(ChangesConfigs, ListsOffsets, DescribesLogDirs):
    compressions = ("none", "gzip", "lz4", "zstd", *(["snappy"] if has_snappy() else []))

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._threads = ThreadPoolExecutor()

    def close(self) -> None:
        self._threads.shutdown()
        self._admin.close()

    def produce(
        self, topic: str, records: Sequence[Sent], producing: Producing = DEFAULT
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=producing.acks,
            compression_type=None if producing.compression == "none" else producing.compression,
            enable_idempotence=producing.idempotent,
            max_request_size=producing.max_request_bytes,
            linger_ms=producing.linger_ms,
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
            with refusals():
                offsets = [future.get(DEADLINE_S).offset for future in futures]
            return [-1 if producing.acks == 0 else offset for offset in offsets]
        finally:
            producer.close(timeout=DEADLINE_S)

    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[Received]]:
        received: dict[int, list[Received]] = {partition: [] for partition in offsets}
        places = {TopicPartition(topic, partition): at for partition, at in offsets.items()}
        missing, deadline = count, time.monotonic() + DEADLINE_S
        with self._consumer(max_partition_fetch_bytes=max_partition_bytes) as consumer:
            consumer.assign(list(places))
            for place, offset in places.items():
                if offset == EARLIEST:
                    consumer.seek_to_beginning(place)
                else:
                    consumer.seek(place, offset)
            while missing:
                assert time.monotonic() < deadline, f"{missing} of {count} records did not come"
                with refusals():
                    polled = consumer.poll(200, max_records=missing)
                for place, records in polled.items():
                    received[place.partition] += map(received_from, records)
                    missing -= len(records)
        return received

    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[Received]:
        def wait() -> Received:
            with self._consumer(fetch_max_wait_ms=max_wait_ms) as consumer:
                place = TopicPartition(topic, 0)
                consumer.assign([place])
                consumer.seek_to_end(place)
                (record,) = consumer.poll(DEADLINE_S * 1000, max_records=1)[place]
                return received_from(record)

        return self._threads.submit(wait)

    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        with self._consumer() as consumer:
            place = TopicPartition(topic, partition)
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
            return found.offset if found else None

    def ends(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        isolation = "read_committed" if reads_committed else "read_uncommitted"
        with self._consumer(isolation_level=isolation) as consumer, refusals():
            place = TopicPartition(topic, partition)
            first = consumer.beginning_offsets([place])[place]
            return first, consumer.end_offsets([place])[place]

    def ask_for_topic(
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
        with refusals():
            self._admin.create_topics({topic: options}, validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        with refusals():
            self._admin.delete_topics([topic])

    def create_partitions(self, topic: str, total: int) -> None:
        with refusals():
            self._admin.create_partitions({topic: total})

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def describe_topic(self, topic: str) -> list[Partition]:
        (described,) = self._admin.describe_topics([topic])
        refuse(described["error_code"])
        partitions = sorted(described["partitions"], key=lambda each: each["partition_index"])
        return [
            Partition(
                each["partition_index"],
                each["leader_id"],
                list(each["replica_nodes"]),
                list(each["isr_nodes"]),
            )
            for each in partitions
        ]

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        with refusals():
            return self._admin.delete_records({place: before_offset})[place]["low_watermark"]

    def list_offset(self, topic: str, spec: int, *, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        return self._admin.list_partition_offsets({place: spec})[place].offset

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_configs(self, node: int) -> dict[str, Setting]:
        return self._configs(ConfigResource(ConfigResourceType.BROKER, str(node)))

    def change_topic_config(self, topic: str, name: str, operation: str, value: str | None) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: (operation, value)})
        answer = self._admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
        result = answer["topic"][topic]
        if failure := re.search(r"\[Error (\d+)\]", result):
            raise BrokerError(int(failure[1]), result)

    def describe_cluster(self) -> Cluster:
        described = self._admin.describe_cluster()
        return Cluster(
            described["cluster_id"],
            described["controller_id"],
            {each["broker_id"]: f"{each['host']}:{each['port']}" for each in described["brokers"]},
        )

    def log_dirs(self, topic: str) -> dict[str, dict[int, int]]:
        (answer,) = self._admin.describe_log_dirs([topic])
        return {
            each["log_dir"]: {
                partition["partition_index"]: partition["partition_size"]
                for described in each["topics"]
                for partition in described["partitions"]
            }
            for each in answer["log_dirs"]
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


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as refused:
        raise BrokerError(refused.errno, str(refused)) from refused
