"""Feeds committed records to an image, holding back those of an unfinished metadata transaction.

A change too large for one batch is written between a begin and an end marker (KIP-868); nobody
may see a part of it, and an abort marker takes it back.
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
    """Keeps `image` at the last record it was given that belongs to no open transaction."""

    __slots__ = ("_open", "image")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._open: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._open is not None

    def load(self, records: Iterable[Message], last_offset: int, epoch: int, delta: MetadataDelta) -> None:
        """Apply one committed batch, whose last record is at `last_offset`."""
        for record in records:
            if isinstance(record, BeginTransactionRecord):
                self._open = []
            elif isinstance(record, EndTransactionRecord):
                for held_back in self._open or ():
                    self.image.apply(held_back, delta)
                self._open = None
            elif isinstance(record, AbortTransactionRecord):
                self._open = None
            elif self._open is not None:
                self._open.append(record)
            else:
                self.image.apply(record, delta)
        if self._open is None:
            self.image.offset = last_offset
            self.image.epoch = epoch
