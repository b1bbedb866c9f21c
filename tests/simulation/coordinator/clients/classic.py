"""A member with the classic protocol: join, sync, heartbeat, and join again.

An eager member revokes all partitions before it joins again; a cooperative one revokes those that
are not assigned to it any more.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.coordinator.clients import assignor
from tests.simulation.coordinator.clients.assignor import Subscription
from tests.simulation.coordinator.clients.client import COORDINATOR_ERRORS
from tests.simulation.coordinator.clients.member import Member
from tests.simulation.coordinator.clients.partition_work import Identity, PartitionWork
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
HEARTBEAT_MS = 2_000
NO_GENERATION = -1

NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
RETRIABLE_ERRORS = COORDINATOR_ERRORS | {ErrorCode.REBALANCE_IN_PROGRESS}


class ClassicMember(Member):
    session_ms = 6_000
    rebalance_ms = 8_000

    def __init__(
        self,
        world: "CoordinatorWorld",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[[Member], PartitionWork],
        instance_id: str | None = None,
        *,
        is_cooperative: bool,
    ) -> None:
        super().__init__(world, name, group_id, topics, work, instance_id)
        self.is_cooperative = is_cooperative
        self.generation = NO_GENERATION
        self._assigned_in = NO_GENERATION
        self._reported_owned: set[TopicPartition] = set()
        self._joined: JoinGroupResponse | None = None
        self._assigned_partitions: list[TopicPartition] = []
        """The partitions of its last assignment as the leader."""

    @property
    def identity(self) -> Identity:
        # Not the generation that it has joined since: a coordinator that was lost before it had the
        # assignment may have used that number, and the next one may use it again.
        return Identity(self.group_id, self.member_id, self._assigned_in, self.instance_id)

    async def run(self) -> None:
        self.work.start()
        while not self.is_leaving:
            if await self._join() and await self._sync():
                await self._stay()
            elif not self.is_leaving:
                await self.back_off()
        await self._leave()

    async def _join(self) -> bool:
        """Joins the next generation."""
        if not self.is_cooperative:
            await self.revoke(set(self.owned.partitions))
        self._drop_if_fenced()
        sent_ms = self.now_ms
        response = await self._try(
            JoinGroupRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=self.rebalance_ms,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequestProtocol(
                        name=assignor.COOPERATIVE if self.is_cooperative else assignor.EAGER,
                        metadata=assignor.write_subscription(self._subscription()),
                    )
                ],
            ),
            JOIN_VERSION,
            timeout_ms=self.rebalance_ms + 5_000,
        )
        if response is None:
            return False
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return await self._join()
        if not self._is_member(response.error_code):
            return False
        self._drop_if_fenced()
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.owned.renew(sent_ms, is_stable=True)
        self._joined = response
        return True

    async def _sync(self) -> bool:
        """Gets the assignment of this generation; makes it, if this member is the leader."""
        joined = self._joined
        assert joined is not None
        sent_ms = self.now_ms
        response = await self._try(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocol_name=joined.protocol_name,
                assignments=self._assign(joined),
            ),
            SYNC_VERSION,
            timeout_ms=self.rebalance_ms + 5_000,
        )
        if response is None or not self._is_member(response.error_code):
            return False
        self.owned.renew(sent_ms, is_stable=True)
        self._assigned_in = self.generation
        assigned = assignor.read_assignment(response.assignment)
        await self.revoke(self.owned.partitions - assigned)
        self.assign(assigned)
        # Other members get the partitions that it has revoked once it has joined again.
        return self._reported_owned <= assigned

    async def _stay(self) -> None:
        """Sends heartbeats until it must join again."""
        while not self.is_leaving:
            await self.sleep(self.between(HEARTBEAT_MS // 2, HEARTBEAT_MS))
            if self._is_leader and self._assigned_partitions != self.world.partitions_of(
                self.topics
            ):
                return
            sent_ms = self.now_ms
            response = await self._try(
                HeartbeatRequest(
                    group_id=self.group_id,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                ),
                HEARTBEAT_VERSION,
            )
            if response is None:
                continue
            code = response.error_code
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.owned.renew(sent_ms, is_stable=False)
                return
            if code in COORDINATOR_ERRORS:
                continue
            if not self._is_member(code):
                return
            self.owned.renew(sent_ms, is_stable=True)

    async def _leave(self) -> None:
        await self.revoke(set(self.owned.partitions))
        if self.member_id:
            await self._try(
                LeaveGroupRequest(
                    group_id=self.group_id,
                    members=[
                        MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
                    ],
                ),
                LEAVE_VERSION,
            )

    async def _try(self, request: Any, version: int, **options: int) -> Any:
        """Returns the response, or None."""
        try:
            return await self.send_request(request, version, **options)
        except Unreachable:
            return None

    def _is_member(self, code: int) -> bool:
        """Returns whether the coordinator confirms the membership; resets the member if not."""
        if code == ErrorCode.NONE:
            return True
        if code in NOT_A_MEMBER:
            self.lose_all()
            self.generation = self._assigned_in = NO_GENERATION
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.lose_all()
            self.note("is fenced by another member with its instance id")
            self.is_leaving = True
            self.member_id = ""  # it must not leave in the name of the other member
        else:
            assert code in RETRIABLE_ERRORS, f"{self} gets {ErrorCode(code).name}"
        return False

    def _drop_if_fenced(self) -> None:
        """Without a lease, no partition is kept in another generation."""
        if not self.owned.has_lease:
            self.lose_all()

    @property
    def _is_leader(self) -> bool:
        return self._joined is not None and self._joined.leader == self.member_id != ""

    def _subscription(self) -> Subscription:
        self._reported_owned = set(self.owned.partitions)
        return Subscription(self.topics, self._reported_owned, self._assigned_in)

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        if not self._is_leader or joined.skip_assignment or not joined.members:
            return []
        members = {
            member.member_id: assignor.read_subscription(member.metadata)
            for member in joined.members
        }
        topics = {topic for subscription in members.values() for topic in subscription.topics}
        assign = assignor.assign_cooperatively if self.is_cooperative else assignor.assign_eagerly
        self._assigned_partitions = self.world.partitions_of(sorted(topics))
        assigned = assign(members, self._assigned_partitions)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=assignor.write_assignment(partitions)
            )
            for member_id, partitions in sorted(assigned.items())
        ]
