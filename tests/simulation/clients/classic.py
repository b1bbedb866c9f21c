"""A member by the classic protocol: join, sync, heartbeat, and all over again.

An eager one gives everything back before it joins again; a cooperative one keeps what it has, and
gives back what it is no longer assigned.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.clients import assigning
from tests.simulation.clients.assigning import Subscription
from tests.simulation.clients.client import COORDINATOR_ERRORS
from tests.simulation.clients.member import Member
from tests.simulation.clients.work import Identity, Work
from tests.simulation.events import TopicPartition
from tests.simulation.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from tests.simulation.world import World

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
HEARTBEAT_MS = 2_000
NO_GENERATION = -1

NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
TRIED_AGAIN = COORDINATOR_ERRORS | {ErrorCode.REBALANCE_IN_PROGRESS}


class ClassicMember(Member):
    session_ms = 6_000
    rebalance_ms = 8_000

    def __init__(
        self,
        world: "World",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[[Member], Work],
        instance_id: str | None = None,
        *,
        is_cooperative: bool,
    ) -> None:
        super().__init__(world, name, group_id, topics, work, instance_id)
        self.is_cooperative = is_cooperative
        self.generation = NO_GENERATION
        self._assigned_in = NO_GENERATION
        self._told_owned: set[TopicPartition] = set()
        self._joined: JoinGroupResponse | None = None
        self._divided: list[TopicPartition] = []
        """What there was to assign when it did, as the leader."""

    @property
    def identity(self) -> Identity:
        # Not the generation it has joined since: a coordinator that was lost before it had the
        # assignment may have given out that number, and so may the next.
        return Identity(self.group_id, self.member_id, self._assigned_in, self.instance_id)

    async def live(self) -> None:
        self.work.start()
        while not self.is_leaving:
            if await self._join() and await self._sync():
                await self._stay()
            elif not self.is_leaving:
                await self.back_off()
        await self._leave()

    async def _join(self) -> bool:
        """Enter the next generation."""
        if not self.is_cooperative:
            await self.give_back(set(self.holdings.owned))
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
                        name=assigning.COOPERATIVE if self.is_cooperative else assigning.EAGER,
                        metadata=assigning.write_subscription(self._subscription()),
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
        if not self._is_well(response.error_code):
            return False
        self._drop_if_fenced()
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.holdings.renew(sent_ms, is_calm=True)
        self._joined = response
        return True

    async def _sync(self) -> bool:
        """Get what this generation's leader assigned; assign it, if that is this one."""
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
        if response is None or not self._is_well(response.error_code):
            return False
        self.holdings.renew(sent_ms, is_calm=True)
        self._assigned_in = self.generation
        assigned = assigning.read_assignment(response.assignment)
        await self.give_back(self.holdings.owned - assigned)
        self.adopt(assigned)
        # What it said it had and is not to have, others get when it has joined again.
        return self._told_owned <= assigned

    async def _stay(self) -> None:
        """Heartbeat until told to join again."""
        while not self.is_leaving:
            await self.sleep(self.between(HEARTBEAT_MS // 2, HEARTBEAT_MS))
            if self._is_leader and self._divided != self.world.partitions_of(self.topics):
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
                self.holdings.renew(sent_ms, is_calm=False)
                return
            if code in COORDINATOR_ERRORS:
                continue
            if not self._is_well(code):
                return
            self.holdings.renew(sent_ms, is_calm=True)

    async def _leave(self) -> None:
        await self.give_back(set(self.holdings.owned))
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
        """The answer, or None."""
        try:
            return await self.ask(request, version, **options)
        except Unreachable:
            return None

    def _is_well(self, code: int) -> bool:
        """Whether the coordinator takes it for a member; draws the conclusions if not."""
        if code == ErrorCode.NONE:
            return True
        if code in NOT_A_MEMBER:
            self.lose_all()
            self.generation = self._assigned_in = NO_GENERATION
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.lose_all()
            self.note("is fenced by its double")
            self.is_leaving = True
            self.member_id = ""  # which is not its own to sign off
        else:
            assert code in TRIED_AGAIN, f"{self} is told {ErrorCode(code).name}"
        return False

    def _drop_if_fenced(self) -> None:
        """Without a lease nothing is carried over into another generation."""
        if not self.holdings.has_lease:
            self.lose_all()

    @property
    def _is_leader(self) -> bool:
        return self._joined is not None and self._joined.leader == self.member_id != ""

    def _subscription(self) -> Subscription:
        self._told_owned = set(self.holdings.owned)
        return Subscription(self.topics, self._told_owned, self._assigned_in)

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        if not self._is_leader or joined.skip_assignment or not joined.members:
            return []
        members = {
            each.member_id: assigning.read_subscription(each.metadata) for each in joined.members
        }
        topics = {topic for each in members.values() for topic in each.topics}
        assign = assigning.assign_cooperatively if self.is_cooperative else assigning.assign_eagerly
        self._divided = self.world.partitions_of(sorted(topics))
        assigned = assign(members, self._divided)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=assigning.write_assignment(partitions)
            )
            for member_id, partitions in sorted(assigned.items())
        ]
