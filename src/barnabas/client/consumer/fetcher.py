"""Fetches the assigned partitions, as far ahead of the user as the buffer has space.

The fetcher has a few connections to every broker, each with a fetch session: while the broker
holds a fetch of partitions without new records on one, another fetches partitions that were
sought or have space again. A partition is fetched on one connection at a time. The next request
is sent before the last response is decoded, so that the connection is never idle while there is
space.
"""

import asyncio
import math
from collections.abc import Callable, Container, Mapping

from barnabas.client.cluster import Backoff, ClusterClient
from barnabas.client.consumer._completed_fetch import CompletedFetch
from barnabas.client.consumer.fetch_buffer import BufferedError, FetchBuffer, error_message
from barnabas.client.consumer.fetch_results import (
    FetchedBatches,
    FetchFailed,
    FollowerFailed,
    NoBatches,
    OffsetOutOfRange,
    StaleMetadata,
    read_fetch_result,
)
from barnabas.client.consumer.fetch_session import FetchSessionHandler, PartitionFetch
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

CONNECTIONS = ("fetch", "fetch-2", "fetch-3")
"""The purposes of the connections to one broker."""

COPY_LIMIT_BYTES = 64 << 10
"""Smaller batches are copied: they would keep the memory of a whole response alive."""

_TIMER_RESOLUTION_S = 0.001

ErrorToReport = Callable[[TopicPartitionState, KafkaError], BufferedError | None]
"""Returns an error for the user, or None if it was reported before."""

_Delivery = FetchedBatches | BufferedError


