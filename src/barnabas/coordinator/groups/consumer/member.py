"""A member of a consumer group: what it subscribes to, and what it may consume right now."""

from dataclasses import dataclass, field
from enum import IntEnum

from barnabas.wire.messages.group_records import ClassicMemberMetadata

JOINING = 0
LEAVING = -1
LEFT_FOR_A_WHILE = -2
"""Epochs that say what a member is about. A static member that left for a while keeps what it
has until its session times out."""

OwnedPartitions = dict[bytes, dict[int, int]]
"""By topic id and partition the member epoch at which the partition was given to the member.

A commit of an older epoch than the member's is still good for a partition that the member has
held since then. Never changed in place; a topic of which nothing is owned is not a key.
"""


class MemberState(IntEnum):
    """How far a member is on its way to the target assignment, as records number it."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It still has to give back partitions before its epoch moves on."""
    UNRELEASED_PARTITIONS = 2
    """It is at the target epoch, but waits for partitions that others still own."""
    UNKNOWN = 127
    """A newer coordinator's state: the member has to start anew."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    """Replaced as a whole whenever it changes."""

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
    """Set if it speaks the classic protocol."""
    member_epoch: int = 0
    previous_member_epoch: int = -1
    """A heartbeat with it is a retry: the answer that told the current epoch was lost."""
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def owned_since(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which it was given a partition that it has not given back."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
