"""Batches of aiokafka and kafka-python: both read each other's bytes."""

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import NOW_MS, law, records

from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records

peers = pytest.mark.parametrize(
    "peer", [aiokafka_records, kafka_python_records], ids=["aiokafka", "kafka-python"]
)
# aiokafka takes a first timestamp of -1 for one that is not there yet; kafka-python has snappy
# only with a library that the tests do not install.
timed = records(times=st.integers(0, NOW_MS * 2))
common = st.sampled_from([codec for codec in Codec if codec is not Codec.SNAPPY])
PRODUCER = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 5}


def built_by(peer: object, given_records: list[Record], codec: Codec) -> bytes:
    builder = peer.DefaultRecordBatchBuilder(  # type: ignore[attr-defined]
        magic=2, compression_type=codec, is_transactional=1, batch_size=1 << 20, **PRODUCER
    )
    for record in given_records:
        builder.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    return bytes(builder.build())


def read_by(peer: object, batch: bytes) -> list[Record]:
    theirs = peer.DefaultRecordBatch(batch)  # type: ignore[attr-defined]
    assert theirs.validate_crc()
    return [
        Record(their.offset, their.timestamp, their.key, their.value, list(their.headers))
        for their in theirs
    ]


@peers
@law
@given(given_records=timed)
def test_an_uncompressed_batch_has_the_same_bytes(
    peer: object, given_records: list[Record]
) -> None:
    ours = build_batch(given_records, transactional=True, **PRODUCER)
    theirs = built_by(peer, given_records, Codec.NONE)
    # They write the leader epoch 0, which the leader sets and the checksum does not cover.
    assert (ours[:12] + ours[16:]).hex() == (theirs[:12] + theirs[16:]).hex()


@peers
@law
@given(given_records=timed, codec=common)
def test_batches_of_peers_are_read(peer: object, given_records: list[Record], codec: Codec) -> None:
    assert read_records(built_by(peer, given_records, codec)) == given_records


@peers
@law
@given(given_records=timed, codec=common)
def test_peers_read_our_batches(peer: object, given_records: list[Record], codec: Codec) -> None:
    batch = bytes(build_batch(given_records, codec=codec, **PRODUCER))
    assert read_by(peer, batch) == given_records


@law
@given(given_records=timed)
def test_snappy_has_the_framing_of_aiokafka(given_records: list[Record]) -> None:
    batch = bytes(build_batch(given_records, codec=Codec.SNAPPY))
    assert read_by(aiokafka_records, batch) == given_records
    theirs = built_by(aiokafka_records, given_records, Codec.SNAPPY)
    assert read_records(theirs) == given_records
