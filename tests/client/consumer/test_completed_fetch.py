"""The cursor reads what a fetch brought, compiled and as plain Python."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import load_uncompiled
from tests.wire.records.samples import FROM_KAFKA, codecs, law, records, some_records

from barnabas.client import _message
from barnabas.client.consumer import _completed_fetch
from barnabas.client.errors import KafkaError
from barnabas.client.values import OFFSET_INVALID
from barnabas.wire.records import _loops
from barnabas.wire.records.arrow import measure, runs_to_arrow
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.decompressor import Decompressor

PLAIN_LOOPS = load_uncompiled(_loops)
PLAIN = load_uncompiled(_completed_fetch, loops=PLAIN_LOOPS, message=load_uncompiled(_message))


@pytest.fixture(params=["compiled", "plain"], scope="module")
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    if request.param == "plain":
        yield PLAIN
    elif not _completed_fetch.COMPILED:
        pytest.skip("the cursor is not compiled here")
    else:
        yield _completed_fetch


def cursor(
    module: ModuleType,
    batches: bytes | bytearray,
    *,
    from_offset: int = 0,
    aborted: list[tuple[int, int]] | None = None,
    read_committed: bool = True,
    check_crcs: bool = False,
) -> Any:
    _, next_offset, count, _ = module.scan_batches(bytes(batches))
    return module.CompletedFetch(
        module.ConsumerProgress("t", 3),
        bytes(batches),
        from_offset,
        next_offset,
        count,
        aborted or [],
        read_committed,
        check_crcs,
    )


def messages(reading: Any) -> list[Any]:
    return list(iter(reading.next, None))


def offsets(reading: Any) -> list[int]:
    return [message.offset() for message in messages(reading)]


@law
@given(st.data())
def test_messages_are_the_records_of_all_batches(module: ModuleType, data: st.DataObject) -> None:
    written: list[Record] = []
    batches = b""
    for _ in range(data.draw(st.integers(1, 3))):
        more = data.draw(records(len(written)))
        codec = data.draw(codecs)
        batches += build_batch(more, base_offset=len(written), codec=codec, leader_epoch=7)
        written += more
    reading = cursor(module, batches)
    for record in written:
        message = reading.next()
        assert (message.topic(), message.partition(), message.offset()) == ("t", 3, record.offset)
        assert (message.key(), message.value()) == (record.key, record.value)
        assert message.headers() == (list(record.headers) or None)
        assert message.timestamp() == (1, record.timestamp)
        assert message.leader_epoch() == 7
        assert message.error() is None
        assert reading.progress.position == record.offset + 1
    assert reading.next() is None


@pytest.mark.parametrize("codec", Codec)
def test_batches_compressed_by_kafka_are_read(module: ModuleType, codec: Codec) -> None:
    reading = cursor(module, bytes.fromhex(FROM_KAFKA[codec]))
    assert offsets(reading) == [5010, 5011]


def test_records_before_the_fetch_offset_are_skipped(module: ModuleType) -> None:
    batches = b"".join(build_batch(some_records(5), base_offset=base) for base in (0, 5, 10))
    assert offsets(cursor(module, batches, from_offset=7)) == list(range(7, 15))


def test_the_position_advances_past_hidden_batches(module: ModuleType) -> None:
    marker = build_marker(
        producer_id=1,
        producer_epoch=0,
        committed=True,
        coordinator_epoch=0,
        timestamp=0,
        base_offset=5,
    )
    reading = cursor(module, build_batch(some_records(5)) + marker)
    assert offsets(reading) == [0, 1, 2, 3, 4]
    assert reading.progress.position == 6


def transactions() -> bytes:
    """Of producer 1 offsets 0-2, aborted at 6, and 7-9, committed at 10; of producer 2, 3-5."""

    def sent(producer_id: int, base: int) -> bytearray:
        return build_batch(
            some_records(3),
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )

    def ended(producer_id: int, base: int, committed: bool) -> bytearray:
        return build_marker(
            producer_id=producer_id,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
            timestamp=0,
            base_offset=base,
        )

    return b"".join(
        (
            sent(1, 0),
            sent(2, 3),
            ended(1, 6, False),
            sent(1, 7),
            ended(1, 10, True),
            ended(2, 11, True),
        )
    )


def test_an_aborted_transaction_is_hidden_up_to_its_marker(module: ModuleType) -> None:
    reading = cursor(module, transactions(), aborted=[(1, 0)])
    assert offsets(reading) == [3, 4, 5, 7, 8, 9]


def test_read_uncommitted_delivers_aborted_records_without_markers(module: ModuleType) -> None:
    reading = cursor(module, transactions(), read_committed=False)
    assert offsets(reading) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


def test_log_append_time_has_its_timestamp_type(module: ModuleType) -> None:
    from barnabas.wire.records.batch import stamp_append_time

    batch = build_batch(some_records(2))
    stamp_append_time(batch, 0, 99)
    assert [each.timestamp() for each in messages(cursor(module, batch))] == [(2, 99), (2, 99)]


def test_a_corrupt_batch_is_reported_and_skipped(module: ModuleType) -> None:
    batches = [build_batch(some_records(3), base_offset=base) for base in (0, 3, 6)]
    batches[1][80] ^= 0xFF
    found = messages(cursor(module, b"".join(batches), check_crcs=True))
    assert [each.error() for each in found if each.error()] == [KafkaError._BAD_MSG]
    assert [each.offset() for each in found if not each.error()] == [0, 1, 2, 6, 7, 8]


@law
@given(st.data())
def test_no_bytes_crash_a_completed_fetch(module: ModuleType, data: st.DataObject) -> None:
    codec = data.draw(codecs)
    batches = bytearray(build_batch(data.draw(records()), codec=codec))
    batches += build_batch(some_records(2), base_offset=50)
    for _ in range(data.draw(st.integers(1, 4))):
        batches[data.draw(st.integers(0, len(batches) - 1))] = data.draw(st.integers(0, 255))
    reading = cursor(module, batches, aborted=[(-1, 0)])
    for _ in range(10_000):
        message = reading.next()
        if message is None:
            return
        assert message.error() is None or message.error() == KafkaError._BAD_MSG


def test_a_partial_batch_at_the_end_is_ignored(module: ModuleType) -> None:
    batches = b"".join(build_batch(some_records(2), base_offset=base) for base in (0, 2))
    size, next_offset, count, epoch = module.scan_batches(batches[:-1])
    assert (size, next_offset, count, epoch) == (len(batches) // 2, 2, 2, -1)
    assert module.scan_batches(b"") == (0, -1, 0, -1)
    assert module.scan_batches(bytes(100)) == (0, -1, 0, -1)


def test_a_fetch_of_another_version_or_a_paused_partition_delivers_nothing(
    module: ModuleType,
) -> None:
    reading = cursor(module, build_batch(some_records(3)))
    progress = reading.progress
    assert reading.next().offset() == 0
    progress.live_version = -1
    assert reading.next() is None
    assert not reading.is_live()
    progress.live_version = progress.version
    assert reading.next().offset() == 1
    progress.version += 1
    progress.live_version = progress.version
    assert reading.next() is None


def test_a_new_partition_has_no_position(module: ModuleType) -> None:
    assert module.ConsumerProgress("t", 0).position == OFFSET_INVALID


def test_runs_have_the_same_records_in_arrow(module: ModuleType) -> None:
    batches = b"".join(
        build_batch(some_records(10), base_offset=base, codec=codec)
        for base, codec in ((0, Codec.NONE), (10, Codec.ZSTD), (20, Codec.LZ4))
    )
    reading = cursor(module, batches, from_offset=4)
    runs = []
    decompressor = Decompressor()
    while (run := reading.take_run(4, decompressor)) is not None:
        runs.append(run)
        assert run.record_count <= 4
    read = runs_to_arrow(runs, [measure(run) for run in runs])
    assert read.column("offset").to_pylist() == list(range(4, 30))
    assert reading.progress.position == 30


def test_messages_and_runs_can_be_taken_alternately(module: ModuleType) -> None:
    reading = cursor(module, build_batch(some_records(10)))
    decompressor = Decompressor()
    assert reading.next().offset() == 0
    assert reading.take_run(3, decompressor).record_count == 3
    assert reading.next().offset() == 4
    assert reading.take_run(100, decompressor).record_count == 5
    assert reading.next() is None


@law
@given(st.data())
def test_records_of_several_fetches_are_intact_whatever_order_they_are_taken_in(
    module: ModuleType, data: st.DataObject
) -> None:
    """Decompressed records share buffers, which are used again."""
    codec = data.draw(st.sampled_from([codec for codec in Codec if codec is not Codec.NONE]))
    expected = some_records(30)
    fetches = [
        cursor(
            module,
            b"".join(
                build_batch(expected[base : base + 10], base_offset=base, codec=codec)
                for base in (0, 10, 20)
            ),
        )
        for _ in range(2)
    ]
    taken: list[list[bytes | None]] = [[], []]
    decompressor = Decompressor()
    while data.draw(st.booleans()):
        decompressor.clear()
        runs = []
        for _ in range(data.draw(st.integers(1, 3))):
            index = data.draw(st.integers(0, 1))
            run = fetches[index].take_run(data.draw(st.integers(1, 12)), decompressor)
            if run is not None:
                runs.append((index, len(taken[index]), run))
                taken[index] += [None] * run.record_count
            message = fetches[index].next()
            if message is not None:
                taken[index].append(message.value())
        for index, start, run in runs:
            values = runs_to_arrow([run], [measure(run)]).column("value").to_pylist()
            taken[index][start : start + run.record_count] = values
    for fetch, values in zip(fetches, taken, strict=True):
        values += [message.value() for message in messages(fetch)]
        assert values == [record.value for record in expected]
