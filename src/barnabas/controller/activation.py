"""How a controller begins: it loads the log, and writes what a new leader writes first."""

from collections.abc import Iterable, Sequence

from barnabas.controller.decision import Context
from barnabas.controller.update_features import min_isr_records
from barnabas.metadata import features
from barnabas.metadata.delta import Delta
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import Image
from barnabas.metadata.loader import Loader
from barnabas.raft import CommittedBatch
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from barnabas.wire.schema import Message


def load(batches: Iterable[CommittedBatch], loader: Loader) -> None:
    """Take in what the log has. UNSUPPORTED_VERSION if a newer controller has written it."""
    try:
        for batch in batches:
            records = [decode_record(frame) for frame in batch.frames]
            loader.load(records, batch.last_offset, batch.epoch, Delta())
    except ProtocolViolation as violation:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The metadata log after offset {loader.image.offset} cannot be read: {violation}. "
            "If a newer version wrote it, start that version.",
        ) from violation
    for name, level in loader.image.features.items():
        supported = features.SUPPORTED.get(name)
        if supported is None or level not in supported:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The cluster has finalised {name} at {level}, which this version does not "
                "support: start a newer one.",
            )


def activation_records(
    image: Image, bootstrap: Sequence[bytes], context: Context, in_transaction: bool
) -> list[Message]:
    """A new cluster gets its features; a transaction the leader before left open is taken back."""
    records: list[Message] = []
    if in_transaction:
        reason = "the controller that began it no longer leads"
        records.append(AbortTransactionRecord(reason=reason))
    if not image.features:
        records += _first_records(bootstrap, image, context)
    return records


def _first_records(bootstrap: Sequence[bytes], image: Image, context: Context) -> list[Message]:
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
