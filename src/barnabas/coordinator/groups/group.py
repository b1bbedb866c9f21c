"""What all kinds of groups have in common: what offsets, listings and deletion ask of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum

from barnabas.coordinator.records import CoordinatorRecord

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS = 9
"""Of OffsetCommit: a consumer group's members need it (KIP-848)."""

PartitionCheck = Callable[[str, bytes, int], None]
"""KafkaError unless offsets of a partition may be committed: topic name, topic id, partition."""


class GroupType(StrEnum):
    """As ListGroups names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(ABC):
    """A group of consumers, of whatever protocol."""

    __slots__ = ()

    group_id: str
    group_type: GroupType

    @property
    @abstractmethod
    def state_name(self) -> str:
        """As ListGroups tells it: Stable, Empty, Assigning..."""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """`consumer`, `connect`...; empty for a group that only keeps offsets."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nobody is in it."""

    @abstractmethod
    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:  # fmt: skip
        """KafkaError unless that member may commit offsets at that generation or member epoch.

        Where that depends on the partition, the check to make for each is returned; the whole
        commit fails with the first partition that does not pass."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError unless that member (None: anybody) may read the offsets."""

    @abstractmethod
    def check_delete(self) -> None:
        """KafkaError unless the group may be deleted: GROUP_NOT_EMPTY..."""

    @abstractmethod
    def check_delete_offsets(self) -> None:
        """KafkaError unless offsets may be deleted by an administrator."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether its members consume the topic, so that its offsets are in use."""

    @abstractmethod
    def retention_start_ms(self, committed_ms: int) -> int | None:
        """The moment from which the retention of an offset counts that was committed at
        `committed_ms`; None while offsets of this group do not expire at all. Whether the
        topic is subscribed to is asked separately."""

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that take the group itself back; its offsets are not among them."""
