"""Fetches the partitions of one leader: the protocol without the connection.

    request = fetcher.next_request(now_ms)      # None: nothing to send before `next_due_ms`
    fetcher.on_response(response, now_ms)       # or fetcher.on_connection_lost(now_ms)

There is one request at a time. Only the partitions in a response are processed, and only those that
changed are named in the next fetch, so idle partitions cost nothing.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher.appender import Appender, InvalidLeaderResponse
from barnabas.replication.replica_fetcher.fetch_session import FollowerFetchSession
from barnabas.replication.replica_fetcher.followed_partition import (
    DelayedPartitions,
    FollowedPartition,
    PartitionFetchState,
)
from barnabas.replication.replica_fetcher.leader_bounds import LeaderBounds, LeaderBoundsLookup
from barnabas.replication.throttle import ReplicationThrottle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

FIRST_BACKOFF_MS = 10
"""The first backoff for a leader that has not received its metadata yet; doubled each time."""

# A change of the metadata does not reach all brokers at the same moment.
_STALE_METADATA = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class FetchLimits:
    """The sizes and times of a fetch (`replica.fetch.*`)."""

    wait_max_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int
    backoff_ms: int


class ReplicaFetcher:
    """The partitions that are fetched from one leader.

    `clock` is the wall clock, for appends; everything else uses the caller's `now_ms`, which is
    monotonic. `on_truncated` is called for each log that was truncated.
    """

    def __init__(
        self,
        node_id: int,
        limits: FetchLimits,
        *,
        broker_epoch: Callable[[], int],
        clock: Callable[[], int],
        throttle: ReplicationThrottle,
        on_truncated: Callable[[Partition], None],
    ) -> None:
        self.received_bytes = 0
        self.requests = 0
        self._node_id = node_id
        self.limits = limits
        self._broker_epoch = broker_epoch
        self._throttle = throttle
        self._appender = Appender(clock, on_truncated)
        self._followed: dict[
            PartitionKey, FollowedPartition
        ] = {}  # in the order of their last records
        self._changed: dict[PartitionKey, FollowedPartition] = {}  # to name in the next fetch
        self._throttled: dict[PartitionKey, FollowedPartition] = {}
        self._delayed = DelayedPartitions()
        self._bounds_lookup = LeaderBoundsLookup(node_id)
        self._session = FollowerFetchSession()
        self._paused_until_ms = 0

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[FollowedPartition]:
        return iter(self._followed.values())

    def find(self, key: PartitionKey) -> FollowedPartition | None:
        return self._followed.get(key)

    @property
    def has_unsent_partitions(self) -> bool:
        """Whether the next fetch names partitions that the last one did not."""
        return bool(self._changed)

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Fetches a partition from its log end offset on, in a leader epoch."""
        followed = FollowedPartition(partition, leader_epoch)
        self.remove(followed.key)
        self._followed[followed.key] = followed
        self._changed[followed.key] = followed
        if self._throttle.is_throttled(partition.topic, partition.index):
            self._throttled[followed.key] = followed
        log = partition.log
        if log.latest_epoch < 0 and log.log_end_offset > partition.high_watermark:
            # Without epochs the logs cannot be compared: only committed records are surely equal.
            self._try_to_apply(
                followed, 0, self._appender.truncate, partition, partition.high_watermark
            )
        self._paused_until_ms = 0  # the metadata changed: the broker may be back

    def remove(self, key: PartitionKey) -> None:
        """Stops fetching a partition; a response in flight does not change it any more."""
        if self._followed.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._throttled.pop(key, None)
            self._bounds_lookup.discard(key)
            self._session.exclude(key)

    def on_throttle_changed(self) -> None:
        """The throttle covers other replicas now."""
        for followed in self._throttled.values():
            self._unthrottle(followed)
        self._throttled = {}
        if self._throttle:
            self._throttled = {
                key: followed
                for key, followed in self._followed.items()
                if self._throttle.is_throttled(followed.partition.topic, followed.partition.index)
            }

    # Requests

    def next_request(self, now_ms: int) -> FetchRequest | ListOffsetsRequest | None:
        """Returns the request to send now."""
        for followed in self._delayed.take_due(now_ms):
            if self._followed.get(followed.key) is followed:
                self._changed[followed.key] = followed
        if now_ms < self._paused_until_ms:
            return None
        return self._bounds_lookup.next_request() or self._next_fetch(now_ms)

    def next_due_ms(self, now_ms: int) -> int | None:
        """Returns when there may be a request to send, if there is none now."""
        if now_ms < self._paused_until_ms:
            return self._paused_until_ms
        return min(self._due_times_ms(now_ms), default=None)

    def _next_fetch(self, now_ms: int) -> FetchRequest | None:
        session, limits = self._session, self.limits
        self._throttle_partitions(now_ms)
        changed, self._changed = self._changed, {}
        if session.is_new:
            session.clear()
            changed = self._followed
        for followed in changed.values():
            if followed.fetch_state is PartitionFetchState.FETCHING and not followed.is_throttled:
                session.include(followed)
        if not session.partitions:
            session.restart()
            return None
        wait_ms = min((due_ms - now_ms for due_ms in self._due_times_ms(now_ms)), default=2**31)
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._node_id, replica_epoch=self._broker_epoch()
            ),
            # A partition whose backoff ends must not wait for a leader without new records.
            max_wait_ms=max(min(wait_ms, limits.wait_max_ms), 0),
            min_bytes=limits.min_bytes,
            max_bytes=limits.response_max_bytes,
        )
        session.fill_request(request, limits.partition_max_bytes)
        self.requests += 1
        return request

    def _due_times_ms(self, now_ms: int) -> Iterator[int]:
        delay_ends_ms = self._delayed.next_due_ms()
        if delay_ends_ms is not None:
            yield delay_ends_ms
        if any(followed.is_throttled for followed in self._throttled.values()):
            yield now_ms + self._throttle.quota.ms_until_within_quota(now_ms)

    def _throttle_partitions(self, now_ms: int) -> None:
        """Leaves out-of-sync throttled partitions out while the quota is exceeded."""
        if not self._throttled:
            return
        is_exceeded = self._throttle.quota.is_exceeded(now_ms)
        for followed in self._throttled.values():
            if not is_exceeded:
                self._unthrottle(followed)
            elif not followed.is_in_sync:
                followed.is_throttled = True
                self._session.exclude(followed.key)

    def _unthrottle(self, followed: FollowedPartition) -> None:
        if followed.is_throttled:
            followed.is_throttled = False
            self._changed[followed.key] = followed

    # Responses

    def on_response(self, response: FetchResponse | ListOffsetsResponse, now_ms: int) -> None:
        """Applies a response. No response, however wrong, does more than cause a backoff."""
        if isinstance(response, ListOffsetsResponse):
            for bounds in self._bounds_lookup.on_response(response):
                self._apply_bounds(bounds, now_ms)
            return
        if not self._session.on_response(response):
            if response.error_code not in _SESSION_ERRORS:
                _logger.warning(
                    "The leader rejected a fetch: %s", ErrorCode.of(response.error_code).name
                )
                self._paused_until_ms = now_ms + self.limits.backoff_ms
            return
        for topic in response.responses:
            for partition in topic.partitions:
                self._handle_partition_response(topic.topic_id, partition, now_ms)

    def on_connection_lost(self, now_ms: int) -> None:
        """The connection was lost, or no response came in time."""
        self.reset_connection()
        self._paused_until_ms = now_ms + self.limits.backoff_ms

    def reset_connection(self) -> None:
        """A new connection is used from now on; the last request gets no response."""
        self._session.restart()
        self._bounds_lookup.forget_responses()
        self._paused_until_ms = 0

    def _handle_partition_response(
        self, topic_id: bytes, response: PartitionData, now_ms: int
    ) -> None:
        key = (topic_id, response.partition_index)
        followed = self._followed.get(key)
        position = self._session.partitions.get(key)
        # A partition that was truncated or removed meanwhile has another fetch offset.
        if (
            followed is None
            or position is None
            or position.offset != followed.partition.log.log_end_offset
        ):
            return
        if followed.partition.error_code is not None:
            self._mark_failed(followed, "its disk failed")
            return
        if response.error_code == ErrorCode.NONE:
            self._try_to_apply(followed, now_ms, self._appender.append_response, followed, response)
            if isinstance(response.records, memoryview) and response.records:
                self._record_bytes(followed, len(response.records), now_ms)
            if followed.fetch_position() != position:
                self._changed[key] = followed
        elif response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            followed.fetch_state = PartitionFetchState.OUT_OF_RANGE
            self._session.exclude(key)
            self._bounds_lookup.add(followed)
        else:
            self._on_partition_error(followed, response.error_code, now_ms)

    def _record_bytes(self, followed: FollowedPartition, size_bytes: int, now_ms: int) -> None:
        key = followed.key
        self.received_bytes += size_bytes
        self._followed[key] = self._followed.pop(key)
        if key in self._throttled:
            self._throttle.quota.record(size_bytes, now_ms)

    def _apply_bounds(self, bounds: LeaderBounds, now_ms: int) -> None:
        followed = bounds.followed
        if bounds.error_code != ErrorCode.NONE:
            self._on_partition_error(followed, bounds.error_code, now_ms)
            return
        followed.fetch_state = PartitionFetchState.FETCHING
        self._changed[followed.key] = followed
        self._try_to_apply(followed, now_ms, self._appender.restart_within_bounds, bounds)

    # Errors

    def _try_to_apply(
        self, followed: FollowedPartition, now_ms: int, change: Callable[..., None], *args: object
    ) -> None:
        """Changes a log; an error affects only this partition."""
        try:
            change(*args)
        except (KafkaError, InvalidLeaderResponse) as error:
            self._delay(followed, self.limits.backoff_ms, now_ms)
            if followed.error_count == 1:
                _logger.error("%s: invalid response of its leader: %s", followed.name, error)
        except OSError as failure:
            self._mark_failed(followed, f"{failure}")
        except Exception:
            _logger.exception("%s is not followed any more", followed.name)
            self._mark_failed(followed, "this is a bug")

    def _on_partition_error(
        self, followed: FollowedPartition, error_code: int, now_ms: int
    ) -> None:
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            # The new epoch has reached the leader before this broker.
            reason = f"leader epoch {followed.leader_epoch} is fenced"
            self._mark_failed(followed, reason, logging.INFO)
            return
        wait_ms = self.limits.backoff_ms
        if error_code in _STALE_METADATA:
            wait_ms = min(FIRST_BACKOFF_MS << min(followed.error_count, 16), wait_ms)
        elif followed.error_count == 0:
            code = ErrorCode.of(error_code)
            _logger.warning("%s: its leader responds with %s", followed.name, code.name)
        self._delay(followed, wait_ms, now_ms)

    def _delay(self, followed: FollowedPartition, wait_ms: int, now_ms: int) -> None:
        followed.error_count += 1
        self._delayed.add(followed, now_ms + wait_ms)
        self._session.exclude(followed.key)

    def _mark_failed(
        self, followed: FollowedPartition, reason: str, level: int = logging.WARNING
    ) -> None:
        """Stops fetching it until the metadata has another leader epoch."""
        _logger.log(level, "%s is not fetched any more: %s", followed.name, reason)
        followed.fetch_state = PartitionFetchState.FAILED
        self._session.exclude(followed.key)
