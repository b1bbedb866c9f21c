"""A member of a consumer group (KIP-848): heartbeats report changes in both directions.

    UNSUBSCRIBED -> JOINING -> RECONCILING -> ACKNOWLEDGING -> STABLE
                       ^          ^                              |
                       |          +-- a new target assignment ---+
                       +-- FENCED (by the coordinator), STALE (the user does not poll)

    any -> PREPARE_LEAVING -> LEAVING -> UNSUBSCRIBED        any -> FATAL

The member joins with epoch 0 and leaves with -1, or with -2 if it is static and comes back. The
coordinator sends the target assignment. The member revokes what is not in the target, reports
that at once, and adds the new partitions: no other member owns them by then.
"""

import math
from collections.abc import Mapping
from enum import Enum, auto

from barnabas.client.backoff import Backoff
from barnabas.client.cluster.metadata import MetadataSnapshot
from barnabas.client.consumer.group.heartbeat_requests import (
    HeartbeatFields,
    HeartbeatRequestBuilder,
)
from barnabas.client.consumer.group.membership import (
    Action,
    Assign,
    OwnedPartitions,
    PollTimer,
    ReportError,
    ResolvedSubscription,
    Revoke,
    SendToGroupCoordinator,
    error_of,
    is_retriable,
    max_poll_exceeded_error,
)
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_groups import Assignment, ConsumerGroupHeartbeatResponse
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid, to_text

NO_EPOCH = -1
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

LEAVE_TIMEOUT_MS = 3_000
ERROR_BACKOFF_MS = 1_000

