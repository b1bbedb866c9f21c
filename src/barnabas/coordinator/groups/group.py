"""What all types of groups have in common: what offsets, listing and deletion need of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum

from barnabas.coordinator.records import CoordinatorRecord

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS = 9
"""The version of OffsetCommit that members of a consumer group need (KIP-848)."""

PartitionCheck = Callable[[str, bytes, int], None]
"""Called with topic name, topic id and partition. Raises KafkaError if the offset of the partition
may not be committed."""


class GroupType(StrEnum):
    """The types, by their names in ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(ABC):
    """A group of any protocol."""

    __slots__ = ()

    group_id: str
    group_type: GroupType

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as ListGroups reports it: Stable, Empty, Assigning..."""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """`consumer`, `connect`...; empty for a group that only keeps offsets."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @abstractmethod
    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:  # fmt: skip
        """Raises KafkaError if the member may not commit at that generation or member epoch.

        Where that depends on the partition, returns the check to make for each partition. The
        whole commit fails with the first partition that does not pass."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError if the member may not read the offsets. None is a client that is not a
        member."""

    @abstractmethod
    def check_delete(self) -> None:
        """Raises KafkaError if the group may not be deleted."""

    @abstractmethod
    def check_delete_offsets(self) -> None:
        """Raises KafkaError if an administrator may not delete offsets."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether its members consume the topic, so that its offsets are in use."""

    @abstractmethod
    def retention_start_ms(self, committed_ms: int) -> int | None:
        """Returns when the retention of an offset begins that was committed at `committed_ms`;
        None while offsets of this group do not expire. The caller checks whether the group is
        subscribed to the topic."""

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """Returns the records that delete the group, without those of its offsets."""
