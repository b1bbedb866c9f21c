"""What a new active controller writes first."""

from collections.abc import Sequence

from barnabas.controller.context import ControllerContext
from barnabas.controller.update_features import min_isr_records
from barnabas.metadata import features
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from barnabas.wire.schema import Message


def activation_records(
    image: MetadataImage,
    bootstrap: Sequence[bytes],
    context: ControllerContext,
    in_transaction: bool,
) -> list[Message]:
    """A new cluster gets its features; a transaction the leader before left open is taken back."""
    records: list[Message] = []
    if in_transaction:
        reason = "the controller that began it no longer leads"
        records.append(AbortTransactionRecord(reason=reason))
    if not image.features:
        records += _first_records(bootstrap, image, context)
    return records


def _first_records(
    bootstrap: Sequence[bytes], image: MetadataImage, context: ControllerContext
) -> list[Message]:
    records = [decode_record(frame) for frame in bootstrap] or _default_features()
    levels = {
        record.name: record.feature_level
        for record in records
        if isinstance(record, FeatureLevelRecord)
    }
    if levels.get(features.ELIGIBLE_LEADER_REPLICAS_VERSION):
        records += min_isr_records(image, context)
    if levels.get(features.METADATA_VERSION, 0) < features.METADATA_TRANSACTIONS_FROM:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def _default_features() -> list[Message]:
    """What a directory that was formatted without bootstrap records begins with."""
    levels = features.default_levels()
    del levels[features.KRAFT_VERSION]
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if level
    ]
