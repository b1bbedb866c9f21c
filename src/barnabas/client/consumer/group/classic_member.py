"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

    UNJOINED -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> STABLE
       ^                |                       |                |
       +----------------+- error, or fenced ----+----------------+

Eager members revoke all partitions before they join; cooperative members (KIP-429) keep theirs,
and revoke those that their next assignment lacks. The coordinator gives a member its id before it
may join (KIP-394); static members rejoin by their instance id and do not leave (KIP-345).
"""

import math
from enum import Enum, auto

from barnabas.client.backoff import Backoff
from barnabas.client.cluster.metadata import MetadataSnapshot
from barnabas.client.consumer.group.assignors import ASSIGNORS, SubscribedMember
from barnabas.client.consumer.group.classic_requests import ClassicRequestBuilder, read_assignment
from barnabas.client.consumer.group.group_leader import GroupLeader
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
    inconsistent_protocol_error,
    is_retriable,
    max_poll_exceeded_error,
)
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.classic_groups import (
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)
from barnabas.wire.schema import Message

NO_GENERATION = -1
LEAVE_TIMEOUT_MS = 3_000
REBALANCE_GRACE_MS = 5_000
"""How much longer than the rebalance timeout the member waits for JoinGroup and SyncGroup."""
ERROR_BACKOFF_MS = 1_000
METADATA_WAIT_MS = 3_000
"""How long a leader waits for metadata of topics that only other members subscribe to."""


class ClassicMemberState(Enum):
    UNJOINED = auto()
    PREPARING_REBALANCE = auto()  # JoinGroup is in flight
    COMPLETING_REBALANCE = auto()  # SyncGroup is in flight, or waits for the leader's metadata
    STABLE = auto()


class ClassicGroupMembership:
    """A `GroupMembership` by the classic protocol."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        assignors = [ASSIGNORS[name] for name in settings.assignors]
        # An eager assignor makes the member eager: the group may select any of them.
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._requests = ClassicRequestBuilder(settings, assignors)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._owned = OwnedPartitions()
        self._poll_timer = PollTimer(settings.max_poll_interval_ms)
        self._metadata = MetadataSnapshot()
        self._actions: list[Action] = []  # for the next advance

        self.state = ClassicMemberState.UNJOINED
        self.member_id = ""
        self.epoch = NO_GENERATION
        self._subscription: ResolvedSubscription | None = None
        self._rejoin_reason: str | None = None
        self._last_assignment: tuple[frozenset[PartitionKey], int] = (frozenset(), NO_GENERATION)
        self._leader: GroupLeader | None = None  # if this member leads the generation
        self._protocol_name: str | None = None
        self._is_leaving = False
        self._is_fatal = False
        self._pending: Message | None = None  # JoinGroup, SyncGroup or LeaveGroup in flight
        self._heartbeat: Message | None = None  # in flight
        self._now_ms = -math.inf  # of the last advance
        self._retry_at_ms = -math.inf
        self._metadata_deadline_ms = -math.inf
        self._next_heartbeat_ms = math.inf
        self._session_deadline_ms = math.inf

    @property
    def has_left(self) -> bool:
        is_idle = self.state is ClassicMemberState.UNJOINED and self._pending is None
        return is_idle and not self._is_leaving and not self._owned.is_changing

    @property
    def needed_topics(self) -> frozenset[str]:
        names = frozenset() if self._subscription is None else self._subscription.names
        return names if self._leader is None else names | self._leader.topics

    @property
    def needs_metadata(self) -> bool:
        return False  # assignments have topic names, and a leader waits for its needed topics

    @property
    def next_deadline_ms(self) -> float:
        times = [self._next_heartbeat_ms, self._session_deadline_ms, self._retry_at_ms]
        times += [self._poll_timer.deadline_ms, self._metadata_deadline_ms]
        # A deadline that has passed without an action waits for an event, not for time.
        return min((time_ms for time_ms in times if time_ms > self._now_ms), default=math.inf)

    # Events of the user

    def subscribe(self, subscription: ResolvedSubscription, now_ms: float) -> None:
        if self._is_fatal:
            return
        if self._subscription is None:
            self._poll_timer.reset(now_ms)
        elif subscription.topics == self._subscription.topics:
            return
        self._subscription = subscription
        self._rejoin_reason = "the subscription has changed"

    def on_poll(self, now_ms: float) -> None:
        self._poll_timer.reset(now_ms)

    def leave(self) -> None:
        self._subscription = None
        self._is_leaving = True

    # Events of the cluster

    def on_metadata(self, metadata: MetadataSnapshot) -> None:
        self._metadata = metadata
        if self._leader is not None and self.state is ClassicMemberState.STABLE:
            changed = self._leader.changed_topics(metadata)
            if changed:
                self._rejoin_reason = f"topics have changed: {', '.join(sorted(changed))}"

    def on_assignment_changed(self) -> None:
        self._owned.complete_change()

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        error = error_of(outcome)
        if request is self._heartbeat:
            self._heartbeat = None
            self._on_heartbeat_response(error, now_ms)
        if request is not self._pending:
            return
        self._pending = None
        match self.state:
            case ClassicMemberState.UNJOINED:  # the response to LeaveGroup, or there is none
                self._on_left()
            case ClassicMemberState.PREPARING_REBALANCE:
                self._on_join_response(outcome, error, now_ms)
            case ClassicMemberState.COMPLETING_REBALANCE:
                self._on_sync_response(outcome, error, now_ms)
            case ClassicMemberState.STABLE:
                raise AssertionError("a stable member has only heartbeats in flight")

    def _on_join_response(
        self, outcome: Message | KafkaError, error: KafkaError | None, now_ms: float
    ) -> None:
        if error == ErrorCode.MEMBER_ID_REQUIRED and isinstance(outcome, JoinGroupResponse):
            self.member_id = outcome.member_id
            self.state = ClassicMemberState.UNJOINED
            return
        if error is not None:
            self._on_rebalance_error(error, now_ms)
            return
        assert isinstance(outcome, JoinGroupResponse)
        try:
            is_leader = outcome.leader == outcome.member_id
            self._leader = GroupLeader(outcome) if is_leader else None
        except (ProtocolViolation, KeyError) as violation:
            self._on_rebalance_error(inconsistent_protocol_error(violation), now_ms)
            return
        self._backoff.reset()
        self.state = ClassicMemberState.COMPLETING_REBALANCE
        self.member_id = outcome.member_id
        self.epoch = outcome.generation_id
        self._protocol_name = outcome.protocol_name
        self._metadata_deadline_ms = now_ms + METADATA_WAIT_MS

    def _on_sync_response(
        self, outcome: Message | KafkaError, error: KafkaError | None, now_ms: float
    ) -> None:
        if error is not None:
            self._on_rebalance_error(error, now_ms)
            return
        assert isinstance(outcome, SyncGroupResponse)
        try:
            assigned = read_assignment(bytes(outcome.assignment))
        except ProtocolViolation as violation:
            self._on_rebalance_error(inconsistent_protocol_error(violation), now_ms)
            return
        self.state = ClassicMemberState.STABLE
        self._on_session_renewed(now_ms)
        self._last_assignment = (assigned, self.epoch)
        if not self._is_cooperative:
            self._owned.plan(Assign(assigned, incremental=False))
            return
        revoked = self._owned.partitions - assigned
        added = assigned - self._owned.partitions
        if revoked:
            self._owned.plan(Revoke(revoked, incremental=True))
            self._rejoin_reason = "it has revoked partitions that are assigned to other members"
        if added or not revoked:
            self._owned.plan(Assign(added, incremental=True))

    def _on_rebalance_error(self, error: KafkaError, now_ms: float) -> None:
        """JoinGroup or SyncGroup failed: the member joins again."""
        self.state = ClassicMemberState.UNJOINED
        self._retry_at_ms = now_ms + self._backoff.next_ms()
        self._on_error(error, now_ms)

    def _on_heartbeat_response(self, error: KafkaError | None, now_ms: float) -> None:
        if self.state is not ClassicMemberState.STABLE:
            return
        if error is not None and is_retriable(error):
            self._next_heartbeat_ms = now_ms + self._backoff.next_ms()
            return
        self._backoff.reset()
        self._on_session_renewed(now_ms)
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin_reason = self._rejoin_reason or "the group rebalances"
        elif error is not None:
            self._on_error(error, now_ms)

    def _on_error(self, error: KafkaError, now_ms: float) -> None:
        match error.code():
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self._lose_membership()
            case ErrorCode.ILLEGAL_GENERATION:
                self._lose_membership()
            case ErrorCode.FENCED_INSTANCE_ID | ErrorCode.UNSUPPORTED_VERSION:
                self._subscription = None
                self._is_fatal = True
                self._lose_membership()
                self._actions.append(ReportError(KafkaError(error.code(), error.str(), fatal=True)))
            case ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            case _ if not is_retriable(error):
                self._retry_at_ms = now_ms + ERROR_BACKOFF_MS
                self._actions.append(ReportError(error))

    # Actions

    def advance(self, now_ms: float) -> list[Action]:
        self._now_ms = now_ms
        self._check_deadlines(now_ms)
        actions, self._actions = self._actions, []
        while (action := self._next_action(now_ms)) is not None:
            actions.append(action)
        return actions

    def _check_deadlines(self, now_ms: float) -> None:
        if now_ms >= self._session_deadline_ms:
            # The coordinator has not responded for so long that it has removed this member.
            self.member_id = ""
            self._lose_membership()
        if self._subscription is not None and self._poll_timer.expire(now_ms):
            error = max_poll_exceeded_error(self._settings.max_poll_interval_ms)
            self._actions.append(ReportError(error))
            if self._sends_leave:
                self._actions.append(self._leave_action("max.poll.interval.ms has passed"))
            self._pending = None
            self.member_id = ""
            self._lose_membership()

    def _next_action(self, now_ms: float) -> Action | None:
        if change := self._owned.next_change():
            return change
        if self._heartbeat is None and now_ms >= self._next_heartbeat_ms:
            return self._send_heartbeat()
        if self._owned.is_changing:
            return None
        if self._is_leaving:
            return self._leave()
        if self._pending is not None or self._subscription is None or self._poll_timer.is_expired:
            return None
        match self.state:
            case ClassicMemberState.UNJOINED if now_ms >= self._retry_at_ms:
                return self._join(self._subscription)
            case ClassicMemberState.COMPLETING_REBALANCE:
                return self._sync(now_ms)
            case ClassicMemberState.STABLE if (
                self._rejoin_reason is not None and now_ms >= self._retry_at_ms
            ):
                return self._join(self._subscription)
            case _:
                return None

    def _join(self, subscription: ResolvedSubscription) -> Action | None:
        """Sends JoinGroup, after revoking the partitions that the member must not keep."""
        revoked = self._owned.partitions
        if self._is_cooperative:
            revoked = frozenset(each for each in revoked if each[0] not in subscription.topics)
        if revoked:
            self._owned.plan(Revoke(revoked, incremental=self._is_cooperative))
            return self._owned.next_change()
        if not subscription.topics and self.state is ClassicMemberState.UNJOINED:
            return None  # no topic matches the pattern yet
        assigned, generation = self._last_assignment
        member = SubscribedMember(
            self.member_id,
            subscription.topics,
            self._settings.group_instance_id,
            self._owned.partitions,
            generation if self._is_cooperative else NO_GENERATION,
            self._settings.client_rack or None,
        )
        request = self._requests.join(member, (assigned, generation), self._rejoin_reason)
        self._leave_stable(ClassicMemberState.PREPARING_REBALANCE)
        self._rejoin_reason = None
        return self._send_rebalance_request(request)

    def _sync(self, now_ms: float) -> SendToGroupCoordinator | None:
        assignments = []
        if self._leader is not None:
            has_metadata = self._leader.has_metadata_for_all(self._metadata)
            if now_ms < self._metadata_deadline_ms and not has_metadata:
                return None
            assignments = self._leader.assign(self._metadata)
        return self._send_rebalance_request(
            self._requests.sync(self.member_id, self.epoch, self._protocol_name, assignments)
        )

    def _send_rebalance_request(self, request: Message) -> SendToGroupCoordinator:
        self._pending = request
        timeout_ms = self._settings.max_poll_interval_ms + REBALANCE_GRACE_MS
        return SendToGroupCoordinator(request, timeout_ms, waits_for_rebalance=True)

    def _send_heartbeat(self) -> SendToGroupCoordinator:
        self._heartbeat = self._requests.heartbeat(self.member_id, self.epoch)
        self._next_heartbeat_ms = math.inf
        # Half of the session leaves time to find another coordinator.
        return SendToGroupCoordinator(self._heartbeat, self._settings.session_timeout_ms / 2)

    def _leave(self) -> Action | None:
        if isinstance(self._pending, LeaveGroupRequest):
            return None
        if owned := self._owned.partitions:
            self._owned.plan(Revoke(owned, incremental=self._is_cooperative))
            return self._owned.next_change()
        if not self._sends_leave:
            self._on_left()
            return None
        leave = self._leave_action("the consumer unsubscribes")
        self._pending = leave.request
        self._leave_stable(ClassicMemberState.UNJOINED)
        return leave

    @property
    def _sends_leave(self) -> bool:
        return bool(self.member_id) and self._settings.group_instance_id is None

    def _leave_action(self, reason: str) -> SendToGroupCoordinator:
        return SendToGroupCoordinator(
            self._requests.leave(self.member_id, reason), LEAVE_TIMEOUT_MS
        )

    # Transitions

    def _on_session_renewed(self, now_ms: float) -> None:
        self._next_heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._session_deadline_ms = now_ms + self._settings.session_timeout_ms

    def _leave_stable(self, state: ClassicMemberState) -> None:
        """Heartbeats are sent in the state STABLE alone."""
        self.state = state
        self._heartbeat = None
        self._next_heartbeat_ms = self._session_deadline_ms = math.inf

    def _lose_membership(self) -> None:
        """The group continues without this member, whose partitions go to other members."""
        self._leave_stable(ClassicMemberState.UNJOINED)
        self.epoch = NO_GENERATION
        self._leader = None
        self._owned.lose_all()

    def _on_left(self) -> None:
        """The member has left; it joins as a new member if there is a subscription."""
        self._leave_stable(ClassicMemberState.UNJOINED)
        self._is_leaving = False
        self.member_id = ""
        self.epoch = NO_GENERATION
        self._last_assignment = (frozenset(), NO_GENERATION)
        self._leader = None
        self._pending = None
