"""The end of a transaction, as it is written into each partition that took part."""

from typing import NamedTuple


class Marker(NamedTuple):
    """Who ended which transaction, and how."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int
    """From version 2 on the epoch is a new one, which no batch has been written with (KIP-890)."""
