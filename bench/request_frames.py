"""Frames of clients that send small requests, each different from the one before."""

import struct
import time
from collections.abc import Callable

from crc32c import crc32c

from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record
from bench.raw_client import (
    METADATA_VERSION,
    MIB,
    PRODUCE_VERSION,
    RawConnection,
    frame,
    metadata_frame,
    parse,
)

INIT_PRODUCER_ID_VERSION = 4
ID_FETCH_VERSION = 13
"""The first version with topic ids."""

CRC_AT, CHECKED_AT, SEQUENCE_AT = 17, 21, 53
"""Positions in the header of a record batch."""

NextFrame = Callable[[], bytes]


def idempotent_frames(connection: RawConnection, topic: str, value_bytes: int) -> NextFrame:
    """Returns what creates the requests of an idempotent producer of its own, acks=all."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    response_bytes = connection.send(
        frame(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION, request)
    )
    producer = parse(
        ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION, InitProducerIdResponse, response_bytes
    )
    record = Record(0, int(time.time() * 1000), None, bytes(value_bytes), [])
    batch = build_batch(
        [record],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
    )
    buffer = bytearray(_produce_frame(topic, bytes(batch), acks=-1))
    start = buffer.index(batch)
    end = start + len(batch)
    sequence = -1

    def next_frame() -> bytes:
        nonlocal sequence
        sequence += 1
        struct.pack_into(">i", buffer, start + SEQUENCE_AT, sequence)
        checksum = crc32c(memoryview(buffer)[start + CHECKED_AT : end])
        struct.pack_into(">I", buffer, start + CRC_AT, checksum)
        return bytes(buffer)

    return next_frame


def compressed_frame(topic: str, records: int, value_bytes: int) -> bytes:
    """Returns a request with one batch of LZ4, acks=1."""
    timestamp_ms = int(time.time() * 1000)
    values = [bytes(range(index, index + value_bytes)) for index in range(records)]
    batch = build_batch(
        [Record(0, timestamp_ms, None, value, []) for value in values], codec=Codec.LZ4
    )
    return _produce_frame(topic, bytes(batch), acks=1)


def session_fetch_frames(
    connection: RawConnection, topic: str, offset: int, max_bytes: int
) -> NextFrame:
    """Returns what creates the fetches of a consumer by topic id, in a session, from an offset."""
    metadata = parse(
        ApiKey.METADATA,
        METADATA_VERSION,
        MetadataResponse,
        connection.send(metadata_frame([topic])),
    )
    topic_id = metadata.topics[0].topic_id

    def fetch_frame(session_id: int, epoch: int) -> bytes:
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, log_start_offset=0
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 * MIB,
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )
        return frame(ApiKey.FETCH, ID_FETCH_VERSION, request)

    response = parse(
        ApiKey.FETCH, ID_FETCH_VERSION, FetchResponse, connection.send(fetch_frame(0, 0))
    )
    session_id = response.session_id
    if not session_id:
        raise RuntimeError("the broker has not opened a fetch session")
    buffer = bytearray(fetch_frame(session_id, 1))
    marker = struct.pack(">ii", session_id, 1)
    epoch_at = buffer.index(marker) + 4
    epoch = 0

    def next_frame() -> bytes:
        nonlocal epoch
        epoch += 1
        struct.pack_into(">i", buffer, epoch_at, epoch)
        return bytes(buffer)

    return next_frame


def _produce_frame(topic: str, batch: bytes, *, acks: int) -> bytes:
    produced = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[produced])],
    )
    return frame(ApiKey.PRODUCE, PRODUCE_VERSION, request)
