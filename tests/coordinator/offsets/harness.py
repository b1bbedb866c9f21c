"""A coordinator that stores offsets, with short methods for commits and fetches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.coordinator.environment import CoordinatorEnvironment, Settings

from barnabas.coordinator.groups import admin, offsets
from barnabas.coordinator.groups.context import GroupClient, GroupRequestContext
from barnabas.coordinator.groups.group import Group, GroupType, PartitionCheck
from barnabas.coordinator.groups.offsets.record import CommittedOffset
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import group_offsets
from barnabas.wire.messages.groups import ListGroupsRequest
from barnabas.wire.uuid import ZERO

PRODUCER = 4711
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Offered = Mapping[str | bytes, Mapping[int, int | tuple[int, str | None]]]
"""By topic name or id and by partition an offset, maybe with metadata."""


class OffsetHarness:
    """One shard, and topics `t` with four partitions and `u` with two."""

    def __init__(self, **settings: Any) -> None:
        self.environment = CoordinatorEnvironment(Settings(**settings))
        self.ids = {
            "t": self.environment.create_topic("t", 4),
            "u": self.environment.create_topic("u", 2),
        }
        self.groups: GroupCoordinatorState = self.environment.lead_groups()

    def context(self, version: int) -> GroupRequestContext:
        return self.environment.coordinator._context(client(version))

    def reload(self) -> None:
        self.groups = self.environment.lead_groups()

    @property
    def written(self) -> list[CoordinatorRecord]:
        return self.environment.log.records(GROUP_RECORDS)

    def held(self) -> dict[tuple[str, str, int], CommittedOffset]:
        """All that is committed."""
        store = self.groups.offsets
        return {
            (group_id, topic, partition): committed
            for group_id in self.groups.by_id
            for topic, partitions in store.of(group_id).items()
            for partition, committed in partitions
        }

    # OffsetCommit

    def commit(
        self,
        offered: Offered,
        *,
        group: str = "g",
        epoch: int = -1,
        member: str = "",
        instance: str | None = None,
        retention_ms: int = -1,
        leader_epoch: int = -1,
        version: int = 9,
    ) -> dict[str | bytes, dict[int, ErrorCode]] | ErrorCode:
        """The code of each partition, or of all."""
        request = group_offsets.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=commit_topics(
                offered,
                group_offsets.OffsetCommitRequestTopic,
                group_offsets.OffsetCommitRequestPartition,
                leader_epoch,
            ),
        )
        return codes(
            self.environment.shard.write(
                lambda groups: offsets.commit(request, groups, self.context(version))
            ),
            version >= 10,
        )

    # TxnOffsetCommit

    def txn_commit(
        self,
        offered: Offered,
        *,
        producer: int = PRODUCER,
        group: str = "g",
        epoch: int = -1,
        member: str = "",
        instance: str | None = None,
        version: int = 5,
    ) -> dict[str | bytes, dict[int, ErrorCode]] | ErrorCode:
        request = group_offsets.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=producer,
            producer_epoch=0,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=instance,
            topics=commit_topics(
                offered,
                group_offsets.TxnOffsetCommitRequestTopic,
                group_offsets.TxnOffsetCommitRequestPartition,
            ),
        )
        return codes(
            self.environment.shard.write(
                lambda groups: offsets.txn_commit(request, groups, self.context(version))
            ),
            version >= 6,
        )

    def end(self, committed: bool, producer: int = PRODUCER) -> None:
        marker = TransactionMarker(producer, 0, 0, committed, 2)
        self.environment.shard.end_transaction(marker).result()

    # OffsetFetch

    def fetch(
        self,
        requested: Mapping[str | bytes, Sequence[int]] | None,
        *,
        group: str = "g",
        member: str | None = None,
        epoch: int = -1,
        stable: bool = False,
        version: int = 9,
    ) -> dict[str | bytes, dict[int, int | ErrorCode]]:
        """The offset of each partition, or the code where there is an error."""
        response = self.fetch_whole(
            requested, group=group, member=member, epoch=epoch, stable=stable, version=version
        )
        return {
            topic.topic_id if version >= 10 else topic.name: {
                partition.partition_index: ErrorCode(partition.error_code)
                if partition.error_code
                else partition.committed_offset
                for partition in topic.partitions
            }
            for topic in response.topics
        }

    def fetch_whole(
        self,
        requested: Mapping[str | bytes, Sequence[int]] | None,
        *,
        group: str = "g",
        member: str | None = None,
        epoch: int = -1,
        stable: bool = False,
        version: int = 9,
    ) -> group_offsets.OffsetFetchResponseGroup:
        request = group_offsets.OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=None
            if requested is None
            else [
                group_offsets.OffsetFetchRequestTopics(
                    **named(topic), partition_indexes=list(indexes)
                )
                for topic, indexes in requested.items()
            ],
        )
        return self.environment.shard.read(
            lambda groups: offsets.fetch(
                request, groups, self.context(version), require_stable=stable
            )
        ).result()

    # Administration

    def delete_offsets(
        self, requested: Mapping[str, Sequence[int]], group: str = "g"
    ) -> dict[str | bytes, dict[int, ErrorCode]] | ErrorCode:
        request = group_offsets.OffsetDeleteRequest(
            group_id=group,
            topics=[
                group_offsets.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        group_offsets.OffsetDeleteRequestPartition(partition_index=index)
                        for index in indexes
                    ],
                )
                for topic, indexes in requested.items()
            ],
        )
        return codes(
            self.environment.shard.write(
                lambda groups: offsets.delete(request, groups, self.context(0))
            ),
            False,
        )

    def delete_group(self, group: str = "g") -> ErrorCode:
        response = self.environment.shard.write(lambda groups: admin.delete_group(group, groups))
        if isinstance(response.error, KafkaError):
            return response.error.code
        return ErrorCode(response.result().error_code)

    def list(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[str]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        listed = admin.list_groups(request, self.groups)
        return sorted(group.group_id for group in listed)


def commit_topics(
    offered: Offered,
    topic_type: Callable[..., Any],
    partition_type: Callable[..., Any],
    leader_epoch: int = -1,
) -> list[Any]:
    """Returns the topics of a commit, which have the same fields in both APIs."""
    return [
        topic_type(
            **named(topic),
            partitions=[
                partition_type(
                    partition_index=index,
                    committed_leader_epoch=leader_epoch,
                    **offset_and_metadata(offset),
                )
                for index, offset in partitions.items()
            ],
        )
        for topic, partitions in offered.items()
    ]


class StubGroup(Group):
    """A group whose checks a test controls."""

    def __init__(self, group_id: str = "g") -> None:
        self.group_id = group_id
        self.group_type = GroupType.CONSUMER
        self.empty = False
        self.append_error: KafkaError | None = None
        self.partition_check: PartitionCheck | None = None
        self.subscribed: set[str] = set()
        self.expires_after_ms: int | None = None
        self.checked: list[tuple[Any, ...]] = []

    @property
    def state_name(self) -> str:
        return "Empty" if self.empty else "Stable"

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return self.empty

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:  # fmt: skip
        self.checked.append((member_id, instance_id, epoch, transactional, api_version))
        self._refuse()
        return self.partition_check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self.checked.append((member_id, member_epoch))
        self._refuse()

    def check_delete(self) -> None:
        self._refuse()

    def check_delete_offsets(self) -> None:
        self._refuse()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def retention_start_ms(self, committed_ms: int) -> int | None:
        return self.expires_after_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return []

    def _refuse(self) -> None:
        if self.append_error is not None:
            raise self.append_error


def client(version: int) -> GroupClient:
    return GroupClient("client", "/127.0.0.1", version)


def named(topic: str | bytes) -> dict[str, Any]:
    if isinstance(topic, bytes):
        return {"name": "", "topic_id": topic}
    return {"name": topic, "topic_id": ZERO}


def offset_and_metadata(offered: int | tuple[int, str | None]) -> dict[str, Any]:
    offset, metadata = (offered, "") if isinstance(offered, int) else offered
    return {"committed_offset": offset, "committed_metadata": metadata}


def codes(
    response: PendingResponse[Any], by_id: bool
) -> dict[str | bytes, dict[int, ErrorCode]] | ErrorCode:
    """By topic and partition, or one for all."""
    if isinstance(response.error, KafkaError):
        return response.error.code
    return {
        topic.topic_id if by_id else topic.name: {
            partition.partition_index: ErrorCode(partition.error_code)
            for partition in topic.partitions
        }
        for topic in response.result().topics
    }
