"""One partition that this broker follows: where it stands with its leader."""

from enum import Enum, auto
from typing import NamedTuple

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.partition import Partition

NEVER_TOLD = -1


class Standing(Enum):
    """What can be done with a followed partition next."""

    FETCHING = auto()
    LOCATING = auto()
    """Its offset is outside the leader's log: the leader is asked where that begins and ends."""
    DELAYED = auto()
    """The leader refused it, or sent what cannot be: asked for again after a while."""
    FAILED = auto()
    """Nothing helps but another leader epoch, or another disk."""


class Asked(NamedTuple):
    """What a fetch says of a partition; an answer counts only while all of it still holds."""

    offset: int
    last_epoch: int
    start_offset: int


class Followed:
    """A partition and its leader's epoch. How far it is, its log knows."""

    __slots__ = (
        "is_held_back",
        "key",
        "leader_epoch",
        "leader_high_watermark",
        "partition",
        "refusals",
        "resumes_ms",
        "standing",
    )

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.index)
        self.leader_epoch = leader_epoch
        self.standing = Standing.FETCHING
        self.leader_high_watermark = NEVER_TOLD
        self.refusals = 0
        """How often in a row it was refused: the wait grows with it."""
        self.resumes_ms = 0
        self.is_held_back = False
        """The throttle keeps it out of the fetches for now."""

    def __repr__(self) -> str:
        return f"<Followed {self.partition!r} {self.standing.name} at epoch {self.leader_epoch}>"

    @property
    def name(self) -> str:
        return f"{self.partition.topic}-{self.partition.index}"

    @property
    def lag(self) -> int:
        """How many offsets the leader has that count and are not here."""
        return max(self.leader_high_watermark - self.partition.log.end_offset, 0)

    @property
    def is_in_sync(self) -> bool:
        """Whether it had all that counts when the leader last spoke of it."""
        return self.leader_high_watermark != NEVER_TOLD and self.lag == 0

    def ask(self) -> Asked:
        """The next fetch of it. An empty log has no epoch, and so nothing to diverge."""
        log = self.partition.log
        return Asked(log.end_offset, log.latest_epoch, log.start_offset)
