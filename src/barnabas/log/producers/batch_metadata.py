"""What the log remembers of the last batches of each producer."""

from typing import NamedTuple


class BatchMetadata(NamedTuple):
    """The sequences and offsets of a batch, by which a retry is recognised."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int
