"""A member of a consumer group (KIP-848): every heartbeat says what is new and brings what is.

Epoch 0 joins; -1 leaves, -2 is a static member that leaves for a while. The coordinator names the
partitions a member should have. Those it should not have any more are given back first, the next
heartbeat says so at once, and what was added is taken: nobody else has that by then.
"""

import math
from collections.abc import Mapping

from barnabas.client.backoff import Backoff
from barnabas.client.cluster.metadata import Metadata
from barnabas.client.consumer.group.consumer.heartbeat_requests import (
    HeartbeatFields,
    HeartbeatRequestBuilder,
)
from barnabas.client.consumer.group.errors import (
    is_retriable,
    max_poll_exceeded_error,
    response_error,
)
from barnabas.client.consumer.group.member import (
    Action,
    Assign,
    ReportError,
    ResolvedSubscription,
    Revoke,
    SendToGroupCoordinator,
)
from barnabas.client.consumer.group.owned_partitions import OwnedPartitions, PollTimer
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid, to_text

OUTSIDE = -1
JOINING = 0
LEAVING = -1
LEAVING_FOR_A_WHILE = -2

LEAVE_TIMEOUT_MS = 3_000
REFUSED_PAUSE_MS = 1_000

_FENCED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
_FATAL = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class ConsumerMember:
    """A `Member` by ConsumerGroupHeartbeat."""

    def __init__(self, settings: ConsumerSettings, member_id: str | None = None) -> None:
        self._settings = settings
        self.member_id = member_id or to_text(random_uuid())
        self._saying = HeartbeatRequestBuilder(settings, self.member_id)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._holdings = OwnedPartitions()
        self._attendance = PollTimer(settings.max_poll_interval_ms)
        self._metadata = Metadata()
        self._news: list[Action] = []  # for the next advance

        self.epoch = OUTSIDE
        self._sought: ResolvedSubscription | None = None
        self._is_leaving = False
        self._is_banned = False  # for good
        self._target: Mapping[bytes, frozenset[int]] = {}
        self._is_reconciled = True
        self._ids: dict[str, bytes] = {}  # of the topics it has partitions of
        self._names: dict[bytes, str] = {}  # of all it was ever told to have any of
        self._beat: Message | None = None  # under way
        self._farewell: Message | None = None  # under way
        self._looked_ms = -math.inf
        self._next_beat_ms = math.inf

    @property
    def has_left(self) -> bool:
        return self.epoch == OUTSIDE and not self._is_leaving and not self._holdings.is_changing

    @property
    def needed_topics(self) -> frozenset[str]:
        return frozenset() if self._sought is None else self._sought.names

    @property
    def needs_metadata(self) -> bool:
        return any(self._name(topic_id) is None for topic_id in self._target)

    @property
    def next_deadline_ms(self) -> float:
        times = (self._next_beat_ms, self._attendance.deadline_ms)
        # What was due before and could not be done waits for something else than time.
        return min((time_ms for time_ms in times if time_ms > self._looked_ms), default=math.inf)

    # What the user does

    def subscribe(self, sought: ResolvedSubscription, now_ms: float) -> None:
        if self._is_banned:
            return
        if self._sought is None:
            self._attendance.reset(now_ms)
        self._sought = sought

    def on_poll(self, now_ms: float) -> None:
        self._attendance.reset(now_ms)

    def leave(self) -> None:
        self._sought = None
        self._is_leaving = True

    # What others say

    def on_metadata(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def on_assignment_changed(self) -> None:
        self._holdings.complete_change()

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        if request is self._farewell:
            self._farewell = None
            self._out()
        if request is not self._beat:
            return
        self._beat = None
        if isinstance(outcome, KafkaError):
            self._refused(outcome, now_ms)
            return
        assert isinstance(outcome, ConsumerGroupHeartbeatResponse)
        if outcome.error_code:
            self._refused(response_error(outcome), now_ms)
            return
        self._backoff.reset()
        self._saying.on_acknowledged()
        self.epoch = outcome.member_epoch
        self._next_beat_ms = now_ms + outcome.heartbeat_interval_ms
        if outcome.assignment is not None:
            self._target = _by_topic_id(outcome.assignment)
            self._is_reconciled = False

    def _refused(self, error: KafkaError, now_ms: float) -> None:
        self._saying.reset()
        if error.code() in _FENCED:
            self._forsake()
            self._next_beat_ms = now_ms + self._backoff.next_ms()
        elif error.code() in _FATAL:
            self._sought = None
            self._is_banned = True
            self._forsake()
            self._news.append(ReportError(KafkaError(error.code(), error.str(), fatal=True)))
        elif is_retriable(error):
            self._next_beat_ms = now_ms + self._backoff.next_ms()
        else:
            self._next_beat_ms = now_ms + REFUSED_PAUSE_MS
            self._news.append(ReportError(error))

    # What is to be done

    def advance(self, now_ms: float) -> list[Action]:
        self._looked_ms = now_ms
        if self._sought is not None and self._attendance.expire(now_ms):
            self._news.append(
                ReportError(max_poll_exceeded_error(self._settings.max_poll_interval_ms))
            )
            if self.epoch != OUTSIDE:
                self._news.append(self._leave_request())
            self._forsake()
        steps, self._news = self._news, []
        while (step := self._next(now_ms)) is not None:
            steps.append(step)
        return steps

    def _next(self, now_ms: float) -> Action | None:
        if not self._is_reconciled and not self._holdings.is_changing:
            self._reconcile()
        if hand_over := self._holdings.next_change():
            return hand_over
        if self._is_leaving:
            return None if self._holdings.is_changing else self._leave()
        if self._beat is not None or self._sought is None or self._attendance.is_expired:
            return None
        if self.epoch == OUTSIDE:
            return self._join(self._sought, now_ms)
        said = HeartbeatFields(self._sought, self._holdings.owned)
        if now_ms < self._next_beat_ms and not self._saying.has_changed(said):
            return None
        return self._heartbeat(self.epoch, said)

    def _join(self, sought: ResolvedSubscription, now_ms: float) -> SendToGroupCoordinator | None:
        if self._holdings.is_changing or now_ms < self._next_beat_ms < math.inf:
            return None
        self._saying.reset()
        return self._heartbeat(JOINING, HeartbeatFields(sought))

    def _heartbeat(self, epoch: int, said: HeartbeatFields) -> SendToGroupCoordinator:
        self._beat = self._saying.build(epoch, said, self._ids)
        self._next_beat_ms = math.inf
        return SendToGroupCoordinator(self._beat, self._settings.request_timeout_ms)

    def _leave(self) -> Action | None:
        if self._farewell is not None:
            return None
        if owned := self._holdings.owned:
            self._holdings.plan(Revoke(owned, incremental=True))
            return self._holdings.next_change()
        if self.epoch == OUTSIDE and self._beat is None:
            self._out()
            return None
        leave = self._leave_request()
        self._farewell = leave.request
        self._beat = None
        return leave

    def _leave_request(self) -> SendToGroupCoordinator:
        is_static = self._settings.group_instance_id is not None
        request = self._saying.build_leave(LEAVING_FOR_A_WHILE if is_static else LEAVING)
        return SendToGroupCoordinator(request, LEAVE_TIMEOUT_MS)

    # Where it stands

    def _reconcile(self) -> None:
        """Plan how to get from what it owns to the target, as far as topics are known."""
        target = {
            (name, index): topic_id
            for topic_id, indexes in self._target.items()
            if (name := self._name(topic_id)) is not None
            for index in indexes
        }
        self._is_reconciled = not self.needs_metadata
        owned = self._holdings.owned
        # A topic of the same name with another id has been created anew since.
        kept = {each for each in owned if target.get(each) == self._ids[each[0]]}
        if revoked := owned - kept:
            self._holdings.plan(Revoke(revoked, incremental=True))
        if added := target.keys() - kept:
            self._holdings.plan(Assign(frozenset(added), incremental=True))
        self._ids.update((name, topic_id) for (name, _), topic_id in target.items())

    def _name(self, topic_id: bytes) -> str | None:
        """A topic's name, as it is or was last known."""
        name = self._metadata.topic_names.get(topic_id)
        if name is not None:
            self._names[topic_id] = name
        return self._names.get(topic_id)

    def _forsake(self) -> None:
        """The group goes on without this member: what it had, others have."""
        self.epoch = OUTSIDE
        self._beat = None
        self._next_beat_ms = math.inf
        self._target = {}
        self._is_reconciled = True
        self._holdings.lose_all()

    def _out(self) -> None:
        """It has left; should there be something to join for, it does so anew."""
        self._is_leaving = False
        self.epoch = OUTSIDE
        self._next_beat_ms = math.inf
        self._target = {}
        self._is_reconciled = True


def _by_topic_id(assignment: Assignment) -> dict[bytes, frozenset[int]]:
    return {each.topic_id: frozenset(each.partitions) for each in assignment.topic_partitions}