_FENCING_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
_FATAL_ERRORS = frozenset(
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


class ConsumerMemberState(Enum):
    UNSUBSCRIBED = auto()
    JOINING = auto()
    RECONCILING = auto()  # owned partitions differ from the target assignment
    ACKNOWLEDGING = auto()  # the next heartbeat reports the owned partitions
    STABLE = auto()
    FENCED = auto()  # its partitions are lost; it joins again once the user has released them
    STALE = auto()  # max.poll.interval.ms has passed; it joins again at the next poll
    PREPARE_LEAVING = auto()  # the user releases its partitions
    LEAVING = auto()  # the last heartbeat is in flight
    FATAL = auto()


class ConsumerGroupMembership:
    """A `GroupMembership` by ConsumerGroupHeartbeat."""

    def __init__(self, settings: ConsumerSettings, member_id: str | None = None) -> None:
        self._settings = settings
        self.member_id = member_id or to_text(random_uuid())
        self._heartbeats = HeartbeatRequestBuilder(settings, self.member_id)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._owned = OwnedPartitions()
        self._poll_timer = PollTimer(settings.max_poll_interval_ms)
        self._metadata = MetadataSnapshot()
        self._actions: list[Action] = []  # for the next advance

        self.epoch = NO_EPOCH
        self._subscription: ResolvedSubscription | None = None
        self._is_leaving = False
        self._is_fatal = False
        self._target: Mapping[bytes, frozenset[int]] = {}
        self._is_reconciled = True
        self._topic_ids: dict[str, bytes] = {}  # of owned partitions
        self._topic_names: dict[bytes, str] = {}  # of all topics that were ever assigned
        self._heartbeat: Message | None = None  # in flight
        self._leave_heartbeat: Message | None = None  # in flight
        self._now_ms = -math.inf  # of the last advance
        self._next_heartbeat_ms = math.inf

    @property
    def state(self) -> ConsumerMemberState:
        if self._is_leaving:
            is_sent = self._leave_heartbeat is not None
            return ConsumerMemberState.LEAVING if is_sent else ConsumerMemberState.PREPARE_LEAVING
        if self._is_fatal:
            return ConsumerMemberState.FATAL
        if self._subscription is None:
            return ConsumerMemberState.UNSUBSCRIBED
        if self._poll_timer.is_expired:
            return ConsumerMemberState.STALE
        if self.epoch == NO_EPOCH:
            is_fenced = self._owned.is_changing
            return ConsumerMemberState.FENCED if is_fenced else ConsumerMemberState.JOINING
        if not self._is_reconciled or self._owned.is_changing:
            return ConsumerMemberState.RECONCILING
        if self._heartbeats.has_changed(self._fields(self._subscription)):
            return ConsumerMemberState.ACKNOWLEDGING
        return ConsumerMemberState.STABLE

    @property
    def has_left(self) -> bool:
        return self.epoch == NO_EPOCH and not self._is_leaving and not self._owned.is_changing

    @property
    def needed_topics(self) -> frozenset[str]:
        return frozenset() if self._subscription is None else self._subscription.names

    @property
    def needs_metadata(self) -> bool:
        return any(self._topic_name(topic_id) is None for topic_id in self._target)

    @property
    def next_deadline_ms(self) -> float:
        times = (self._next_heartbeat_ms, self._poll_timer.deadline_ms)
        # A deadline that has passed without an action waits for an event, not for time.
        return min((time_ms for time_ms in times if time_ms > self._now_ms), default=math.inf)

    # Events of the user

    def subscribe(self, subscription: ResolvedSubscription, now_ms: float) -> None:
        if self._is_fatal:
            return
        if self._subscription is None:
            self._poll_timer.reset(now_ms)
        self._subscription = subscription

    def on_poll(self, now_ms: float) -> None:
        self._poll_timer.reset(now_ms)

    def leave(self) -> None:
        self._subscription = None
        self._is_leaving = True

    # Events of the cluster

    def on_metadata(self, metadata: MetadataSnapshot) -> None:
        self._metadata = metadata

    def on_assignment_changed(self) -> None:
        self._owned.complete_change()

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        if request is self._leave_heartbeat:
            self._leave_heartbeat = None
            self._on_left()
        if request is not self._heartbeat:
            return
        self._heartbeat = None
        error = error_of(outcome)
        if error is not None:
            self._on_error(error, now_ms)
            return
        assert isinstance(outcome, ConsumerGroupHeartbeatResponse)
        self._backoff.reset()
        self._heartbeats.on_acknowledged()
        self.epoch = outcome.member_epoch
        self._next_heartbeat_ms = now_ms + outcome.heartbeat_interval_ms
        if outcome.assignment is not None:
            self._target = _by_topic_id(outcome.assignment)
            self._is_reconciled = False

    def _on_error(self, error: KafkaError, now_ms: float) -> None:
        self._heartbeats.reset()
        if error.code() in _FENCING_ERRORS:
            self._lose_membership()
            self._next_heartbeat_ms = now_ms + self._backoff.next_ms()
        elif error.code() in _FATAL_ERRORS:
            self._subscription = None
            self._is_fatal = True
            self._lose_membership()
            self._actions.append(ReportError(KafkaError(error.code(), error.str(), fatal=True)))
        elif is_retriable(error):
            self._next_heartbeat_ms = now_ms + self._backoff.next_ms()
        else:
            self._next_heartbeat_ms = now_ms + ERROR_BACKOFF_MS
            self._actions.append(ReportError(error))

    # Actions

    def advance(self, now_ms: float) -> list[Action]:
        self._now_ms = now_ms
        if self._subscription is not None and self._poll_timer.expire(now_ms):
            error = max_poll_exceeded_error(self._settings.max_poll_interval_ms)
            self._actions.append(ReportError(error))
            if self.epoch != NO_EPOCH:
                self._actions.append(self._leave_action())
            self._lose_membership()
        actions, self._actions = self._actions, []
        while (action := self._next_action(now_ms)) is not None:
            actions.append(action)
        return actions

    def _next_action(self, now_ms: float) -> Action | None:
        if not self._is_reconciled and not self._owned.is_changing:
            self._reconcile()
        if change := self._owned.next_change():
            return change
        match self.state:
            case ConsumerMemberState.PREPARE_LEAVING if not self._owned.is_changing:
                return self._leave()
            case ConsumerMemberState.JOINING:
                return self._join(now_ms)
            case (
                ConsumerMemberState.RECONCILING
                | ConsumerMemberState.ACKNOWLEDGING
                | ConsumerMemberState.STABLE
            ):
                return self._report(now_ms)
            case _:
                return None

    def _join(self, now_ms: float) -> SendToGroupCoordinator | None:
        if self._heartbeat is not None or now_ms < self._next_heartbeat_ms < math.inf:
            return None
        assert self._subscription is not None, "it has a subscription to join for"
        self._heartbeats.reset()
        return self._send_heartbeat(JOIN_EPOCH, HeartbeatFields(self._subscription))

    def _report(self, now_ms: float) -> SendToGroupCoordinator | None:
        """Sends a heartbeat when one is due, and at once when something has changed."""
        if self._heartbeat is not None:
            return None
        assert self._subscription is not None, "a member has a subscription"
        fields = self._fields(self._subscription)
        if now_ms < self._next_heartbeat_ms and not self._heartbeats.has_changed(fields):
            return None
        return self._send_heartbeat(self.epoch, fields)

    def _fields(self, subscription: ResolvedSubscription) -> HeartbeatFields:
        return HeartbeatFields(subscription, self._owned.partitions)

    def _send_heartbeat(self, epoch: int, fields: HeartbeatFields) -> SendToGroupCoordinator:
        self._heartbeat = self._heartbeats.build(epoch, fields, self._topic_ids)
        self._next_heartbeat_ms = math.inf
        return SendToGroupCoordinator(self._heartbeat, self._settings.request_timeout_ms)

    def _leave(self) -> Action | None:
        if owned := self._owned.partitions:
            self._owned.plan(Revoke(owned, incremental=True))
            return self._owned.next_change()
        if self.epoch == NO_EPOCH and self._heartbeat is None:
            self._on_left()
            return None
        leave = self._leave_action()
        self._leave_heartbeat = leave.request
        self._heartbeat = None
        return leave

    def _leave_action(self) -> SendToGroupCoordinator:
        is_static = self._settings.group_instance_id is not None
        request = self._heartbeats.build_leave(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH)
        return SendToGroupCoordinator(request, LEAVE_TIMEOUT_MS)

    # Transitions

    def _reconcile(self) -> None:
        """Plans the changes from the owned partitions to the target, for topics with a name."""
        target = {
            (name, index): topic_id
            for topic_id, indexes in self._target.items()
            if (name := self._topic_name(topic_id)) is not None
            for index in indexes
        }
        self._is_reconciled = not self.needs_metadata
        owned = self._owned.partitions
        # A topic of the same name with another id was deleted and created again.
        kept = {each for each in owned if target.get(each) == self._topic_ids[each[0]]}
        if revoked := owned - kept:
            self._owned.plan(Revoke(revoked, incremental=True))
        if added := target.keys() - kept:
            self._owned.plan(Assign(frozenset(added), incremental=True))
        self._topic_ids.update((name, topic_id) for (name, _), topic_id in target.items())

    def _topic_name(self, topic_id: bytes) -> str | None:
        """Returns the current or last known name of a topic."""
        name = self._metadata.topic_names.get(topic_id)
        if name is not None:
            self._topic_names[topic_id] = name
        return self._topic_names.get(topic_id)

    def _lose_membership(self) -> None:
        """The group continues without this member, whose partitions go to other members."""
        self._reset()
        self._heartbeat = None
        self._owned.lose_all()

    def _on_left(self) -> None:
        """The member has left; it joins again if there is a subscription."""
        self._is_leaving = False
        self._reset()

    def _reset(self) -> None:
        self.epoch = NO_EPOCH
        self._next_heartbeat_ms = math.inf
        self._target = {}
        self._is_reconciled = True


def _by_topic_id(assignment: Assignment) -> dict[bytes, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in assignment.topic_partitions}
