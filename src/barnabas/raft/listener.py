"""What the quorum reports to the node: committed records, and changes of the leader."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True, frozen=True)
class CommittedBatch:
    """Encoded metadata records that were appended together, and the offset of the last one."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    frames: list[bytes]
    is_snapshot: bool = False


class QuorumListener(Protocol):
    """Called on the loop, in the order of the log."""

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """The next batches of the log are committed; every batch is passed once."""

    def on_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        """A snapshot replaces all records so far. `batches` must be read to the end at once."""

    def on_became_leader(self, epoch: int) -> None:
        """This node leads, and has passed everything that is committed before its epoch."""

    def on_resigned(self, epoch: int) -> None:
        """This node no longer leads."""

    def on_leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Another node leads, or none that this node knows of."""

    def on_failure(self, error: OSError) -> None:
        """The disk failed or is corrupt: this node must stop."""
