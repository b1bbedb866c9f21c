"""Metadata transactions: all or nothing, whatever batches they came in."""

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import MetadataLoader
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
LEVEL = FeatureLevelRecord(name="group.version", feature_level=1)


def test_a_transaction_is_applied_when_it_ends() -> None:
    loader, delta = MetadataLoader(MetadataImage()), MetadataDelta()
    loader.load([BEGIN, LEVEL], 1, 1, delta)
    assert loader.in_transaction
    assert not delta
    assert loader.image.offset == -1  # a snapshot here would lose what is held back
    loader.load([LEVEL, END], 3, 1, delta)
    assert not loader.in_transaction
    assert loader.image.features == {"group.version": 1}
    assert loader.image.offset == 3


def test_an_aborted_transaction_is_not_applied() -> None:
    loader, delta = MetadataLoader(MetadataImage()), MetadataDelta()
    loader.load([BEGIN, LEVEL], 1, 1, delta)
    loader.load([ABORT], 2, 2, delta)
    assert loader.image == MetadataImage()
    assert (loader.image.offset, loader.image.epoch) == (2, 2)


def test_records_outside_transactions_are_applied_at_once() -> None:
    loader = MetadataLoader(MetadataImage())
    loader.load([LEVEL, BEGIN, LEVEL, END], 3, 1, MetadataDelta())
    assert loader.image.features == {"group.version": 1}
