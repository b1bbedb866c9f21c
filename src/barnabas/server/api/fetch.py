"""Fetch (key 1): record batches from the partitions this broker leads.

v4 isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs; v10 zstd;
v11 rack and preferred read replica; v12 flexible, diverging epochs; v13 topics by id;
v15 the replica's state instead of its id; v16 the current leader's address; v17 the replica's
directory; v18 its high watermark.
"""

from collections.abc import Hashable, Iterable

from barnabas.log import Slice
from barnabas.replication import NO_EPOCH, Partition
from barnabas.server.call import Call
from barnabas.server.errors import failure_of
from barnabas.server.leaders import leader_of
from barnabas.server.sessions import ContextKind, FetchContext, SessionPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_WITH_LEADERS = 16

ISOLATION_LEVELS = (0, 1)
_NOTHING = b""

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


async def handle(request: FetchRequest, call: Call) -> FetchResponse:
    broker = call.broker
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no isolation level {request.isolation_level}."
        )
    context = broker.fetch_sessions.context(request, call.api_version, call.now_ms)
    if context.error:
        return context.answer((), call.now_ms)
    reading = _Reading(request, context, call)
    reading.read_all()
    if not reading.is_done and request.max_wait_ms > 0:
        watched = reading.watched()
        if watched:
            await broker.purgatory.park(watched, request.max_wait_ms, reading.take_note, "Fetch")
            reading.look_where_leaders_left()
    response = context.answer(reading.answers(), broker.clock())
    if reading.has_failed and call.api_version >= FIRST_VERSION_WITH_LEADERS:
        _name_leaders(response, call)
    return response


