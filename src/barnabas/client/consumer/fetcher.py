"""Fetches what is assigned, as far ahead of the user as there is room for.

Every broker has a few lanes, each a connection with a session of its own: while one waits for a
partition that has nothing new, another takes those that were sought elsewhere or have room
again. A partition is fetched on one of them at a time. The next request leaves before what the
last one brought is looked at, so that the line is never idle while there is room.
"""

import asyncio
import math
from collections.abc import Callable, Container, Mapping

from barnabas.client.cluster import Backoff, Cluster
from barnabas.client.consumer._completed_fetch import CompletedFetch, scan_batches
from barnabas.client.consumer.fetch_buffer import BufferedError, FetchBuffer, error_message
from barnabas.client.consumer.fetch_session import FetchSession, PartitionFetch
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

CONNECTIONS = ("fetch", "fetch-2", "fetch-3")
"""The purposes of the connections to one broker."""

COPY_LIMIT_BYTES = 64 << 10
"""What is smaller is copied, rather than keep the memory of a whole answer for it."""

_TICK_S = 0.001

_ELSEWHERE = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}
"""Somebody else has the partition, or nobody has it yet: what is known of it is out of date."""


Told = Callable[[TopicPartitionState, KafkaError], BufferedError | None]
"""What the user is told of an error, unless he has been."""


