"""The coordinator of groups as the server sees it: one method per API.

Each finds the shard that keeps a group and has it decide. Requests that name several groups are
split by group, for each may be kept by another shard, and their answers joined.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.coordinator.answer import Answer, all_of
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups import classic, consumer, deletion, listing, offsets
from barnabas.coordinator.groups.classic.describe import FIRST_VERSION_WITH_ERROR_MESSAGES
from barnabas.coordinator.groups.client import Client
from barnabas.coordinator.groups.consumer import classic_members
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GROUP_RECORDS, Groups, GroupSettings
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.ports import Clockwork, PartitionLog
from barnabas.coordinator.runtime import Runtime
from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.metadata.image import Image
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

Decide = Callable[[Groups, Request, Client], Decision[R]]


class GroupCoordinator:
    """Coordinates the groups whose partitions of `__consumer_offsets` this broker leads."""

    def __init__(
        self,
        settings: GroupSettings,
        image: Callable[[], Image],
        *,
        open_log: Callable[[int], PartitionLog],
        clockwork: Clockwork,
        clock: Callable[[], int],
    ) -> None:
        self.runtime: Runtime[Groups] = Runtime(
            GROUPS_TOPIC,
            GROUP_RECORDS,
            lambda shard: Groups(shard, settings, image()),
            open_log=open_log,
            clockwork=clockwork,
            clock=clock,
            partition_count=settings.broker("offsets.topic.num.partitions"),
            write_timeout_ms=settings.broker("offsets.commit.timeout.ms"),
            base_sequence=0,  # it means nothing, but Kafka has it so
        )

    # Membership by the classic protocol

    def join(self, request: JoinGroupRequest, client: Client) -> Answer[JoinGroupResponse]:
        return self._classic(classic.join, classic_members.join, request, client)

    def sync(self, request: SyncGroupRequest, client: Client) -> Answer[SyncGroupResponse]:
        return self._classic(classic.sync, classic_members.sync, request, client)

    def heartbeat(self, request: HeartbeatRequest, client: Client) -> Answer[HeartbeatResponse]:
        return self._classic(classic.heartbeat, classic_members.heartbeat, request, client)

    def leave(self, request: LeaveGroupRequest, client: Client) -> Answer[LeaveGroupResponse]:
        return self._classic(classic.leave, classic_members.leave, request, client)

    # Membership by the consumer protocol (KIP-848)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        return self._write(consumer.heartbeat, request, client)

    # Offsets

    def commit(self, request: OffsetCommitRequest, client: Client) -> Answer[OffsetCommitResponse]:
        return self._write(offsets.commit, request, client)

    def txn_commit(
        self, request: TxnOffsetCommitRequest, client: Client
    ) -> Answer[TxnOffsetCommitResponse]:
        return self._write(offsets.txn_commit, request, client)

    def fetch(
        self, wanted: Sequence[OffsetFetchRequestGroup], require_stable: bool, client: Client
    ) -> Answer[list[OffsetFetchResponseGroup]]:
        def fetch_one(group: OffsetFetchRequestGroup) -> Answer[OffsetFetchResponseGroup]:
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
        self, request: OffsetDeleteRequest, client: Client
    ) -> Answer[OffsetDeleteResponse]:
        return self._write(offsets.delete, request, client)

    def end_transaction(self, index: int, marker: Marker) -> Answer[None]:
        """A producer's transaction ended: so do the commits it made in partition `index`."""
        try:
            return self.runtime.shard(index).end_transaction(marker)
        except KafkaError as error:
            return Answer.failed(error)

    # Administration

    def describe(
        self, wanted: Sequence[str], client: Client
    ) -> Answer[list[describe_groups.DescribedGroup]]:
        """Groups of the classic protocol, and others as far as it can tell of them."""
        has_messages = client.api_version >= FIRST_VERSION_WITH_ERROR_MESSAGES

        def describe_one(group_id: str) -> Answer[describe_groups.DescribedGroup]:
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
        self, wanted: Sequence[str], client: Client
    ) -> Answer[list[consumer_group_describe.DescribedGroup]]:
        def describe_one(group_id: str) -> Answer[consumer_group_describe.DescribedGroup]:
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

    def delete(self, wanted: Sequence[str]) -> Answer[list[DeletableGroupResult]]:
        def delete_one(group_id: str) -> Answer[DeletableGroupResult]:
            return self.runtime.write(
                group_id, lambda groups: deletion.delete_group(groups, group_id)
            )

        return _each(
            wanted,
            delete_one,
            lambda group_id, code, message: DeletableGroupResult(
                group_id=group_id, error_code=code, error_message=message
            ),
        )

    def list(self, request: ListGroupsRequest, client: Client) -> Answer[ListGroupsResponse]:
        """All groups that this broker coordinates, or an error if some are not loaded yet."""
        if self.runtime.is_loading:
            return Answer.failed(
                KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Not all groups of this broker are loaded yet: try again.",
                )
            )
        by_shard = all_of(
            [
                shard.read(lambda groups: listing.list_groups(groups, request, client))
                for shard in self.runtime.active()
            ]
        )
        return by_shard.map(
            lambda lists: ListGroupsResponse(groups=[group for each in lists for group in each])
        )

    def _write(self, decide: Decide[Request, R], request: Request, client: Client) -> Answer[R]:
        return self.runtime.write(request.group_id, lambda groups: decide(groups, request, client))

    def _classic(
        self,
        in_classic_group: Decide[Request, R],
        in_consumer_group: Decide[Request, R],
        request: Request,
        client: Client,
    ) -> Answer[R]:
        """A member of the classic protocol speaks, maybe in a group of the other one."""

        def decide(groups: Groups) -> Decision[R]:
            group = groups.groups.get(request.group_id)
            mixed = isinstance(group, ConsumerGroup) and not group.is_empty
            return (in_consumer_group if mixed else in_classic_group)(groups, request, client)

        return self.runtime.write(request.group_id, decide)


def _each(
    wanted: Sequence[W],
    ask: Callable[[W], Answer[R]],
    refuse: Callable[[W, ErrorCode, str], R],
) -> Answer[list[R]]:
    """Ask for each by itself; one that fails is told of in its place."""

    def asked(item: W) -> Answer[R]:
        return ask(item).recover(lambda error: refuse(item, error.code, error.message))

    return all_of([asked(item) for item in wanted])
