"""Finishes batches: compression, header and checksum; and splits batches that were too large."""

from dataclasses import dataclass
from typing import ClassVar

from barnabas.client.producer._batch import ProducerBatch
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
class ProducerIdAndEpoch:
    """The identity of an idempotent producer. In another epoch all sequences start at 0 again."""

    producer_id: int
    epoch: int

    NONE: "ClassVar[ProducerIdAndEpoch]"


ProducerIdAndEpoch.NONE = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(slots=True, frozen=True)
class BatchFinisher:
    """Makes batches ready to send."""

    codec: Codec = Codec.NONE
    level: int | None = None
    is_transactional: bool = False

    @classmethod
    def from_settings(cls, settings: ProducerSettings) -> "BatchFinisher":
        return cls(
            Codec[settings.compression.upper()],
            settings.compression_level,
            settings.transactional_id is not None,
        )

    def finish(
        self,
        batch: ProducerBatch,
        producer: ProducerIdAndEpoch = ProducerIdAndEpoch.NONE,
        sequence: int = NO_SEQUENCE,
    ) -> None:
        """Compresses a batch and writes its header; of a closed batch, only the header."""
        transactional = TRANSACTIONAL_BIT if self.is_transactional else 0
        if batch.is_closed:
            header = read_header(batch.buffer)
            write_header(
                batch.buffer,
                0,
                header._replace(
                    attributes=header.attributes & ~TRANSACTIONAL_BIT | transactional,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    base_sequence=sequence,
                ),
            )
            return
        header = BatchHeader(
            base_offset=0,
            length=batch.size_bytes - LENGTH_END,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=self.codec | transactional,
            last_offset_delta=batch.record_count - 1,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            record_count=batch.record_count,
        )
        close_batch(batch.buffer, self.level, header)
        batch.close()

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Returns the two halves of a batch that was too large for the broker."""
        records = list(read_records(batch.buffer))
        middle = len(records) // 2
        return [
            batch.make_part(build_batch(part, codec=self.codec, level=self.level), first, len(part))
            for first, part in ((0, records[:middle]), (middle, records[middle:]))
        ]


def compression_rate(batch: ProducerBatch) -> float:
    """Returns the size of a closed batch divided by its size before compression."""
    return batch.size_bytes / max(1, batch.buffered_bytes + HEADER_BYTES)
