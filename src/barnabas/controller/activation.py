"""The first records of a new active controller."""

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
    """Returns the features of a new cluster, and the abort of a transaction that is open."""
    records: list[Message] = []
    if in_transaction:
        reason = "the controller that began it is no longer active"
        records.append(AbortTransactionRecord(reason=reason))
    if not image.features:
        records += _bootstrap_records(bootstrap, image, context)
    return records


def _bootstrap_records(
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
    """Returns the features for a directory that was formatted without bootstrap records."""
    levels = features.default_levels()
    del levels[features.KRAFT_VERSION]
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if level
    ]
