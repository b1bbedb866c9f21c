"""The coordinator of groups as the server sees it: one method per API.

Each finds the shard that keeps a group and has it decide. Requests that name several groups are
split by group, for each may be kept by another shard, and their answers joined.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups import classic, consumer, offsets
from barnabas.coordinator.groups import delete_groups
from barnabas.coordinator.groups import list_groups
from barnabas.coordinator.groups.classic.describe import FIRST_VERSION_WITH_ERROR_MESSAGES
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer import classic_members
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState, GroupSettings
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.ports import TimerService, PartitionLog
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import consumer_group_describe, describe_groups
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.delete_groups import (
    DeletableGroupResult,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


class GroupRequest(Protocol):
    """A request about one group."""

    group_id: str


Request = TypeVar("Request", bound=GroupRequest)
R = TypeVar("R")
W = TypeVar("W")

Decide = Callable[[GroupCoordinatorState, Request, GroupClient], Decision[R]]


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
    ) -> None:
        self.runtime: CoordinatorRuntime[GroupCoordinatorState] = CoordinatorRuntime(
            GROUPS_TOPIC,
            GROUP_RECORDS,
            lambda shard: GroupCoordinatorState(shard, settings, image()),
            open_log=open_log,
            timer_service=timer_service,
            clock=clock,
            partition_count=settings.broker("offsets.topic.num.partitions"),
            write_timeout_ms=settings.broker("offsets.commit.timeout.ms"),
            base_sequence=0,  # it means nothing, but Kafka has it so
        )

    # Membership by the classic protocol

    def join(self, request: JoinGroupRequest, client: GroupClient) -> PendingResponse[JoinGroupResponse]:
        return self._classic(classic.join, classic_members.join, request, client)

    def sync(self, request: SyncGroupRequest, client: GroupClient) -> PendingResponse[SyncGroupResponse]:
        return self._classic(classic.sync, classic_members.sync, request, client)

    def heartbeat(self, request: HeartbeatRequest, client: GroupClient) -> PendingResponse[HeartbeatResponse]:
        return self._classic(classic.heartbeat, classic_members.heartbeat, request, client)

    def leave(self, request: LeaveGroupRequest, client: GroupClient) -> PendingResponse[LeaveGroupResponse]:
        return self._classic(classic.leave, classic_members.leave, request, client)

    # Membership by the consumer protocol (KIP-848)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: GroupClient
    ) -> PendingResponse[ConsumerGroupHeartbeatResponse]:
        return self._write(consumer.heartbeat, request, client)

    # Offsets

    def commit(self, request: OffsetCommitRequest, client: GroupClient) -> PendingResponse[OffsetCommitResponse]:
        return self._write(offsets.commit, request, client)

    def txn_commit(
        self, request: TxnOffsetCommitRequest, client: GroupClient
    ) -> PendingResponse[TxnOffsetCommitResponse]:
        return self._write(offsets.txn_commit, request, client)

    def fetch(
        self, wanted: Sequence[OffsetFetchRequestGroup], require_stable: bool, client: GroupClient
    ) -> PendingResponse[list[OffsetFetchResponseGroup]]:
        def fetch_one(group: OffsetFetchRequestGroup) -> PendingResponse[OffsetFetchResponseGroup]:
            return self.runtime.read(
                group.group_id, lambda groups: offsets.fetch(groups, group, require_stable, client)
            )

        return _each(
            wanted,
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
        """A producer's transaction ended: so do the commits it made in partition `index`."""
        try:
            return self.runtime.shard(index).end_transaction(marker)
        except KafkaError as error:
            return PendingResponse.failed(error)

    # Administration

    def describe(
        self, wanted: Sequence[str], client: GroupClient
    ) -> PendingResponse[list[describe_groups.DescribedGroup]]:
        """Groups of the classic protocol, and others as far as it can tell of them."""
        has_messages = client.api_version >= FIRST_VERSION_WITH_ERROR_MESSAGES

        def describe_one(group_id: str) -> PendingResponse[describe_groups.DescribedGroup]:
            return self.runtime.read(
                group_id, lambda groups: classic.describe(groups, group_id, client)
            )

        return _each(
            wanted,
            describe_one,
            lambda group_id, code, message: describe_groups.DescribedGroup(
                group_id=group_id,
                error_code=code,
                error_message=message if has_messages else None,
            ),
        )

    def describe_consumer_groups(
        self, wanted: Sequence[str], client: GroupClient
    ) -> PendingResponse[list[consumer_group_describe.DescribedGroup]]:
        def describe_one(group_id: str) -> PendingResponse[consumer_group_describe.DescribedGroup]:
            return self.runtime.read(group_id, lambda groups: consumer.describe(groups, group_id))

        def refuse(
            group_id: str, code: ErrorCode, message: str
        ) -> consumer_group_describe.DescribedGroup:
            if not group_id:
                return consumer_group_describe.DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)
            return consumer_group_describe.DescribedGroup(
                group_id=group_id, error_code=code, error_message=message
            )

        return _each(wanted, describe_one, refuse)

    def delete(self, wanted: Sequence[str]) -> PendingResponse[list[DeletableGroupResult]]:
        def delete_one(group_id: str) -> PendingResponse[DeletableGroupResult]:
            return self.runtime.write(
                group_id, lambda groups: delete_groups.delete_group(groups, group_id)
            )

        return _each(
            wanted,
            delete_one,
            lambda group_id, code, message: DeletableGroupResult(
                group_id=group_id, error_code=code, error_message=message
            ),
        )

    def list(self, request: ListGroupsRequest, client: GroupClient) -> PendingResponse[ListGroupsResponse]:
        """All groups that this broker coordinates, or an error if some are not loaded yet."""
        if self.runtime.is_loading:
            return PendingResponse.failed(
                KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Not all groups of this broker are loaded yet: try again.",
                )
            )
        by_shard = all_of(
            [
                shard.read(lambda groups: list_groups.list_groups(groups, request, client))
                for shard in self.runtime.active_shards()
            ]
        )
        return by_shard.map(
            lambda lists: ListGroupsResponse(groups=[group for each in lists for group in each])
        )

    def _write(self, decide: Decide[Request, R], request: Request, client: GroupClient) -> PendingResponse[R]:
        return self.runtime.write(request.group_id, lambda groups: decide(groups, request, client))

    def _classic(
        self,
        in_classic_group: Decide[Request, R],
        in_consumer_group: Decide[Request, R],
        request: Request,
        client: GroupClient,
    ) -> PendingResponse[R]:
        """A member of the classic protocol speaks, maybe in a group of the other one."""

        def decide(groups: GroupCoordinatorState) -> Decision[R]:
            group = groups.by_id.get(request.group_id)
            mixed = isinstance(group, ConsumerGroup) and not group.is_empty
            return (in_consumer_group if mixed else in_classic_group)(groups, request, client)

        return self.runtime.write(request.group_id, decide)


def _each(
    wanted: Sequence[W],
    ask: Callable[[W], PendingResponse[R]],
    refuse: Callable[[W, ErrorCode, str], R],
) -> PendingResponse[list[R]]:
    """Ask for each by itself; one that fails is told of in its place."""

    def asked(item: W) -> PendingResponse[R]:
        return ask(item).recover(lambda error: refuse(item, error.code, error.message))

    return all_of([asked(item) for item in wanted])
