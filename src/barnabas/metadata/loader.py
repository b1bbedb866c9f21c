"""Applies committed records to an image, but those of a metadata transaction only at its end.

A change that is too large for one batch is written between a begin and an end marker (KIP-868).
No reader may see a part of it, and an abort marker cancels it.
"""

from collections.abc import Iterable

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from barnabas.wire.schema import Message


class MetadataLoader:
    """Keeps `image` at the last loaded record that belongs to no open transaction."""

    __slots__ = ("_open_transaction", "image")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._open_transaction: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._open_transaction is not None

    def load(
        self, records: Iterable[Message], last_offset: int, epoch: int, delta: MetadataDelta
    ) -> None:
        """Applies one committed batch, whose last record is at `last_offset`."""
        for record in records:
            if isinstance(record, BeginTransactionRecord):
                self._open_transaction = []
            elif isinstance(record, EndTransactionRecord):
                for transaction_record in self._open_transaction or ():
                    self.image.apply(transaction_record, delta)
                self._open_transaction = None
            elif isinstance(record, AbortTransactionRecord):
                self._open_transaction = None
            elif self._open_transaction is not None:
                self._open_transaction.append(record)
            else:
                self.image.apply(record, delta)
        if self._open_transaction is None:
            self.image.offset = last_offset
            self.image.epoch = epoch
