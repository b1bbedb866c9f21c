"""The verification of transactions that begin in a partition (KIP-890).

A client's batch may open a transaction only after the transaction's coordinator has verified it. A
VerificationGuard exists from the request to the coordinator until the append. The end of the
transaction removes it, so that a late batch is rejected: otherwise it would open a transaction that
nothing ever ends.
"""

MAX_PENDING_VERIFICATIONS = 10_000
"""The bound for one log. Beyond it the oldest is removed, and its batch is rejected."""


class VerificationGuard:
    """Ties an append to its verification: only the same object is accepted."""

    __slots__ = ("epoch", "from_zero", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, from_zero: bool, since_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """The sequence that must be appended first: later batches may have been verified sooner."""
        self.from_zero = from_zero
        """Every transaction has an epoch of its own (version 2), so its first sequence is 0."""
        self.since_ms = since_ms

    def cover(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same verification."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
