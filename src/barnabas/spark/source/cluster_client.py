"""The driver's requests to the cluster: partitions, their offsets, new records, commits."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from time import sleep

from barnabas.client.admin.group_offsets import alter_consumer_group_offsets
from barnabas.client.admin.model import ConsumerGroupTopicPartitions, IsolationLevel
from barnabas.client.admin.offsets import ListOffsetsResultInfo, OffsetSpec, list_offsets
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results
from barnabas.client.cluster import Backoff
from barnabas.client.consumer.offset_lookup import MAX_UNKNOWN_TOPIC_ATTEMPTS
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.client.settings import AdminSettings
from barnabas.client.values import TopicPartition
from barnabas.spark.source.connection import ClusterConnection, SourceError
from barnabas.spark.source.new_record_waiter import NewRecordWaiter
from barnabas.spark.source.offsets import EARLIEST, LATEST, Offsets, SourcePartition
from barnabas.spark.source.options import TopicSelection
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

log = logging.getLogger(__name__)

_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, KafkaError._UNKNOWN_PARTITION})


class SourceClusterClient:
    """Looks up partitions and offsets, with one or two requests to each broker."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._cluster = connection.cluster
        self._settings = connection.settings
        self._isolation = IsolationLevel(int(self._settings.isolation_level == "read_committed"))
        settings = AdminSettings(default_api_timeout_ms=self._settings.default_api_timeout_ms)
        self._admin = AdminRequests(self._cluster, settings)
        self._waiter = NewRecordWaiter(self._cluster, self._settings)
        self._last_partitions: frozenset[SourcePartition] = frozenset()
        self._gone: set[str | SourcePartition] = set()
        """Topics and partitions that were missing after all retries."""

    def partitions(
        self, topics: TopicSelection, *, may_be_gone: bool = False
    ) -> frozenset[SourcePartition]:
        """Returns the current partitions.

        Raises SourceError for a named topic that does not exist, unless `may_be_gone`.
        """
        if topics.partitions:
            return topics.partitions
        for pause_s in self._pauses_s():
            sleep(pause_s)
            described = self._describe_topics(topics)
            partitions, unknown = _partitions(described), _unknown(described)
            if unknown <= self._gone and partitions >= self._last_partitions:
                break
        self._last_partitions = partitions
        self._gone |= unknown
        if unknown and not may_be_gone:
            topic = min(unknown)
            raise SourceError(f"There is no topic {topic!r}: create it, or correct subscribe.")
        return partitions

    def offsets(self, timestamps: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        """Looks up offsets by timestamp in ms, LATEST or EARLIEST.

        The offset is -1 if no record is that recent. Partitions that do not exist are left out.
        """
        offsets: dict[SourcePartition, int] = {}
        missing = dict(timestamps)
        for pause_s in self._pauses_s():
            sleep(pause_s)
            offsets |= self._list_offsets(missing)
            missing = {
                partition: when
                for partition, when in timestamps.items()
                if partition not in offsets
            }
            if missing.keys() <= self._gone:
                break
        self._gone = (self._gone - offsets.keys()) | missing.keys()
        return offsets

    def latest(
        self, partitions: Iterable[SourcePartition], *, read: Offsets | None = None
    ) -> dict[SourcePartition, int]:
        """Returns the log ends; retries while one is before the offset that was `read`.

        A new leader may not know the high watermark of its partition yet.
        """
        timestamps = dict.fromkeys(partitions, LATEST)
        positions = read or {}
        for pause_s in self._pauses_s():
            sleep(pause_s)
            ends = self.offsets(timestamps)
            if all(end >= positions.get(partition, end) for partition, end in ends.items()):
                break
        return ends

    def earliest(self, partitions: Iterable[SourcePartition]) -> dict[SourcePartition, int]:
        return self.offsets(dict.fromkeys(partitions, EARLIEST))

    def wait_for_records(self, ends: Offsets, timeout_ms: int) -> dict[SourcePartition, int] | None:
        """Waits for records after `ends`. Returns the new ends of partitions; {} after the timeout.

        Returns None if a broker responds with an error: look up the offsets then.
        """
        return self._connection.run(self._waiter.wait(ends, timeout_ms))

    def commit_async(self, group_id: str, offsets: Offsets) -> "Future[None]":
        """Commit offsets of a group in the background; an error is logged."""
        return self._connection.thread.submit(self._commit(group_id, offsets))

    async def _commit(self, group_id: str, offsets: Offsets) -> None:
        partitions = [TopicPartition(*key, offset) for key, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group_id, partitions)]
        try:
            groups = await alter_consumer_group_offsets(self._admin, request)
            committed = groups[group_id].topic_partitions or []
        except KafkaException as error:
            log.warning("group %s: progress is not committed: %s", group_id, error_in(error).str())
            return
        for result in committed:
            if result.error is not None:
                partition = SourcePartition(result.topic, result.partition)
                reason = result.error.str()
                log.warning("group %s: %s is not committed: %s", group_id, partition, reason)

    def _pauses_s(self) -> Iterator[float]:
        """Pauses before the attempts to find a partition: brokers learn of it one by one.

        A partition that is taken for deleted too early would be new later, and be read again.
        """
        yield 0
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        for _ in range(1, MAX_UNKNOWN_TOPIC_ATTEMPTS):
            yield backoff.next_ms() / 1000

    def _describe_topics(self, topics: TopicSelection) -> list[MetadataResponseTopic]:
        """Returns the metadata of the topics that are named or match."""
        timeout_ms = self._settings.default_api_timeout_ms
        metadata: MetadataResponse = self._connection.run(
            self._cluster.describe(topics.names or None, timeout_ms=timeout_ms)
        )
        if topics.names:
            return metadata.topics
        pattern = re.compile(topics.pattern)
        return [
            topic
            for topic in metadata.topics
            if topic.name and not topic.is_internal and pattern.fullmatch(topic.name)
        ]

    def _list_offsets(
        self, timestamps: Mapping[SourcePartition, int]
    ) -> dict[SourcePartition, int]:
        if not timestamps:
            return {}
        specs = {TopicPartition(*key): OffsetSpec(when) for key, when in timestamps.items()}
        results: Results[TopicPartition, ListOffsetsResultInfo] = self._connection.run(
            list_offsets(self._admin, specs, isolation_level=self._isolation)
        )
        offsets = {}
        for key in results:
            partition, error = SourcePartition(key.topic, key.partition), results.errors.get(key)
            if error is None:
                offsets[partition] = results[key].offset
            elif error.code() not in _UNKNOWN:
                raise SourceError(f"{partition}: {error.str()}")
        return offsets


def _unknown(topics: Iterable[MetadataResponseTopic]) -> set[str]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {topic.name or "" for topic in topics if topic.error_code == unknown}


def _partitions(topics: Iterable[MetadataResponseTopic]) -> frozenset[SourcePartition]:
    partitions: set[SourcePartition] = set()
    for topic in topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise SourceError(f"{topic.name}: {broker_error(topic.error_code).str()}")
        partitions.update(
            SourcePartition(topic.name or "", partition.partition_index)
            for partition in topic.partitions
        )
    return frozenset(partitions)
