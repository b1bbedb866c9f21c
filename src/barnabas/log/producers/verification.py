"""Transactions that are about to begin in a partition (KIP-890).

A client's batch may open a transaction only after the transaction's coordinator has vouched for
it. While the coordinator is asked, and until the append, a Verification stands for its word. The
end of the transaction takes it away: a batch that comes too late is then refused, where before it
opened a transaction that nobody would ever end.
"""

MAX_PENDING_VERIFICATIONS = 10_000
"""In one log. Beyond it the oldest goes, and the batch it stood for is refused."""


class VerificationGuard:
    """What ties the coordinator's word to the append that relies on it: only itself will do."""

    __slots__ = ("epoch", "from_zero", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, from_zero: bool, since_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """What must be appended first: the batches behind it may have been verified sooner."""
        self.from_zero = from_zero
        """Every transaction has an epoch of its own (version 2), whose first batch is number 0."""
        self.since_ms = since_ms

    def cover(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same word."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
