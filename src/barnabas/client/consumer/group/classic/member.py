"""A member of a classic group: joins, syncs, sends heartbeats, joins again when asked to, leaves.

    OUTSIDE --> JOINING --> JOINED --> SYNCING --> SETTLED
       ^           |                      |           |
       +-- refused, or no longer who it was ----------+

Eager members give everything back before they join; cooperative ones (KIP-429) keep what they have
and give back what their next assignment lacks. The coordinator names a member before it lets it
join (KIP-394); static members come back under their instance id and do not leave (KIP-345).
"""

import math
from enum import Enum, auto

from barnabas.client.backoff import Backoff
from barnabas.client.cluster.metadata import Metadata
from barnabas.client.consumer.group.assignors import ASSIGNORS, SubscribedMember
from barnabas.client.consumer.group.classic.consumer_protocol import read_assignment
from barnabas.client.consumer.group.classic.group_leader import GroupLeader
from barnabas.client.consumer.group.classic.requests import ClassicRequestBuilder
from barnabas.client.consumer.group.errors import (
    inconsistent_protocol_error,
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
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupResponse
from barnabas.wire.schema import Message

NO_GENERATION = -1
LEAVE_TIMEOUT_MS = 3_000
GRACE_MS = 5_000
"""How much longer than a rebalance may take its outcome is waited for."""
REFUSED_PAUSE_MS = 1_000
LEARN_MS = 3_000
"""How long a leader waits to hear of topics that only other members subscribe to."""


class ClassicMemberState(Enum):
    UNJOINED = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()  # to sync, once it knows all topics if it leads
    SYNCING = auto()
    STABLE = auto()


class ClassicMember:
    """A `Member` by JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        assignors = [ASSIGNORS[name] for name in settings.assignors]
        # One that is eager makes them all so: the group may agree on any.
        self._is_cooperative = all(each.is_cooperative for each in assignors)
        self._requests = ClassicRequestBuilder(settings, assignors)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._holdings = OwnedPartitions()
        self._attendance = PollTimer(settings.max_poll_interval_ms)
        self._metadata = Metadata()
        self._news: list[Action] = []  # for the next advance

        self.state = ClassicMemberState.UNJOINED
        self.member_id = ""
        self.epoch = NO_GENERATION
        self._sought: ResolvedSubscription | None = None
        self._rejoin_because: str | None = None
        self._remembered: tuple[frozenset[TopicPartitionTuple], int] = (frozenset(), NO_GENERATION)
        self._leader: GroupLeader | None = None
        self._protocol_name: str | None = None
        self._is_leaving = False
        self._is_banned = False  # for good
        self._asked: Message | None = None  # a join, sync or leave under way
        self._beat: Message | None = None  # a heartbeat under way
        self._looked_ms = -math.inf
        self._may_ask_ms = -math.inf
        self._learns_until_ms = -math.inf
        self._next_beat_ms = math.inf
        self._session_ends_ms = math.inf

    @property
    def has_left(self) -> bool:
        is_idle = self.state is ClassicMemberState.UNJOINED and self._asked is None
        return is_idle and not self._is_leaving and not self._holdings.is_changing

    @property
    def needed_topics(self) -> frozenset[str]:
        wanted = frozenset() if self._sought is None else self._sought.names
        return wanted if self._leader is None else wanted | self._leader.topics

    @property
    def needs_metadata(self) -> bool:
        return False  # assignments name topics, and a leader learns of those it wants

    @property
    def next_deadline_ms(self) -> float:
        times = [self._next_beat_ms, self._session_ends_ms, self._may_ask_ms]
        times += [self._attendance.deadline_ms, self._learns_until_ms]
        # What was due before and could not be done waits for something else than time.
        return min((time_ms for time_ms in times if time_ms > self._looked_ms), default=math.inf)

    # What the user does

    def subscribe(self, sought: ResolvedSubscription, now_ms: float) -> None:
        if self._is_banned:
            return
        if self._sought is None:
            self._attendance.reset(now_ms)
        elif sought.topics == self._sought.topics:
            return
        self._sought = sought
        self._rejoin_because = "the subscription has changed"

    def on_poll(self, now_ms: float) -> None:
        self._attendance.reset(now_ms)

    def leave(self) -> None:
        self._sought = None
        self._is_leaving = True

    # What others say

    def on_metadata(self, metadata: Metadata) -> None:
        self._metadata = metadata
        if self._leader is not None and self.state is ClassicMemberState.STABLE:
            changed = self._leader.changed_topics(metadata)
            if changed:
                self._rejoin_because = f"topics have changed: {', '.join(sorted(changed))}"

    def on_assignment_changed(self) -> None:
        self._holdings.complete_change()

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        error = None
        if isinstance(outcome, KafkaError):
            error = outcome
        elif outcome.error_code:  # type: ignore[attr-defined]
            error = response_error(outcome)
        if request is self._beat:
            self._beat = None
            self._beaten(error, now_ms)
        elif request is self._asked:
            self._asked = None
            if isinstance(request, LeaveGroupRequest):
                self._out()
            elif isinstance(outcome, JoinGroupResponse):
                self._joined(outcome, error, now_ms)
            elif isinstance(outcome, SyncGroupResponse):
                self._synced(outcome, error, now_ms)
            else:
                assert error is not None
                self._not_taken(error, now_ms)

    def _joined(self, response: JoinGroupResponse, error: KafkaError | None, now_ms: float) -> None:
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.state = ClassicMemberState.UNJOINED
            return
        if error is None:
            try:
                is_leader = response.leader == response.member_id
                self._leader = GroupLeader(response) if is_leader else None
            except (ProtocolViolation, KeyError) as violation:
                error = inconsistent_protocol_error(violation)
        if error is not None:
            self._not_taken(error, now_ms)
            return
        self._backoff.reset()
        self.state = ClassicMemberState.COMPLETING_REBALANCE
        self.member_id = response.member_id
        self.epoch = response.generation_id
        self._protocol_name = response.protocol_name
        self._learns_until_ms = now_ms + LEARN_MS

    def _synced(self, response: SyncGroupResponse, error: KafkaError | None, now_ms: float) -> None:
        assigned: frozenset[TopicPartitionTuple] = frozenset()
        if error is None:
            try:
                assigned = read_assignment(bytes(response.assignment))
            except ProtocolViolation as violation:
                error = inconsistent_protocol_error(violation)
        if error is not None:
            self._not_taken(error, now_ms)
            return
        self.state = ClassicMemberState.STABLE
        self._is_alive(now_ms)
        self._remembered = (assigned, self.epoch)
        if not self._is_cooperative:
            self._holdings.plan(Assign(assigned, incremental=False))
            return
        revoked = self._holdings.owned - assigned
        added = assigned - self._holdings.owned
        if revoked:
            self._holdings.plan(Revoke(revoked, incremental=True))
            self._rejoin_because = "it has given up partitions that others wait for"
        if added or not revoked:
            self._holdings.plan(Assign(added, incremental=True))

    def _not_taken(self, error: KafkaError, now_ms: float) -> None:
        """Neither joined nor synced: begin again."""
        self.state = ClassicMemberState.UNJOINED
        self._may_ask_ms = now_ms + self._backoff.next_ms()
        self._refused(error, now_ms)

    def _beaten(self, error: KafkaError | None, now_ms: float) -> None:
        if self.state is not ClassicMemberState.STABLE:
            return
        if error is not None and is_retriable(error):
            self._next_beat_ms = now_ms + self._backoff.next_ms()
            return
        self._backoff.reset()
        self._is_alive(now_ms)
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin_because = self._rejoin_because or "the group rebalances"
        elif error is not None:
            self._refused(error, now_ms)

    def _refused(self, error: KafkaError, now_ms: float) -> None:
        """What a coordinator's no means for who this member is."""
        match error.code():
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self._forsake()
            case ErrorCode.ILLEGAL_GENERATION:
                self._forsake()
            case ErrorCode.FENCED_INSTANCE_ID | ErrorCode.UNSUPPORTED_VERSION:
                self._sought = None
                self._is_banned = True
                self._forsake()
                self._news.append(ReportError(KafkaError(error.code(), error.str(), fatal=True)))
            case ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            case _ if not is_retriable(error):
                self._may_ask_ms = now_ms + REFUSED_PAUSE_MS
                self._news.append(ReportError(error))

    # What is to be done

    def advance(self, now_ms: float) -> list[Action]:
        self._looked_ms = now_ms
        self._look_at_the_time(now_ms)
        steps, self._news = self._news, []
        while (step := self._next(now_ms)) is not None:
            steps.append(step)
        return steps

    def _look_at_the_time(self, now_ms: float) -> None:
        if now_ms >= self._session_ends_ms:
            # Nobody has answered for so long that the coordinator has given up this member.
            self.member_id = ""
            self._forsake()
        if self._sought is not None and self._attendance.expire(now_ms):
            self._news.append(
                ReportError(max_poll_exceeded_error(self._settings.max_poll_interval_ms))
            )
            if self._can_leave:
                self._news.append(self._leave_request("max.poll.interval.ms has passed"))
            self._asked = None
            self.member_id = ""
            self._forsake()

    def _next(self, now_ms: float) -> Action | None:
        if hand_over := self._holdings.next_change():
            return hand_over
        if self._beat is None and now_ms >= self._next_beat_ms:
            return self._heartbeat()
        if self._holdings.is_changing:
            return None
        if self._is_leaving:
            return self._leave()
        if self._asked is not None or self._sought is None or self._attendance.is_expired:
            return None
        if self.state is ClassicMemberState.COMPLETING_REBALANCE:
            return self._sync(now_ms)
        if self.state is ClassicMemberState.STABLE and self._rejoin_because is None:
            return None
        return self._join(self._sought) if now_ms >= self._may_ask_ms else None

    def _join(self, sought: ResolvedSubscription) -> Action | None:
        """Join, after giving back what is not to be had meanwhile."""
        owned = self._holdings.owned
        if self._is_cooperative:
            owned = frozenset(each for each in owned if each[0] not in sought.topics)
        if owned:
            self._holdings.plan(Revoke(owned, incremental=self._is_cooperative))
            return self._holdings.next_change()
        if not sought.topics and self.state is ClassicMemberState.UNJOINED:
            return None  # a pattern that matches nothing yet
        remembered, since = self._remembered
        me = SubscribedMember(
            self.member_id,
            sought.topics,
            self._settings.group_instance_id,
            self._holdings.owned,
            since if self._is_cooperative else NO_GENERATION,
            self._settings.client_rack or None,
        )
        request = self._requests.join(me, (remembered, since), self._rejoin_because)
        self._unsettle(ClassicMemberState.PREPARING_REBALANCE)
        self._rejoin_because = None
        return self._ask(request)

    def _sync(self, now_ms: float) -> SendToGroupCoordinator | None:
        assignments = []
        if self._leader is not None:
            if now_ms < self._learns_until_ms and not self._leader.has_metadata_for_all(
                self._metadata
            ):
                return None
            assignments = self._leader.assign(self._metadata)
        self.state = ClassicMemberState.SYNCING
        return self._ask(
            self._requests.sync(self.member_id, self.epoch, self._protocol_name, assignments)
        )

    def _ask(self, request: Message) -> SendToGroupCoordinator:
        self._asked = request
        timeout_ms = self._settings.max_poll_interval_ms + GRACE_MS
        return SendToGroupCoordinator(request, timeout_ms, waits_for_rebalance=True)

    def _heartbeat(self) -> SendToGroupCoordinator:
        self._beat = self._requests.heartbeat(self.member_id, self.epoch)
        self._next_beat_ms = math.inf
        # A coordinator that is silent for so long is looked for anew while the session lasts.
        return SendToGroupCoordinator(self._beat, self._settings.session_timeout_ms / 2)

    def _leave(self) -> Action | None:
        if isinstance(self._asked, LeaveGroupRequest):
            return None
        if owned := self._holdings.owned:
            self._holdings.plan(Revoke(owned, incremental=self._is_cooperative))
            return self._holdings.next_change()
        if not self._can_leave:
            self._out()
            return None
        leave = self._leave_request("the consumer unsubscribes")
        self._asked = leave.request
        self._unsettle(ClassicMemberState.UNJOINED)
        return leave

    @property
    def _can_leave(self) -> bool:
        return bool(self.member_id) and self._settings.group_instance_id is None

    def _leave_request(self, reason: str) -> SendToGroupCoordinator:
        return SendToGroupCoordinator(
            self._requests.leave(self.member_id, reason), LEAVE_TIMEOUT_MS
        )

    # Where it stands

    def _is_alive(self, now_ms: float) -> None:
        """The coordinator has just heard of this member."""
        self._next_beat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._session_ends_ms = now_ms + self._settings.session_timeout_ms

    def _unsettle(self, standing: ClassicMemberState) -> None:
        self.state = standing
        self._beat = None
        self._next_beat_ms = self._session_ends_ms = math.inf

    def _forsake(self) -> None:
        """The group goes on without this member: what it had, others have."""
        self._unsettle(ClassicMemberState.UNJOINED)
        self.epoch = NO_GENERATION
        self._leader = None
        self._holdings.lose_all()

    def _out(self) -> None:
        """It has left; should there be something to join for, it does so anew."""
        self._unsettle(ClassicMemberState.UNJOINED)
        self._is_leaving = False
        self.member_id = ""
        self.epoch = NO_GENERATION
        self._remembered = (frozenset(), NO_GENERATION)
        self._leader = None
        self._asked = None
