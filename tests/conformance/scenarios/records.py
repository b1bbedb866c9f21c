"""Producing and fetching records."""

import random
import time

import pytest
from tests.conformance.clients.client import (
    DEADLINE_S,
    EARLIEST,
    Client,
    ErrorCode,
    ProducerOptions,
    ReceivedRecord,
    SentRecord,
    raises_error,
)

MINUTE_MS = 60_000


class RecordScenarios:
    """Base class of tests; the `library` of the test class creates `client`."""

    def test_a_record_is_fetched_as_it_was_sent(self, client: Client, topic: str) -> None:
        now_ms = int(time.time() * 1000)
        sent = [
            SentRecord(b"value", b"key", [("a", b"1"), ("b", b""), ("a", b"2")], now_ms - 5),
            SentRecord(b"no key", None, (), now_ms - 4),
            SentRecord(None, b"tombstone", [("why", b"deleted")], now_ms - 3),
            SentRecord(b"", b"", [("ključ", "vrednost ✓".encode())], now_ms - 2),
            SentRecord(bytes(range(256)) * 4, b"\x00\xff", (), now_ms - 1),
        ]
        offsets = client.produce(topic, sent)
        assert offsets == [0, 1, 2, 3, 4]
        assert client.fetch(topic, 0, 5) == [
            ReceivedRecord(
                offset,
                record.timestamp_ms or 0,
                False,
                record.key,
                record.value,
                list(record.headers),
            )
            for offset, record in zip(offsets, sent, strict=True)
        ]

    def test_a_fetch_can_start_at_any_offset(self, client: Client, topic: str) -> None:
        client.produce(topic, [SentRecord(b"%d" % number) for number in range(1000)])
        for offset in 0, 1, 500, 999:
            fetched = client.fetch(topic, offset, 1000 - offset)
            assert [record.offset for record in fetched] == list(range(offset, 1000))
            assert [record.value for record in fetched] == [b"%d" % n for n in range(offset, 1000)]

    def test_an_offset_past_the_end_is_out_of_range(self, client: Client, topic: str) -> None:
        client.produce(topic, [SentRecord(b"only one")])
        with raises_error(ErrorCode.OFFSET_OUT_OF_RANGE):
            client.fetch(topic, 5, 1)

    def test_offsets_are_looked_up_by_time(self, client: Client, topic: str) -> None:
        start_ms = int(time.time() * 1000) - 10 * MINUTE_MS
        for minute in range(3):  # one batch each, so that batches and records are searched
            first_ms = start_ms + minute * MINUTE_MS
            client.produce(
                topic, [SentRecord(b"v", timestamp_ms=first_ms + second) for second in (0, 9)]
            )
        assert client.offset_for_time(topic, start_ms - 1) == 0
        assert client.offset_for_time(topic, start_ms) == 0
        assert client.offset_for_time(topic, start_ms + 1) == 1
        assert client.offset_for_time(topic, start_ms + MINUTE_MS) == 2
        assert client.offset_for_time(topic, start_ms + 2 * MINUTE_MS + 9) == 5
        assert client.offset_for_time(topic, start_ms + 3 * MINUTE_MS) is None

    def test_the_watermarks_of_a_partition(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [SentRecord(b"v", partition=1)] * 3)
        assert client.watermarks(topic, partition=0) == (0, 0)
        assert client.watermarks(topic, partition=1) == (0, 3)

    def test_one_log_can_have_batches_of_every_compression(
        self, client: Client, topic: str
    ) -> None:
        values = [b"%d %s" % (number, b"abcdefgh" * 20) for number in range(200)]
        for compression in client.compressions:
            client.produce(
                topic, list(map(SentRecord, values)), ProducerOptions(compression=compression)
            )
        fetched = client.fetch(topic, EARLIEST, len(client.compressions) * 200)
        assert [record.value for record in fetched] == values * len(client.compressions)

    def test_the_compression_of_a_topic_applies_to_its_batches(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"compression.type": "zstd"})
        values = [b"%d %s" % (number, b"abcdefgh" * 20) for number in range(100)]
        for compression in "none", "gzip":
            client.produce(
                topic, list(map(SentRecord, values)), ProducerOptions(compression=compression)
            )
        assert [record.value for record in client.fetch(topic, 0, 200)] == values * 2

    def test_a_record_of_ten_megabytes_if_the_topic_allows_it(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "11000000"})
        value = random.Random(1).randbytes(10_000_000)
        large = ProducerOptions(max_request_bytes=12_000_000)
        assert client.produce(topic, [SentRecord(value, b"large")], large) == [0]
        (fetched,) = client.fetch(topic, 0, 1)
        assert fetched.value == value

    def test_a_record_above_the_limit_is_rejected(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "10000"})
        with raises_error(ErrorCode.MESSAGE_TOO_LARGE):
            client.produce(topic, [SentRecord(bytes(10_001))])
        assert client.produce(topic, [SentRecord(bytes(9_000))]) == [0]

    def test_a_record_above_the_fetch_size_is_fetched(self, client: Client, topic: str) -> None:
        client.produce(
            topic, [SentRecord(bytes(500_000)), SentRecord(b"next")], ProducerOptions(linger_ms=0)
        )
        fetched = client.fetch_all(topic, {0: 0}, 2, max_partition_bytes=1000)
        large, following = fetched[0]
        assert large.value == bytes(500_000)
        assert following.value == b"next"

    def test_an_idempotent_producer_writes_each_record_once(
        self, client: Client, topic: str
    ) -> None:
        sent = [SentRecord(b"%d" % number) for number in range(2000)]
        assert client.produce(topic, sent, ProducerOptions(idempotent=True)) == list(range(2000))
        assert [record.value for record in client.fetch(topic, 0, 2000)] == [e.value for e in sent]

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_every_value_of_acks(self, client: Client, topic: str, acks: int) -> None:
        client.create_topic(topic)
        offsets = client.produce(
            topic, [SentRecord(b"%d" % n) for n in range(10)], ProducerOptions(acks=acks)
        )
        assert offsets == ([-1] * 10 if acks == 0 else list(range(10)))
        assert [record.value for record in client.fetch(topic, 0, 10)] == [
            b"%d" % n for n in range(10)
        ]

    def test_a_topic_is_created_on_first_use(self, client: Client, topic: str) -> None:
        assert topic not in client.topics()
        assert client.produce(topic, [SentRecord(b"first")]) == [0]
        assert topic in client.topics()
        assert len(client.describe_topic(topic)) == 1

    def test_a_waiting_fetch_wakes_up_when_a_record_is_produced(
        self, client: Client, topic: str
    ) -> None:
        client.produce(topic, [SentRecord(b"before")])
        # The fetch may wait longer than the test does: only a wake-up can end it in time.
        waiting = client.long_poll(topic, max_wait_ms=2 * DEADLINE_S * 1000)
        deadline = time.monotonic() + DEADLINE_S
        count = 1
        while not waiting.done() and time.monotonic() < deadline:
            client.produce(topic, [SentRecord(b"%d" % count)])
            count += 1
        received = waiting.result(0)
        assert received.value == b"%d" % received.offset

    def test_append_time_replaces_the_producers_timestamp(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
        before_ms = int(time.time() * 1000)
        client.produce(topic, [SentRecord(b"v", timestamp_ms=before_ms - MINUTE_MS)])
        (fetched,) = client.fetch(topic, 0, 1)
        assert fetched.is_append_time
        assert before_ms <= fetched.timestamp_ms <= time.time() * 1000
        assert client.offset_for_time(topic, fetched.timestamp_ms) == 0
        assert client.offset_for_time(topic, fetched.timestamp_ms + 1) is None

    def test_a_timestamp_too_far_in_the_future_is_rejected(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"message.timestamp.after.max.ms": str(MINUTE_MS)})
        now_ms = int(time.time() * 1000)
        with raises_error(ErrorCode.INVALID_TIMESTAMP):
            client.produce(topic, [SentRecord(b"v", timestamp_ms=now_ms + 10 * MINUTE_MS)])

    def test_a_compacted_topic_rejects_a_record_without_a_key(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"cleanup.policy": "compact"})
        with raises_error(ErrorCode.INVALID_RECORD):
            client.produce(topic, [SentRecord(b"no key")])
        assert client.produce(topic, [SentRecord(None, b"k"), SentRecord(b"v", b"k")]) == [0, 1]

    def test_fetches_across_segments(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"segment.bytes": "1048576"})
        values = [b"%d" % number + bytes(9_000) for number in range(400)]
        client.produce(topic, list(map(SentRecord, values)))
        assert [record.value for record in client.fetch(topic, 0, 400)] == values
        assert client.fetch(topic, 333, 1)[0].value == values[333]

    def test_one_fetch_serves_many_partitions(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 50)
        sent = [SentRecord(b"%d/%d" % (p, n), partition=p) for n in range(20) for p in range(50)]
        # A new partition may not have its leader yet; without sequences a retry could reorder.
        client.produce(topic, sent, ProducerOptions(idempotent=True))
        fetched = client.fetch_all(topic, dict.fromkeys(range(50), 0), len(sent))
        for partition in range(50):
            values = [record.value for record in fetched[partition]]
            assert values == [b"%d/%d" % (partition, number) for number in range(20)]
