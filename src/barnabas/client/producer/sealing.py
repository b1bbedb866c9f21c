"""Closes batches: compression, header and checksum; and opens those that were too large again."""

from dataclasses import dataclass

from barnabas.client.producer._batch import Batch
from barnabas.client.settings import ProducerSettings
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    write_header,
)
from barnabas.wire.records.build import build_batch, close_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records


@dataclass(slots=True, frozen=True)
class Identity:
    """Who sends: sequences count anew for each of these, in every partition."""

    producer_id: int
    epoch: int


NOBODY = Identity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(slots=True, frozen=True)
class Seal:
    """How a producer closes its batches."""

    codec: Codec = Codec.NONE
    level: int | None = None
    is_transactional: bool = False

    @classmethod
    def of(cls, settings: ProducerSettings) -> "Seal":
        return cls(
            Codec[settings.compression.upper()],
            settings.compression_level,
            settings.transactional_id is not None,
        )

    def put(self, batch: Batch, identity: Identity = NOBODY, sequence: int = NO_SEQUENCE) -> None:
        """Close a batch, or give one that is closed another sequence."""
        if batch.is_sealed:
            header = read_header(batch.records)
            transactional = TRANSACTIONAL_BIT if self.is_transactional else 0
            write_header(
                batch.records,
                0,
                header._replace(
                    attributes=header.attributes & ~TRANSACTIONAL_BIT | transactional,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    base_sequence=sequence,
                ),
            )
            return
        base_timestamp, max_timestamp = batch.timestamps
        header = BatchHeader(
            base_offset=0,
            length=batch.size_bytes - LENGTH_END,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=self.codec | (TRANSACTIONAL_BIT if self.is_transactional else 0),
            last_offset_delta=batch.record_count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            record_count=batch.record_count,
        )
        close_batch(batch.records, self.level, header)
        batch.seal()

    def split(self, batch: Batch) -> list[Batch]:
        """The two halves of a batch that a broker found too large."""
        records = list(read_records(batch.records))
        middle = len(records) // 2
        return [
            batch.part(build_batch(part, codec=self.codec, level=self.level), first, len(part))
            for first, part in ((0, records[:middle]), (middle, records[middle:]))
        ]


def compression_rate(batch: Batch) -> float:
    """How many bytes a sealed batch takes for each that was produced."""
    return batch.size_bytes / max(1, batch.charged_bytes + HEADER_BYTES)
