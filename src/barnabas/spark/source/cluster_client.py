"""What the driver asks of the cluster: partitions, their offsets, and to be told of news."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from time import sleep

from barnabas.client.admin.enums import IsolationLevel
from barnabas.client.admin.group_offsets import alter_consumer_group_offsets
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
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
    """Answers about topics, at any number of partitions with a request or two to each broker."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._cluster = connection.cluster
        self._settings = connection.settings
        self._isolation = IsolationLevel(int(self._settings.isolation_level == "read_committed"))
        settings = AdminSettings(default_api_timeout_ms=self._settings.default_api_timeout_ms)
        self._admin = AdminRequests(self._cluster, settings)
        self._news = NewRecordWaiter(self._cluster, self._settings)
        self._seen: frozenset[SourcePartition] = frozenset()  # of the topics, when last asked
        self._gone: set[str | SourcePartition] = (
            set()
        )  # what was asked for repeatedly, and is not there

    def partitions(
        self, topics: TopicSelection, *, may_be_gone: bool = False
    ) -> frozenset[SourcePartition]:
        """Those there are now. SourceError for a named topic that is not, unless it may be gone."""
        if topics.partitions:
            return topics.partitions
        for pause_s in self._pauses_s():
            sleep(pause_s)
            described = self._described(topics)
            found, unknown = _partitions(described), _unknown(described)
            if unknown <= self._gone and found >= self._seen:
                break
        self._seen = found
        self._gone |= unknown
        if unknown and not may_be_gone:
            named = min(unknown)
            raise SourceError(f"There is no topic {named!r}: create it, or correct subscribe.")
        return found

    def offsets(self, wanted: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        """By time in ms, LATEST or EARLIEST; -1 where no record is as young as that.

        Partitions that do not exist are left out.
        """
        found: dict[SourcePartition, int] = {}
        missing = dict(wanted)
        for pause_s in self._pauses_s():
            sleep(pause_s)
            found |= self._listed(missing)
            missing = {each: when for each, when in wanted.items() if each not in found}
            if missing.keys() <= self._gone:
                break
        self._gone = (self._gone - found.keys()) | missing.keys()
        return found

    def latest(
        self, partitions: Iterable[SourcePartition], *, read: Offsets | None = None
    ) -> dict[SourcePartition, int]:
        """Their ends; asked for again where one is before what was `read`.

        A leader that is new may not know yet how far its partition goes.
        """
        wanted = dict.fromkeys(partitions, LATEST)
        reached = read or {}
        for pause_s in self._pauses_s():
            sleep(pause_s)
            ends = self.offsets(wanted)
            if all(end >= reached.get(each, end) for each, end in ends.items()):
                break
        return ends

    def earliest(self, partitions: Iterable[SourcePartition]) -> dict[SourcePartition, int]:
        return self.offsets(dict.fromkeys(partitions, EARLIEST))

    def wait_for_records(self, ends: Offsets, timeout_ms: int) -> dict[SourcePartition, int] | None:
        """Where partitions end that have grown past these offsets; none when the time is over.

        None if a broker cannot tell: ask for offsets.
        """
        return self._connection.run(self._news.wait(ends, timeout_ms))

    def commit_soon(self, group_id: str, offsets: Offsets) -> "Future[None]":
        """Have a group say that it has come this far; a line in the log where it may not."""
        return self._connection.thread.submit(self._commit(group_id, offsets))

    async def _commit(self, group_id: str, offsets: Offsets) -> None:
        places = [TopicPartition(*each, offset) for each, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group_id, places)]
        try:
            groups = await alter_consumer_group_offsets(self._admin, request)
            committed = groups[group_id].topic_partitions or []
        except KafkaException as failure:
            log.warning(
                "group %s: progress is not committed: %s", group_id, error_in(failure).str()
            )
            return
        for told in committed:
            if told.error is not None:
                place, reason = SourcePartition(told.topic, told.partition), told.error.str()
                log.warning("group %s: %s is not committed: %s", group_id, place, reason)

    def _pauses_s(self) -> Iterator[float]:
        """Before each question for what seems to be gone: brokers learn of things one by one.

        What is taken for gone too soon is taken for new later, and read once more.
        """
        yield 0
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        for _ in range(1, MAX_UNKNOWN_TOPIC_ATTEMPTS):
            yield backoff.next_ms() / 1000

    def _described(self, topics: TopicSelection) -> list[MetadataResponseTopic]:
        """Those that are named, or match."""
        timeout_ms = self._settings.default_api_timeout_ms
        told: MetadataResponse = self._connection.run(
            self._cluster.describe(topics.names or None, timeout_ms=timeout_ms)
        )
        if topics.names:
            return told.topics
        pattern = re.compile(topics.pattern)
        return [
            topic
            for topic in told.topics
            if topic.name and not topic.is_internal and pattern.fullmatch(topic.name)
        ]

    def _listed(self, wanted: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        if not wanted:
            return {}
        asked = {TopicPartition(*each): OffsetSpec(when) for each, when in wanted.items()}
        results: Results[TopicPartition, ListOffsetsResultInfo] = self._connection.run(
            list_offsets(self._admin, asked, isolation_level=self._isolation)
        )
        found = {}
        for each in results:
            place, error = SourcePartition(each.topic, each.partition), results.errors.get(each)
            if error is None:
                found[place] = results[each].offset
            elif error.code() not in _UNKNOWN:
                raise SourceError(f"{place}: {error.str()}")
        return found


def _unknown(topics: Iterable[MetadataResponseTopic]) -> set[str]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {topic.name or "" for topic in topics if topic.error_code == unknown}


def _partitions(topics: Iterable[MetadataResponseTopic]) -> frozenset[SourcePartition]:
    found: set[SourcePartition] = set()
    for topic in topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise SourceError(f"{topic.name}: {broker_error(topic.error_code).str()}")
        found.update(
            SourcePartition(topic.name or "", each.partition_index) for each in topic.partitions
        )
    return frozenset(found)
