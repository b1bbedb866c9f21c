"""What the quorum tells the node: what is committed, and who leads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True, frozen=True)
class CommittedBatch:
    """Encoded metadata records that count together, and the offset of the last of them."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    frames: list[bytes]
    is_snapshot: bool = False


class QuorumListener(Protocol):
    """Told of every change, on the loop, in order."""

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """The next batches of the log below the high watermark; each comes once."""

    def on_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        """A snapshot stands in place of everything so far. To be read at once, to its end."""

    def on_became_leader(self, epoch: int) -> None:
        """This node leads, and everything before its epoch has been told."""

    def on_resigned(self, epoch: int) -> None:
        """It no longer does."""

    def on_leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Another leads, or nobody that this node knows of."""

    def on_failure(self, error: OSError) -> None:
        """The disk refused, or holds what cannot be read: this node must stop."""
