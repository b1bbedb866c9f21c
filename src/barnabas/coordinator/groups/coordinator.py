"""The group coordinator as the server calls it: one method per API.

Each method finds the shard of a group and has it decide. A request that names several groups is
split by group, since each may be in another shard, and their responses are joined.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups import classic, consumer, offsets
from barnabas.coordinator.groups.admin import delete_group, list_groups
from barnabas.coordinator.groups.classic.responses import FIRST_VERSION_WITH_ERROR_MESSAGES
from barnabas.coordinator.groups.consumer import classic_members
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.context import (
    GroupClient,
    GroupContext,
    GroupRequestContext,
    GroupSettings,
)
from barnabas.coordinator.groups.offsets.plain_commit import PlainCommit
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.coordinator.ports import PartitionLog, TimerService, TransactionMarker
from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import consumer_groups, groups
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.wire.messages.groups import (
    DeletableGroupResult,
    ListGroupsRequest,
    ListGroupsResponse,
)


class GroupRequest(Protocol):
    """A request about one group."""

    group_id: str


Request = TypeVar("Request", bound=GroupRequest)
R = TypeVar("R")
T = TypeVar("T")

Decide = Callable[[Request, GroupCoordinatorState, GroupRequestContext], CoordinatorDecision[R]]


class GroupCoordinator:
    """Coordinates the groups whose partitions of `__consumer_offsets` this broker leads."""

    def __init__(
        self,
        settings: GroupSettings,
        image: Callable[[], MetadataImage],
        *,
        open_log: Callable[[int], PartitionLog],
        timer_service: TimerService,
        clock: Callable[[], int],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._settings = settings
        self._image = image
        self._clock = clock
        self._random_bytes = random_bytes
        self.runtime: CoordinatorRuntime[GroupCoordinatorState] = CoordinatorRuntime(
            GROUPS_TOPIC,
            GROUP_RECORDS,
            lambda shard: GroupCoordinatorState(shard.timers, image()),
            context=self._timer_context,
            open_log=open_log,
            timer_service=timer_service,
            clock=clock,
            partition_count=settings.broker("offsets.topic.num.partitions"),
            write_timeout_ms=settings.broker("offsets.commit.timeout.ms"),
            base_sequence=0,  # it has no meaning, but Kafka writes it
        )

    # Members of the classic protocol

    def join(
        self, request: JoinGroupRequest, client: GroupClient
    ) -> PendingResponse[JoinGroupResponse]:
        return self._classic(classic.join, classic_members.join, request, client)

    def sync(
        self, request: SyncGroupRequest, client: GroupClient
    ) -> PendingResponse[SyncGroupResponse]:
        return self._classic(classic.sync, classic_members.sync, request, client)

    def heartbeat(
        self, request: HeartbeatRequest, client: GroupClient
    ) -> PendingResponse[HeartbeatResponse]:
        return self._classic(classic.heartbeat, classic_members.heartbeat, request, client)

    def leave(
        self, request: LeaveGroupRequest, client: GroupClient
    ) -> PendingResponse[LeaveGroupResponse]:
        return self._classic(classic.leave, classic_members.leave, request, client)

    def refresh_classic_session(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None
    ) -> bool:
        """Does what `heartbeat` does for a member of a stable classic group, at once.

        Returns False, and does nothing, if the heartbeat has another response than success, or one
        that has to wait.
        """
        shard = self.runtime.active_shard_of(group_id)
        return (
            shard is not None
            and shard.is_committed
            and classic.refresh_session(group_id, generation, member_id, instance_id, shard.state)
        )

    # Members of the consumer protocol (KIP-848)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: GroupClient
    ) -> PendingResponse[ConsumerGroupHeartbeatResponse]:
        return self._write(consumer.heartbeat, request, client)

    def refresh_consumer_session(
        self,
        group_id: str,
        member_id: str,
        member_epoch: int,
        instance_id: str | None,
        client: GroupClient,
    ) -> int | None:
        """Does what `consumer_heartbeat` does for a heartbeat that reports nothing and changes
        nothing, at once. Returns the heartbeat interval in milliseconds.

        Returns None, and does nothing, if the heartbeat does more than that or has to wait.
        """
        shard = self.runtime.active_shard_of(group_id)
        if shard is None or not shard.is_committed:
            return None
        return consumer.refresh_session(
            group_id, member_id, member_epoch, instance_id, client, shard.state, self._settings
        )

    # Offsets

    def commit(
        self, request: OffsetCommitRequest, client: GroupClient
    ) -> PendingResponse[OffsetCommitResponse]:
        return self._write(offsets.commit, request, client)

    def commit_at_once(
        self,
        commit: PlainCommit,
        epoch: int,
        member_id: str,
        instance_id: str | None,
        api_version: int,
    ) -> ErrorCode | None:
        """Does what `commit` does, if the offsets are committed as soon as they are written.

        Returns the error code of all partitions. Returns None, and does nothing, if the sender may
        not commit, or would have to wait.
        """
        shard = self.runtime.active_shard_of(commit.group_id)
        if shard is None or not shard.commits_at_once:
            return None
        groups = shard.state
        if not offsets.may_commit(
            commit, epoch, member_id, instance_id, api_version, groups, self._settings
        ):
            return None
        error = shard.write_at_once(commit)
        if error is not None:
            return error.code
        offsets.restart_session(commit.group_id, member_id, groups)
        return ErrorCode.NONE

    def txn_commit(
        self, request: TxnOffsetCommitRequest, client: GroupClient
    ) -> PendingResponse[TxnOffsetCommitResponse]:
        return self._write(offsets.txn_commit, request, client)

    def fetch(
        self, requests: Sequence[OffsetFetchRequestGroup], require_stable: bool, client: GroupClient
    ) -> PendingResponse[list[OffsetFetchResponseGroup]]:
        context = self._context(client)

        def fetch_one(group: OffsetFetchRequestGroup) -> PendingResponse[OffsetFetchResponseGroup]:
            return self.runtime.read(
                group.group_id,
                lambda groups: offsets.fetch(group, groups, context, require_stable=require_stable),
            )

        return _for_each(
            requests,
            fetch_one,
            lambda group, code, _: OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=code
            ),
        )

    def delete_offsets(
        self, request: OffsetDeleteRequest, client: GroupClient
    ) -> PendingResponse[OffsetDeleteResponse]:
        return self._write(offsets.delete, request, client)

    def end_transaction(self, index: int, marker: TransactionMarker) -> PendingResponse[None]:
        """Ends a producer's transaction in partition `index`, and with it its commits there."""
        try:
            return self.runtime.shard(index).end_transaction(marker)
        except KafkaError as error:
            return PendingResponse.failed(error)

    # Administration

    def describe(
        self, group_ids: Sequence[str], client: GroupClient
    ) -> PendingResponse[list[groups.DescribedGroup]]:
        """Describes classic groups. Other groups are reported as dead."""
        has_messages = client.api_version >= FIRST_VERSION_WITH_ERROR_MESSAGES
        context = self._context(client)

        def describe_one(group_id: str) -> PendingResponse[groups.DescribedGroup]:
            return self.runtime.read(
                group_id, lambda groups: classic.describe(group_id, groups, context)
            )

        return _for_each(
            group_ids,
            describe_one,
            lambda group_id, code, message: groups.DescribedGroup(
                group_id=group_id, error_code=code, error_message=message if has_messages else None
            ),
        )

    def describe_consumer_groups(
        self, group_ids: Sequence[str], client: GroupClient
    ) -> PendingResponse[list[consumer_groups.DescribedGroup]]:
        context = self._context(client)

        def describe_one(group_id: str) -> PendingResponse[consumer_groups.DescribedGroup]:
            return self.runtime.read(
                group_id, lambda groups: consumer.describe(group_id, groups, context)
            )

        def error_response(
            group_id: str, code: ErrorCode, message: str
        ) -> consumer_groups.DescribedGroup:
            if not group_id:
                return consumer_groups.DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)
            return consumer_groups.DescribedGroup(
                group_id=group_id, error_code=code, error_message=message
            )

        return _for_each(group_ids, describe_one, error_response)

    def delete(self, group_ids: Sequence[str]) -> PendingResponse[list[DeletableGroupResult]]:
        def delete_one(group_id: str) -> PendingResponse[DeletableGroupResult]:
            return self.runtime.write(group_id, lambda groups: delete_group(group_id, groups))

        return _for_each(
            group_ids,
            delete_one,
            lambda group_id, code, message: DeletableGroupResult(
                group_id=group_id, error_code=code, error_message=message
            ),
        )

    def list(
        self, request: ListGroupsRequest, client: GroupClient
    ) -> PendingResponse[ListGroupsResponse]:
        """Lists the groups that this broker coordinates, once they are loaded."""
        by_shard = self.runtime.when_loaded().chain(
            lambda _: all_of(
                [
                    shard.read(lambda groups: list_groups(request, groups))
                    for shard in self.runtime.active_shards()
                ]
            )
        )
        return by_shard.map(
            lambda lists: ListGroupsResponse(groups=[group for listed in lists for group in listed])
        )

    def _context(self, client: GroupClient) -> GroupRequestContext:
        return GroupRequestContext(
            self._clock(), self._settings, self._image(), self._random_bytes, client
        )

    def _timer_context(self) -> GroupContext:
        return GroupContext(self._clock(), self._settings, self._image(), self._random_bytes)

    def _write(
        self, decide: Decide[Request, R], request: Request, client: GroupClient
    ) -> PendingResponse[R]:
        return self.runtime.write(
            request.group_id, lambda groups: decide(request, groups, self._context(client))
        )

    def _classic(
        self,
        in_classic_group: Decide[Request, R],
        in_consumer_group: Decide[Request, R],
        request: Request,
        client: GroupClient,
    ) -> PendingResponse[R]:
        """Handles the request of a classic member, which may be in a consumer group."""

        def decide(groups: GroupCoordinatorState) -> CoordinatorDecision[R]:
            group = groups.by_id.get(request.group_id)
            is_consumer_group = isinstance(group, ConsumerGroup) and not group.is_empty
            decide_for_group = in_consumer_group if is_consumer_group else in_classic_group
            return decide_for_group(request, groups, self._context(client))

        return self.runtime.write(request.group_id, decide)


def _for_each(
    items: Sequence[T],
    handle: Callable[[T], PendingResponse[R]],
    error_response: Callable[[T, ErrorCode, str], R],
) -> PendingResponse[list[R]]:
    """Handles each item by itself. The response of one that fails is an error response."""

    def handle_one(item: T) -> PendingResponse[R]:
        return handle(item).recover(lambda error: error_response(item, error.code, error.message))

    return all_of([handle_one(item) for item in items])