class Fetcher:
    """Sends a fetch whenever a partition can be fetched and the buffer has space."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        assignment: Mapping[PartitionKey, TopicPartitionState],
        buffer: FetchBuffer,
        *,
        on_position_unknown: Callable[[], None],
        error_to_report: ErrorToReport,
        on_throttled: Callable[[int, int], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._assignment = assignment
        self._buffer = buffer
        self._on_position_unknown = on_position_unknown
        self._error_to_report = error_to_report
        self._on_throttled = on_throttled
        self._loop = asyncio.get_running_loop()
        self._isolation = int(settings.isolation_level == "read_committed")
        self._connections: dict[int, list[_FetchConnection]] = {}
        self._buffered_bytes = 0
        self._timer: asyncio.TimerHandle | None = None  # of the next retry
        self._is_closed = False

    def send_fetches(self) -> None:
        """Fetches every partition that can be fetched; called whenever something has changed."""
        if self._is_closed:
            return
        self._release_drained()
        now_s = self._loop.time()
        buffer = self._buffer
        fetchable: dict[int, list[TopicPartitionState]] = {}
        buffer.needs_space = False
        retry_at_s = math.inf
        for partition in self._assignment.values():
            if not partition.is_fetchable(now_s):
                if now_s < partition.retry_at_s < retry_at_s:
                    retry_at_s = partition.retry_at_s
                continue
            if not self._has_space(partition):
                buffer.needs_space = True
                continue
            node_id = self._select_node(partition, now_s)
            if node_id is not None:
                fetchable.setdefault(node_id, []).append(partition)
        for node_id, partitions in fetchable.items():
            self._send_fetch(node_id, partitions, now_s)
        if retry_at_s < math.inf:
            self._schedule(retry_at_s)
        if buffer.needs_space and buffer.drained:  # the user has freed some meanwhile
            self._loop.call_soon(self.send_fetches)

    def close(self) -> None:
        """Sends no more fetches, and closes the fetch sessions on the brokers."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for node_id, connections in self._connections.items():
            for connection in connections:
                request = connection.session.closing_request()
                if request is not None and not connection.is_busy:
                    self._cluster.send(node_id, request, 1000, _ignore, purpose=connection.purpose)

    # Space in the buffer

    def _release_drained(self) -> None:
        drained = self._buffer.drained
        while drained:
            fetch = drained.popleft()
            self._buffered_bytes -= fetch.size_bytes
            partition = self._assignment.get((fetch.progress.topic, fetch.progress.partition))
            if partition is not None and fetch.version == partition.progress.version:
                partition.queued_records -= fetch.record_count

    def _has_space(self, partition: TopicPartitionState) -> bool:
        return (
            partition.queued_records < self._settings.prefetch_messages
            and self._buffered_bytes - self._buffer.paused_bytes < self._settings.prefetch_bytes
        )

    # Requests

    def _select_node(self, partition: TopicPartitionState, now_s: float) -> int | None:
        leader = self._cluster.metadata.leader(*partition.key)
        if leader is None or leader.leader < 0:
            return None
        partition.on_leader_epoch(leader.leader_epoch)
        if not partition.is_fetchable(now_s):
            self._on_position_unknown()
            return None
        return partition.read_replica.select(leader, self._cluster.metadata.brokers, now_s)

    def _send_fetch(
        self, node_id: int, partitions: list[TopicPartitionState], now_s: float
    ) -> None:
        connections = self._connections.get(node_id)
        if connections is None:
            connections = [_FetchConnection(purpose, self._settings) for purpose in CONNECTIONS]
            self._connections[node_id] = connections
        retry_at_s = max(connection.retry_at_s for connection in connections)
        if now_s < retry_at_s:
            self._schedule(retry_at_s)
            return
        connection = next((each for each in connections if not each.is_busy), None)
        if connection is None:
            return
        session = connection.session
        if any(each.is_unfetched and session.has_sent(each.key) for each in partitions):
            session.reset()  # its response would leave out what an earlier assignment received
        request = session.request({each.key: self._partition_fetch(each) for each in partitions})
        self._set_limits(request)
        versions = {each.key: each.progress.version for each in partitions}
        for partition in partitions:
            partition.in_flight_version = partition.progress.version
        connection.is_busy = True
        self._cluster.send(
            node_id,
            request,
            self._settings.fetch_max_wait_ms + self._settings.request_timeout_ms,
            lambda outcome: self._on_response(node_id, connection, versions, outcome),
            purpose=connection.purpose,
        )

    def _partition_fetch(self, partition: TopicPartitionState) -> PartitionFetch:
        topic = self._cluster.metadata.topics.get(partition.key[0])
        leader = self._cluster.metadata.leader(*partition.key)
        return PartitionFetch(
            uuid.ZERO if topic is None else topic.topic_id,
            partition.fetch_offset,
            partition.read_replica.leader_epoch(leader),
            self._settings.max_partition_fetch_bytes,
        )

    def _set_limits(self, request: FetchRequest) -> None:
        settings = self._settings
        space_bytes = settings.prefetch_bytes - self._buffered_bytes
        max_bytes = max(space_bytes, settings.max_partition_fetch_bytes)
        request.max_bytes = min(settings.fetch_max_bytes, max_bytes)
        request.min_bytes = settings.fetch_min_bytes
        request.max_wait_ms = settings.fetch_max_wait_ms
        request.isolation_level = self._isolation
        request.rack_id = settings.client_rack

    # Responses

    def _on_response(
        self,
        node_id: int,
        connection: "_FetchConnection",
        versions: Mapping[PartitionKey, int],
        outcome: FetchResponse | OSError,
    ) -> None:
        connection.is_busy = False
        for key, version in versions.items():
            partition = self._assignment.get(key)
            if partition is not None and partition.in_flight_version == version:
                partition.in_flight_version = None
        if self._is_closed:
            return
        if isinstance(outcome, OSError):
            self._on_connection_lost(node_id, connection, versions)
            return
        if not connection.session.on_response(outcome):
            self._back_off_connection(connection, connection.backoff.next_ms())
            return
        connection.backoff.reset()
        if outcome.throttle_time_ms > 0:
            self._back_off_connection(connection, outcome.throttle_time_ms)
            self._on_throttled(node_id, outcome.throttle_time_ms)
        deliveries: list[tuple[TopicPartitionState, _Delivery]] = []
        responses = dict(connection.session.partitions(outcome))
        for key, data in responses.items():
            partition = self._assignment.get(key)
            if partition is not None and versions.get(key) == partition.progress.version:
                received = self._on_partition_response(partition, data, node_id)
                deliveries.extend((partition, delivery) for delivery in received)
        if self._settings.enable_partition_eof:
            deliveries += self._ends_of_unchanged(versions, responses, node_id)
        self.send_fetches()
        if deliveries:
            self._buffer.put(
                delivery
                if isinstance(delivery, BufferedError)
                else self._completed_fetch(partition, delivery)
                for partition, delivery in deliveries
            )

    def _on_connection_lost(
        self, node_id: int, connection: "_FetchConnection", versions: Mapping[PartitionKey, int]
    ) -> None:
        connection.session.reset()
        self._back_off_connection(connection, connection.backoff.next_ms())
        for key in versions:
            partition = self._assignment.get(key)
            if partition is not None and partition.read_replica.is_follower(node_id):
                partition.read_replica.prefer_leader()
        self._cluster.refresh()

    def _on_partition_response(
        self, partition: TopicPartitionState, data: PartitionData, node_id: int
    ) -> list[_Delivery]:
        replica = partition.read_replica
        is_follower = replica.is_follower(node_id)
        if data.error_code:
            replica.prefer_leader()
        else:
            self._update_offsets(partition, data, node_id)
        match read_fetch_result(data, partition.fetch_offset, is_follower=is_follower):
            case FetchedBatches() as fetched:
                size_bytes, records = len(fetched.batches), fetched.record_count
                self._buffered_bytes += size_bytes
                partition.on_fetched(fetched.next_offset, fetched.leader_epoch, records, size_bytes)
                return [fetched, *self._end_of_partition(partition, node_id)]
            case NoBatches():
                return [*self._end_of_partition(partition, node_id)]
            case StaleMetadata() as stale:
                leader = self._cluster.metadata.leader(*partition.key)
                if not replica.on_stale_metadata(stale, leader):
                    self._back_off(partition, self._settings.retry_backoff_ms)
                self._cluster.refresh()
                return []
            case FollowerFailed(error):
                if error != ErrorCode.OFFSET_OUT_OF_RANGE:  # the leader may have the offset
                    self._back_off(partition, self._settings.retry_backoff_ms)
                return []
            case OffsetOutOfRange():
                return self._on_offset_out_of_range(partition, node_id)
            case FetchFailed(error):
                self._back_off(partition, self._settings.retry_backoff_max_ms)
                return self._report(partition, error)

    def _update_offsets(
        self, partition: TopicPartitionState, data: PartitionData, node_id: int
    ) -> None:
        partition.high_watermark = data.high_watermark
        partition.last_stable_offset = data.last_stable_offset
        partition.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node_id:
            until_s = self._loop.time() + self._settings.metadata_max_age_ms / 1000
            partition.read_replica.prefer(data.preferred_read_replica, until_s)

    def _on_offset_out_of_range(
        self, partition: TopicPartitionState, node_id: int
    ) -> list[_Delivery]:
        if partition.request_reset():
            self._on_position_unknown()
            return []
        reason = (
            f"offset {partition.fetch_offset} is out of range on broker {node_id}, "
            f"and auto.offset.reset is none"
        )
        return self._report(partition, KafkaError(KafkaError._AUTO_OFFSET_RESET, reason))

    def _report(self, partition: TopicPartitionState, error: KafkaError) -> list[_Delivery]:
        buffered = self._error_to_report(partition, error)
        return [] if buffered is None else [buffered]

    def _completed_fetch(
        self, partition: TopicPartitionState, fetched: FetchedBatches
    ) -> CompletedFetch:
        batches = fetched.batches
        return CompletedFetch(
            partition.progress,
            batches if len(batches) > COPY_LIMIT_BYTES else bytes(batches),
            fetched.fetch_offset,
            fetched.next_offset,
            fetched.record_count,
            fetched.aborted,
            self._isolation != 0,
            self._settings.check_crcs,
        )

    # Ends of partitions (enable.partition.eof)

    def _ends_of_unchanged(
        self, versions: Mapping[PartitionKey, int], responses: Container[PartitionKey], node_id: int
    ) -> list[tuple[TopicPartitionState, _Delivery]]:
        """A session leaves out unchanged partitions: they are at their ends."""
        unchanged = (self._assignment.get(key) for key in versions if key not in responses)
        return [
            (partition, error)
            for partition in unchanged
            if partition is not None and versions[partition.key] == partition.progress.version
            for error in self._end_of_partition(partition, node_id)
        ]

    def _end_of_partition(
        self, partition: TopicPartitionState, node_id: int
    ) -> list[BufferedError]:
        if not self._settings.enable_partition_eof:
            return []
        end_offset = partition.last_stable_offset if self._isolation else partition.high_watermark
        offset = partition.fetch_offset
        if offset < end_offset or partition.eof_offset == offset:
            return []
        partition.eof_offset = offset
        reason = (
            f"Fetch from broker {node_id} reached end of partition at offset "
            f"{offset} (HighwaterMark {partition.high_watermark})"
        )
        error = KafkaError(KafkaError._PARTITION_EOF, reason)
        message = error_message(error, *partition.key, offset)
        return [BufferedError(message, partition.progress, partition.progress.version)]

    # Retries

    def _back_off_connection(self, connection: "_FetchConnection", pause_ms: float) -> None:
        connection.retry_at_s = self._loop.time() + pause_ms / 1000
        self._schedule(connection.retry_at_s)

    def _back_off(self, partition: TopicPartitionState, pause_ms: float) -> None:
        partition.retry_at_s = self._loop.time() + pause_ms / 1000
        self._schedule(partition.retry_at_s)

    def _schedule(self, when_s: float) -> None:
        """Sends fetches then; `send_fetches` schedules retries that are due later."""
        if self._timer is not None:
            if self._timer.when() <= when_s + _TIMER_RESOLUTION_S:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when_s + _TIMER_RESOLUTION_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.send_fetches()


class _FetchConnection:
    """A connection to one broker, and the fetch session on it."""

    __slots__ = ("backoff", "is_busy", "purpose", "retry_at_s", "session")

    def __init__(self, purpose: str, settings: ConsumerSettings) -> None:
        self.purpose = purpose
        self.session = FetchSessionHandler()
        self.is_busy = False
        self.retry_at_s = 0.0
        self.backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)


def _ignore(_: object) -> None:
    """Nothing waits for this response."""
