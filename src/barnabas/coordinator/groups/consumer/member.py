"""A member of a consumer group: its subscription and its current assignment."""

from dataclasses import dataclass, field
from enum import IntEnum

from barnabas.wire.messages.group_records import ClassicMemberMetadata

JOINING = 0
LEAVING = -1
LEAVING_TEMPORARILY = -2
"""Member epochs with a meaning of their own. A static member that left temporarily keeps its
partitions until its session times out."""

OwnedPartitions = dict[bytes, dict[int, int]]
"""The member epoch at which a partition was assigned to the member, by topic id and partition.

A commit with an older epoch than the member's is still valid for a partition that the member has
owned since then. Never changed in place; a topic without owned partitions is not a key.
"""


class MemberState(IntEnum):
    """The progress of a member to its target assignment, by its number in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to revoke partitions before its epoch is bumped."""
    UNRELEASED_PARTITIONS = 2
    """It is at the target epoch, but waits for partitions that other members still own."""
    UNKNOWN = 127
    """A state of a newer version of the broker: the member has to rejoin."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    """A value: a member that changes is replaced."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    """Empty: no subscription by regular expression."""
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    """Set if it uses the classic protocol."""
    member_epoch: int = 0
    previous_member_epoch: int = -1
    """A heartbeat with it is a retry: the response with the current epoch was lost."""
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def owned_since(self, topic_id: bytes, partition: int) -> int | None:
        """Returns the epoch at which it was assigned a partition that it has not revoked."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