class _Reading:
    """What one fetch has found so far; when a partition moves, only that one is read again."""

    __slots__ = (
        "_by_id",
        "_call",
        "_context",
        "_counted",
        "_found",
        "_is_replica",
        "_isolation",
        "_max_bytes",
        "_metrics",
        "_min_bytes",
        "_returned_bytes",
        "_there_bytes",
        "_wanted",
        "has_failed",
        "is_done",
    )

    def __init__(self, request: FetchRequest, context: FetchContext, call: Call) -> None:
        self._call = call
        self._context = context
        self._by_id = call.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._is_replica = _replica_id(request, call.api_version) >= 0
        self._isolation = request.isolation_level
        self._metrics = call.broker.metrics.topic
        self._max_bytes = min(request.max_bytes, call.broker.settings["fetch.max.bytes"])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._returned_bytes = 0
        self._there_bytes = 0
        self._counted: dict[SessionPartition, int] = {}
        self._found: dict[SessionPartition, PartitionData] = {}
        # The answers so far; none for partitions that have no news for the session.
        self._wanted: dict[Partition, SessionPartition] = {}
        self.has_failed = False
        self.is_done = False
        """Whether to answer now: with the bytes asked for, or with what must not wait."""

    def read_all(self) -> None:
        partitions = self._context.partitions()
        only_news = self._context.kind is ContextKind.INCREMENTAL
        read = self._read
        for wanted in partitions:
            if only_news and _has_no_news(wanted):
                continue
            read(wanted)
        if self._there_bytes >= self._min_bytes or not partitions:
            self.is_done = True

    def watched(self) -> dict[Partition, SessionPartition]:
        """The partitions that can bring more."""
        self._wanted = {
            wanted.partition: wanted
            for wanted in self._context.partitions()
            if wanted.partition is not None
        }
        return self._wanted

    def take_note(self, partition: Hashable, _: int) -> bool:
        """Whether, with what this partition now has, it is enough."""
        self._read_again(self._wanted[partition])  # type: ignore[index]
        return self.is_done

    def look_where_leaders_left(self) -> None:
        """Those that wake us because they are led elsewhere, or gone, have not been read again."""
        for partition, wanted in self._wanted.items():
            if not partition.is_leader:
                self._read_again(wanted)

    def answers(self) -> Iterable[tuple[SessionPartition, PartitionData]]:
        return self._found.items()

    def _read(self, wanted: SessionPartition) -> None:
        returned_bytes = self._returned_bytes
        max_bytes = wanted.max_bytes
        if max_bytes > self._max_bytes - returned_bytes:
            max_bytes = self._max_bytes - returned_bytes
        try:
            partition = wanted.partition
            if partition is None or not partition.is_leader:
                partition = wanted.partition = self._find(wanted)
            fetched = partition.fetch(
                wanted.fetch_offset,
                max_bytes,
                isolation=self._isolation,
                at_least_one=not returned_bytes,
                leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
        except Exception as failure:
            self._found[wanted] = self._refused(wanted, failure)
            return
        records, high_watermark, stable_offset, start_offset, aborted, diverging = fetched
        answer = self._found[wanted] = PartitionData(
            partition_index=wanted.index,
            high_watermark=high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=start_offset,
            aborted_transactions=None if aborted is None else _aborted(aborted),
            records=_NOTHING if records is None else records,
        )
        metrics = self._metrics(partition.topic)
        metrics.fetch_requests += 1
        end = stable_offset if self._isolation else high_watermark
        if records is not None:
            size_bytes = records.size_bytes
            metrics.bytes_out += size_bytes
            self._returned_bytes = returned_bytes + size_bytes
            self._count(wanted, records.next_offset < end, size_bytes, max_bytes)
        elif diverging is not None:
            answer.diverging_epoch = EpochEndOffset(
                epoch=diverging.epoch, end_offset=diverging.end_offset
            )
            self.is_done = True
        elif wanted.fetch_offset < end:
            self._count(wanted, True, 0, max_bytes)

    def _count(
        self, wanted: SessionPartition, has_more: bool, size_bytes: int, max_bytes: int
    ) -> None:
        """Towards the minimum, a partition with more than its limit lets through counts that much.

        Whole batches may come to less; waiting would not bring them any nearer to it.
        """
        counted = max(size_bytes, max_bytes) if has_more else size_bytes
        self._counted[wanted] = counted
        self._there_bytes += counted

    def _read_again(self, wanted: SessionPartition) -> None:
        before = self._found.get(wanted)
        if before is not None and isinstance(before.records, Slice):
            size_bytes = before.records.size_bytes
            self._returned_bytes -= size_bytes
            self._metrics(wanted.partition.topic).bytes_out -= size_bytes  # type: ignore[union-attr]
        self._there_bytes -= self._counted.pop(wanted, 0)
        self._read(wanted)
        if self._there_bytes >= self._min_bytes:
            self.is_done = True

    def _find(self, wanted: SessionPartition) -> Partition:
        partitions = self._call.broker.partitions
        if self._by_id:
            partition = partitions.get(wanted.topic_id, wanted.index)
        else:
            partition = partitions.by_name(wanted.topic, wanted.index)
        if self._is_replica:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition.topic}-{partition.index} has no replica that asks for it.",
            )
        return partition

    def _refused(self, wanted: SessionPartition, failure: Exception) -> PartitionData:
        code, _ = failure_of(failure, "Fetch", self._call)
        if wanted.partition is not None:
            self._metrics(wanted.partition.topic).failed_fetch_requests += 1
        self.has_failed = True
        self.is_done = True
        return PartitionData(
            partition_index=wanted.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=[] if wanted.partition is None else None,
            records=_NOTHING,
        )


def _has_no_news(wanted: SessionPartition) -> bool:
    """Whether a session's partition is where its reader left it: the usual case, so it is cheap."""
    partition = wanted.partition
    offset = wanted.fetch_offset
    return (
        partition is not None
        and partition.is_leader
        and partition.high_watermark == offset
        and wanted.current_leader_epoch in (partition.leader_epoch, NO_EPOCH)
        and wanted.last_fetched_epoch == NO_EPOCH
        and not wanted.is_news(offset, partition.log.start_offset)
    )


def _aborted(transactions: list[tuple[int, int]]) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
        for producer_id, first_offset in transactions
    ]


def _replica_id(request: FetchRequest, version: int) -> int:
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        return request.replica_state.replica_id
    return request.replica_id


def _name_leaders(response: FetchResponse, call: Call) -> None:
    """Tell who leads the partitions that this broker does not."""
    endpoints = {}
    for topic in response.responses:
        for answer in topic.partitions:
            if answer.error_code not in _LED_ELSEWHERE:
                continue
            leader = leader_of(topic.topic_id, answer.partition_index, call)
            if leader is None:
                continue
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
            )
            if leader.endpoint is not None:
                endpoints[leader.leader_id] = NodeEndpoint(
                    node_id=leader.leader_id,
                    host=leader.endpoint.host,
                    port=leader.endpoint.port,
                    rack=leader.rack,
                )
    response.node_endpoints = list(endpoints.values())