class Fetcher:
    """Sends fetches whenever there is something to fetch and room for it."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
        inbox: FetchBuffer,
        *,
        unsettled: Callable[[], None],
        told: Told,
        throttled: Callable[[int, int], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._assignment = assignment
        self._inbox = inbox
        self._unsettled = unsettled
        self._told = told
        self._throttled = throttled
        self._loop = asyncio.get_running_loop()
        self._isolation = int(settings.isolation_level == "read_committed")
        self._lanes: dict[int, list[_Lane]] = {}
        self._queued_bytes = 0
        self._timer: asyncio.TimerHandle | None = None  # the next plan for want of another reason
        self._is_closed = False

    def send_fetches(self) -> None:
        """Look for what to fetch; to be called whenever something has changed."""
        if self._is_closed:
            return
        self._take_back()
        now_s = self._loop.time()
        inbox = self._inbox
        ready: dict[int, list[TopicPartitionState]] = {}
        inbox.needs_space = False
        again_s = math.inf
        for each in self._assignment.values():
            if not each.is_fetchable(now_s):
                if now_s < each.retry_at_s < again_s:
                    again_s = each.retry_at_s
                continue
            if not self._has_room(each):
                inbox.needs_space = True
                continue
            node_id = self._node_of(each, now_s)
            if node_id is not None:
                ready.setdefault(node_id, []).append(each)
        for node_id, partitions in ready.items():
            self._fetch(node_id, partitions, now_s)
        if again_s < math.inf:
            self._plan_at(again_s)
        if inbox.needs_space and inbox.drained:  # in between the user has made some
            self._loop.call_soon(self.send_fetches)

    def close(self) -> None:
        """Fetch no more; brokers are told that the sessions are over."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for node_id, lanes in self._lanes.items():
            for lane in lanes:
                last = lane.session.closing_request()
                if last is not None and not lane.is_busy:
                    self._cluster.send(node_id, last, 1000, _ignore, purpose=lane.purpose)

    # Room

    def _take_back(self) -> None:
        finished = self._inbox.drained
        while finished:
            cursor = finished.popleft()
            self._queued_bytes -= cursor.size_bytes
            each = self._assignment.get((cursor.progress.topic, cursor.progress.partition))
            if each is not None and cursor.version == each.progress.version:
                each.queued_records -= cursor.record_count

    def _has_room(self, each: TopicPartitionState) -> bool:
        return (
            each.queued_records < self._settings.prefetch_messages
            and self._queued_bytes - self._inbox.paused_bytes < self._settings.prefetch_bytes
        )

    # Asking

    def _node_of(self, each: TopicPartitionState, now_s: float) -> int | None:
        """The broker to fetch from: the leader, unless a closer one was recommended."""
        leader = self._cluster.metadata.leader(*each.key)
        if leader is None or leader.leader < 0:
            return None
        each.on_leader_epoch(leader.leader_epoch)
        if not each.is_fetchable(now_s):
            self._unsettled()
            return None
        if each.preferred_replica is not None:
            if (
                now_s < each.preferred_replica_until_s
                and each.preferred_replica in self._cluster.metadata.brokers
            ):
                return each.preferred_replica
            each.preferred_replica = None
        if each.leader_hint is not None:
            node_id, epoch = each.leader_hint
            if epoch > leader.leader_epoch and node_id in self._cluster.metadata.brokers:
                return node_id
            each.leader_hint = None
        return leader.leader

    def _fetch(self, node_id: int, partitions: list[TopicPartitionState], now_s: float) -> None:
        lanes = self._lanes.get(node_id)
        if lanes is None:
            lanes = self._lanes[node_id] = [
                _Lane(purpose, self._settings) for purpose in CONNECTIONS
            ]
        retry_at_s = max(lane.retry_at_s for lane in lanes)
        if now_s < retry_at_s:
            self._plan_at(retry_at_s)
            return
        lane = next((lane for lane in lanes if not lane.is_busy), None)
        if lane is None:
            return
        if any(each.is_unfetched and lane.session.has_sent(each.key) for each in partitions):
            lane.session.reset()  # it was told to whom they belonged before
        wanted = {each.key: self._want(each) for each in partitions}
        request = lane.session.request(wanted)
        self._fill_in(request)
        asked = {each.key: each.progress.version for each in partitions}
        for each in partitions:
            each.in_flight_version = each.progress.version
        lane.is_busy = True
        self._cluster.send(
            node_id,
            request,
            self._settings.fetch_max_wait_ms + self._settings.request_timeout_ms,
            lambda outcome: self._answered(node_id, lane, asked, outcome),
            purpose=lane.purpose,
        )

    def _want(self, each: TopicPartitionState) -> PartitionFetch:
        name, index = each.key
        topic = self._cluster.metadata.topics.get(name)
        epoch = -1 if topic is None else topic.partitions[index].leader_epoch
        if each.leader_hint is not None:
            epoch = each.leader_hint[1]
        return PartitionFetch(
            uuid.ZERO if topic is None else topic.topic_id,
            each.fetch_offset,
            epoch,
            self._settings.max_partition_fetch_bytes,
        )

    def _fill_in(self, request: FetchRequest) -> None:
        settings = self._settings
        room = max(settings.prefetch_bytes - self._queued_bytes, settings.max_partition_fetch_bytes)
        request.max_bytes = min(settings.fetch_max_bytes, room)
        request.min_bytes = settings.fetch_min_bytes
        request.max_wait_ms = settings.fetch_max_wait_ms
        request.isolation_level = self._isolation
        request.rack_id = settings.client_rack

    # Being answered

    def _answered(
        self,
        node_id: int,
        lane: "_Lane",
        asked: Mapping[TopicPartitionTuple, int],
        outcome: FetchResponse | OSError,
    ) -> None:
        lane.is_busy = False
        for key, version in asked.items():
            each = self._assignment.get(key)
            if each is not None and each.in_flight_version == version:
                each.in_flight_version = None
        if self._is_closed:
            return
        if isinstance(outcome, OSError):
            self._unanswered(node_id, lane, asked)
            return
        if not lane.session.on_response(outcome):
            self._pause(lane, lane.backoff.next_ms())
            return
        lane.backoff.reset()
        if outcome.throttle_time_ms > 0:
            self._pause(lane, outcome.throttle_time_ms)
            self._throttled(node_id, outcome.throttle_time_ms)
        fetched: list[tuple[TopicPartitionState, _Fetched | BufferedError]] = []
        told = dict(lane.session.partitions(outcome))
        for key, said in told.items():
            each = self._assignment.get(key)
            if each is not None and asked.get(key) == each.progress.version:
                fetched.extend((each, one) for one in self._look_at(each, said, node_id))
        if self._settings.enable_partition_eof:
            fetched += self._ends_passed_over(asked, told, node_id)
        self.send_fetches()
        if fetched:
            self._inbox.put(
                one if isinstance(one, BufferedError) else self._cursor(each, one)
                for each, one in fetched
            )

    def _unanswered(
        self, node_id: int, lane: "_Lane", asked: Mapping[TopicPartitionTuple, int]
    ) -> None:
        lane.session.reset()
        self._pause(lane, lane.backoff.next_ms())
        for key in asked:
            each = self._assignment.get(key)
            if each is not None and each.preferred_replica == node_id:
                each.preferred_replica = None
        self._cluster.refresh()

    def _pause(self, lane: "_Lane", pause_ms: float) -> None:
        lane.retry_at_s = self._loop.time() + pause_ms / 1000
        self._plan_at(lane.retry_at_s)

    def _put_off(self, each: TopicPartitionState, pause_ms: float) -> None:
        each.retry_at_s = self._loop.time() + pause_ms / 1000
        self._plan_at(each.retry_at_s)

    def _plan_at(self, when_s: float) -> None:
        """Plan then, or sooner if that is due anyway: each plan sees to the next."""
        if self._timer is not None:
            if self._timer.when() <= when_s + _TICK_S:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when_s + _TICK_S, self._plan_in_time)

    def _plan_in_time(self) -> None:
        self._timer = None
        self.send_fetches()

    def _look_at(
        self, each: TopicPartitionState, told: PartitionData, node_id: int
    ) -> "list[_Fetched | BufferedError]":
        """What an answer says of one partition."""
        if told.error_code != ErrorCode.NONE:
            return self._failed(each, ErrorCode.of(told.error_code), told, node_id)
        each.high_watermark = told.high_watermark
        each.last_stable_offset = told.last_stable_offset
        each.log_start_offset = told.log_start_offset
        if told.preferred_read_replica >= 0 and told.preferred_read_replica != node_id:
            each.preferred_replica = told.preferred_read_replica
            each.preferred_replica_until_s = (
                self._loop.time() + self._settings.metadata_max_age_ms / 1000
            )
        found: list[_Fetched | BufferedError] = []
        batches = told.records
        if batches:
            assert isinstance(batches, memoryview)
            size, next_offset, records, epoch = scan_batches(batches)
            if size == 0:
                self._put_off(each, self._settings.retry_backoff_max_ms)
                broken = f"what was fetched at offset {each.fetch_offset} is no record batch"
                return self._tell(each, KafkaError(KafkaError._BAD_MSG, broken))
            fetched = _Fetched(batches[:size], each.fetch_offset, next_offset, records, told)
            self._queued_bytes += size
            each.on_fetched(next_offset, epoch, records, size)
            found.append(fetched)
        if self._settings.enable_partition_eof:
            found.extend(self._end_reached(each, node_id))
        return found

    def _cursor(self, each: TopicPartitionState, fetched: "_Fetched") -> CompletedFetch:
        aborted = fetched.told.aborted_transactions or ()
        return CompletedFetch(
            each.progress,
            fetched.batches if len(fetched.batches) > COPY_LIMIT_BYTES else bytes(fetched.batches),
            fetched.offset,
            fetched.next_offset,
            fetched.records,
            sorted(
                ((one.producer_id, one.first_offset) for one in aborted), key=lambda one: one[1]
            ),
            self._isolation != 0,
            self._settings.check_crcs,
        )

    def _ends_passed_over(
        self,
        asked: Mapping[TopicPartitionTuple, int],
        told: Container[TopicPartitionTuple],
        node_id: int,
    ) -> list[tuple[TopicPartitionState, BufferedError]]:
        """Of those that a session has nothing new of: they are at their ends."""
        unchanged = (self._assignment.get(key) for key in asked if key not in told)
        return [
            (each, notice)
            for each in unchanged
            if each is not None and asked[each.key] == each.progress.version
            for notice in self._end_reached(each, node_id)
        ]

    def _end_reached(self, each: TopicPartitionState, node_id: int) -> list[BufferedError]:
        end = each.last_stable_offset if self._isolation else each.high_watermark
        if each.fetch_offset < end or each.eof_offset == each.fetch_offset:
            return []
        each.eof_offset = each.fetch_offset
        reached = (
            f"Fetch from broker {node_id} reached end of partition at offset "
            f"{each.fetch_offset} (HighwaterMark {each.high_watermark})"
        )
        error = KafkaError(KafkaError._PARTITION_EOF, reached)
        message = error_message(error, *each.key, each.fetch_offset)
        return [BufferedError(message, each.progress, each.progress.version)]

    def _failed(
        self, each: TopicPartitionState, code: ErrorCode, told: PartitionData, node_id: int
    ) -> "list[_Fetched | BufferedError]":
        is_follower = each.preferred_replica == node_id
        each.preferred_replica = None
        if code in _ELSEWHERE:
            hint = told.current_leader
            leader = self._cluster.metadata.leader(*each.key)
            if hint.leader_id >= 0 and (leader is None or hint.leader_epoch > leader.leader_epoch):
                each.leader_hint = (hint.leader_id, hint.leader_epoch)
            else:
                self._put_off(each, self._settings.retry_backoff_ms)
            self._cluster.refresh()
            return []
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if is_follower:
                return []  # the leader may have it
            return self._out_of_range(each, node_id)
        self._put_off(each, self._settings.retry_backoff_max_ms)
        return self._tell(each, broker_error(told.error_code))

    def _out_of_range(
        self, each: TopicPartitionState, node_id: int
    ) -> "list[_Fetched | BufferedError]":
        if each.request_reset():
            self._unsettled()
            return []
        lost = (
            f"offset {each.fetch_offset} is not there any more, or not yet (broker {node_id}), "
            f"and auto.offset.reset is none"
        )
        return self._tell(each, KafkaError(KafkaError._AUTO_OFFSET_RESET, lost))

    def _tell(
        self, each: TopicPartitionState, error: KafkaError
    ) -> "list[_Fetched | BufferedError]":
        notice = self._told(each, error)
        return [] if notice is None else [notice]


class _Lane:
    """A connection to one broker, and the session on it."""

    __slots__ = ("backoff", "is_busy", "purpose", "retry_at_s", "session")

    def __init__(self, purpose: str, settings: ConsumerSettings) -> None:
        self.purpose = purpose
        self.session = FetchSession()
        self.is_busy = False
        self.retry_at_s = 0.0
        self.backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)


class _Fetched:
    """Whole batches in the memory of an answer, which is gone soon."""

    __slots__ = ("batches", "next_offset", "offset", "records", "told")

    def __init__(
        self,
        batches: memoryview,
        offset: int,
        next_offset: int,
        records: int,
        told: PartitionData,
    ) -> None:
        self.batches = batches
        self.offset = offset
        self.next_offset = next_offset
        self.records = records
        self.told = told


def _ignore(_: object) -> None:
    """Nobody waits for that answer."""
