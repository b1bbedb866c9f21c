"""Following the partitions of one leader over one connection, without the connection.

    request = fetcher.next_request(now_ms)      # None: nothing to ask before `due_ms`
    fetcher.answered(response, now_ms)          # or fetcher.lost(now_ms)

One request at a time. Only partitions that an answer names are looked at, and only those that
moved are named in the next fetch, so partitions where nothing happens cost nothing.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.replica_fetcher.delayed_partitions import Delays
from barnabas.replication.replica_fetcher.followed_partition import Followed, Standing
from barnabas.replication.replica_fetcher.appender import Intake, Nonsense
from barnabas.replication.replica_fetcher.leader_bounds import Located, Locator
from barnabas.replication.replica_fetcher.fetch_session import Session
from barnabas.replication.partition import Partition
from barnabas.replication.throttle import Throttle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

FIRST_WAIT_MS = 10
"""How soon a leader that does not know yet that it is one is asked again; doubled each time."""

# News of a leader or a topic does not reach all brokers at the same moment.
_KNOWN_SOON = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
_NEW_SESSION_HELPS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class FetchLimits:
    """How much is asked for at once, and how long to wait (`replica.fetch.*`)."""

    wait_max_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int
    backoff_ms: int


class Fetcher:
    """The partitions followed from one leader.

    `clock` is the wall clock, for what is appended; all else goes by the `now_ms` it is given,
    which never runs backwards. `truncated` is told of each log that was cut.
    """

    def __init__(
        self,
        node_id: int,
        limits: FetchLimits,
        *,
        broker_epoch: Callable[[], int],
        clock: Callable[[], int],
        throttle: Throttle,
        truncated: Callable[[Partition], None],
    ) -> None:
        self.received_bytes = 0
        self.requests = 0
        self._node_id = node_id
        self.limits = limits
        self._broker_epoch = broker_epoch
        self._throttle = throttle
        self._intake = Intake(clock, truncated)
        self._followed: dict[PartitionKey, Followed] = {}  # those that got records last
        self._moved: dict[PartitionKey, Followed] = {}  # to be named in the next fetch
        self._throttled: dict[PartitionKey, Followed] = {}
        self._delays = Delays()
        self._locator = Locator(node_id)
        self._session = Session()
        self._paused_until_ms = 0

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[Followed]:
        return iter(self._followed.values())

    def find(self, key: PartitionKey) -> Followed | None:
        return self._followed.get(key)

    @property
    def has_unnamed(self) -> bool:
        """Whether the next fetch has something to say that the last one had not."""
        return bool(self._moved)

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Follow a partition from where its log ends, in an epoch of its leader."""
        followed = Followed(partition, leader_epoch)
        self.remove(followed.key)
        self._followed[followed.key] = followed
        self._moved[followed.key] = followed
        if self._throttle.covers(partition.topic, partition.index):
            self._throttled[followed.key] = followed
        log = partition.log
        if log.latest_epoch < 0 and log.end_offset > partition.high_watermark:
            # Without epochs nobody can tell what is common: only what counted is sure to be.
            self._attempt(followed, 0, self._intake.truncate, partition, partition.high_watermark)
        self._paused_until_ms = 0  # there is news of that broker: it may be back

    def remove(self, key: PartitionKey) -> None:
        """Follow it no longer; an answer that is on its way changes nothing any more."""
        if self._followed.pop(key, None) is not None:
            self._moved.pop(key, None)
            self._throttled.pop(key, None)
            self._locator.discard(key)
            self._session.forget(key)

    def settings_changed(self) -> None:
        """Other replicas may be throttled now."""
        for followed in self._throttled.values():
            self._let_go(followed)
        self._throttled = {}
        if self._throttle:
            self._throttled = {
                key: followed
                for key, followed in self._followed.items()
                if self._throttle.covers(followed.partition.topic, followed.partition.index)
            }

    # Asking

    def next_request(self, now_ms: int) -> FetchRequest | ListOffsetsRequest | None:
        """What to ask the leader now."""
        for followed in self._delays.end(now_ms):
            if self._followed.get(followed.key) is followed:
                self._moved[followed.key] = followed
        if now_ms < self._paused_until_ms:
            return None
        return self._locator.next_request() or self._next_fetch(now_ms)

    def due_ms(self, now_ms: int) -> int | None:
        """When there may be something to ask, though there is nothing now."""
        if now_ms < self._paused_until_ms:
            return self._paused_until_ms
        return min(self._awaited_ms(now_ms), default=None)

    def _next_fetch(self, now_ms: int) -> FetchRequest | None:
        session, limits = self._session, self.limits
        self._hold_back(now_ms)
        moved, self._moved = self._moved, {}
        if session.is_new:
            session.clear()
            moved = self._followed
        for followed in moved.values():
            if followed.standing is Standing.FETCHING and not followed.is_held_back:
                session.name(followed)
        if not session.members:
            session.restart()
            return None
        wait_ms = min((due_ms - now_ms for due_ms in self._awaited_ms(now_ms)), default=2**31)
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._node_id, replica_epoch=self._broker_epoch()
            ),
            # Nobody whose delay ends may wait for a leader that has nothing to tell.
            max_wait_ms=max(min(wait_ms, limits.wait_max_ms), 0),
            min_bytes=limits.min_bytes,
            max_bytes=limits.response_max_bytes,
        )
        session.write(request, limits.partition_max_bytes)
        self.requests += 1
        return request

    def _awaited_ms(self, now_ms: int) -> Iterator[int]:
        delay_ends_ms = self._delays.next_ms()
        if delay_ends_ms is not None:
            yield delay_ends_ms
        if any(followed.is_held_back for followed in self._throttled.values()):
            yield now_ms + self._throttle.quota.free_in_ms(now_ms)

    def _hold_back(self, now_ms: int) -> None:
        """Leave out what is throttled while it is over its quota, unless that is in sync."""
        if not self._throttled:
            return
        is_exceeded = self._throttle.quota.is_exceeded(now_ms)
        for followed in self._throttled.values():
            if not is_exceeded:
                self._let_go(followed)
            elif not followed.is_in_sync:
                followed.is_held_back = True
                self._session.forget(followed.key)

    def _let_go(self, followed: Followed) -> None:
        if followed.is_held_back:
            followed.is_held_back = False
            self._moved[followed.key] = followed

    # Listening

    def answered(self, response: FetchResponse | ListOffsetsResponse, now_ms: int) -> None:
        """Take in what the leader says. Nothing it can say is worse than a wait."""
        if isinstance(response, ListOffsetsResponse):
            for located in self._locator.answered(response):
                self._place(located, now_ms)
            return
        if not self._session.answered(response):
            if response.error_code not in _NEW_SESSION_HELPS:
                _logger.warning("a fetch was refused: %s", ErrorCode.of(response.error_code).name)
                self._paused_until_ms = now_ms + self.limits.backoff_ms
            return
        for topic in response.responses:
            for answer in topic.partitions:
                self._take(topic.topic_id, answer, now_ms)

    def lost(self, now_ms: int) -> None:
        """The connection broke, or no answer came in time."""
        self.moved_away()
        self._paused_until_ms = now_ms + self.limits.backoff_ms

    def moved_away(self) -> None:
        """Another connection is used from now on; no answer to the last request will come."""
        self._session.restart()
        self._locator.forget_answers()
        self._paused_until_ms = 0

    def _take(self, topic_id: bytes, answer: PartitionData, now_ms: int) -> None:
        key = (topic_id, answer.partition_index)
        followed = self._followed.get(key)
        asked = self._session.members.get(key)
        # What was truncated, removed or said twice meanwhile was asked for by another offset.
        if followed is None or asked is None or asked.offset != followed.partition.log.end_offset:
            return
        if followed.partition.failure is not None:
            self._fail(followed, "its disk failed")
            return
        if answer.error_code == ErrorCode.NONE:
            self._attempt(followed, now_ms, self._intake.take, followed, answer)
            if isinstance(answer.records, memoryview) and answer.records:
                self._count(followed, len(answer.records), now_ms)
            if followed.ask() != asked:
                self._moved[key] = followed
        elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            followed.standing = Standing.LOCATING
            self._session.forget(key)
            self._locator.add(followed)
        else:
            self._refused(followed, answer.error_code, now_ms)

    def _count(self, followed: Followed, size_bytes: int, now_ms: int) -> None:
        key = followed.key
        self.received_bytes += size_bytes
        self._followed[key] = self._followed.pop(key)
        if key in self._throttled:
            self._throttle.quota.record(size_bytes, now_ms)

    def _place(self, located: Located, now_ms: int) -> None:
        followed = located.followed
        if located.error_code != ErrorCode.NONE:
            self._refused(followed, located.error_code, now_ms)
            return
        followed.standing = Standing.FETCHING
        self._moved[followed.key] = followed
        self._attempt(followed, now_ms, self._intake.place, located)

    # Waiting

    def _attempt(
        self, followed: Followed, now_ms: int, step: Callable[..., None], *given: object
    ) -> None:
        """Do what changes the log; what goes wrong with one partition is its own affair."""
        try:
            step(*given)
        except (KafkaError, Nonsense) as refusal:
            self._delay(followed, self.limits.backoff_ms, now_ms)
            if followed.refusals == 1:
                _logger.error("%s: its leader's answer is no use: %s", followed.name, refusal)
        except OSError as failure:
            self._fail(followed, f"{failure}")
        except Exception:
            _logger.exception("%s is followed no longer", followed.name)
            self._fail(followed, "this is a mistake of ours")

    def _refused(self, followed: Followed, error_code: int, now_ms: int) -> None:
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            # The leader has heard of its new epoch before this broker has.
            reason = f"leader epoch {followed.leader_epoch} is of the past"
            self._fail(followed, reason, logging.INFO)
            return
        wait_ms = self.limits.backoff_ms
        if error_code in _KNOWN_SOON:
            wait_ms = min(FIRST_WAIT_MS << min(followed.refusals, 16), wait_ms)
        elif followed.refusals == 0:
            code = ErrorCode.of(error_code)
            _logger.warning("%s: its leader refuses: %s", followed.name, code.name)
        self._delay(followed, wait_ms, now_ms)

    def _delay(self, followed: Followed, wait_ms: int, now_ms: int) -> None:
        followed.refusals += 1
        self._delays.add(followed, now_ms + wait_ms)
        self._session.forget(followed.key)

    def _fail(self, followed: Followed, reason: str, level: int = logging.WARNING) -> None:
        """Until the metadata has another epoch for it."""
        _logger.log(level, "%s is not fetched any more: %s", followed.name, reason)
        followed.standing = Standing.FAILED
        self._session.forget(followed.key)
