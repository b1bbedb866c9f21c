"""Producing and fetching: what any client may expect of a broker."""

import random
import time

import pytest
from tests.conformance.clients.client import (
    DEADLINE_S,
    EARLIEST,
    Client,
    Code,
    Producing,
    Received,
    Sent,
    refused_with,
)

MINUTE_MS = 60_000


class RecordScenarios:
    """Inherited by a test class that names its library; `client` is made from that."""

    def test_a_record_comes_back_as_it_was_sent(self, client: Client, topic: str) -> None:
        now_ms = int(time.time() * 1000)
        sent = [
            Sent(b"value", b"key", [("a", b"1"), ("b", b""), ("a", b"2")], now_ms - 5),
            Sent(b"no key", None, (), now_ms - 4),
            Sent(None, b"tombstone", [("why", b"deleted")], now_ms - 3),
            Sent(b"", b"", [("ključ", "vrednost ✓".encode())], now_ms - 2),
            Sent(bytes(range(256)) * 4, b"\x00\xff", (), now_ms - 1),
        ]
        offsets = client.produce(topic, sent)
        assert offsets == [0, 1, 2, 3, 4]
        assert client.fetch(topic, 0, 5) == [
            Received(
                offset, each.timestamp_ms or 0, False, each.key, each.value, list(each.headers)
            )
            for offset, each in zip(offsets, sent, strict=True)
        ]

    def test_fetching_starts_at_any_offset(self, client: Client, topic: str) -> None:
        client.produce(topic, [Sent(b"%d" % number) for number in range(1000)])
        for offset in 0, 1, 500, 999:
            fetched = client.fetch(topic, offset, 1000 - offset)
            assert [each.offset for each in fetched] == list(range(offset, 1000))
            assert [each.value for each in fetched] == [b"%d" % n for n in range(offset, 1000)]

    def test_an_offset_past_the_end_is_out_of_range(self, client: Client, topic: str) -> None:
        client.produce(topic, [Sent(b"only one")])
        with refused_with(Code.OFFSET_OUT_OF_RANGE):
            client.fetch(topic, 5, 1)

    def test_offsets_are_found_by_time(self, client: Client, topic: str) -> None:
        start_ms = int(time.time() * 1000) - 10 * MINUTE_MS
        for minute in range(3):  # a batch each, so that batches and records are both searched
            first_ms = start_ms + minute * MINUTE_MS
            client.produce(topic, [Sent(b"v", timestamp_ms=first_ms + second) for second in (0, 9)])
        assert client.offset_for_time(topic, start_ms - 1) == 0
        assert client.offset_for_time(topic, start_ms) == 0
        assert client.offset_for_time(topic, start_ms + 1) == 1
        assert client.offset_for_time(topic, start_ms + MINUTE_MS) == 2
        assert client.offset_for_time(topic, start_ms + 2 * MINUTE_MS + 9) == 5
        assert client.offset_for_time(topic, start_ms + 3 * MINUTE_MS) is None

    def test_the_ends_of_a_partition(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 2)
        client.produce(topic, [Sent(b"v", partition=1)] * 3)
        assert client.ends(topic, partition=0) == (0, 0)
        assert client.ends(topic, partition=1) == (0, 3)

    def test_every_compression_can_be_mixed_in_one_log(self, client: Client, topic: str) -> None:
        values = [b"%d %s" % (number, b"abcdefgh" * 20) for number in range(200)]
        for compression in client.compressions:
            client.produce(topic, list(map(Sent, values)), Producing(compression=compression))
        fetched = client.fetch(topic, EARLIEST, len(client.compressions) * 200)
        assert [each.value for each in fetched] == values * len(client.compressions)

    def test_a_topic_may_choose_the_compression(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"compression.type": "zstd"})
        values = [b"%d %s" % (number, b"abcdefgh" * 20) for number in range(100)]
        for compression in "none", "gzip":
            client.produce(topic, list(map(Sent, values)), Producing(compression=compression))
        assert [each.value for each in client.fetch(topic, 0, 200)] == values * 2

    def test_ten_megabytes_where_they_are_allowed(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "11000000"})
        value = random.Random(1).randbytes(10_000_000)
        large = Producing(max_request_bytes=12_000_000)
        assert client.produce(topic, [Sent(value, b"large")], large) == [0]
        (fetched,) = client.fetch(topic, 0, 1)
        assert fetched.value == value

    def test_a_record_above_the_limit_is_refused(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "10000"})
        with refused_with(Code.MESSAGE_TOO_LARGE):
            client.produce(topic, [Sent(bytes(10_001))])
        assert client.produce(topic, [Sent(bytes(9_000))]) == [0]

    def test_a_record_above_the_fetch_size_still_arrives(self, client: Client, topic: str) -> None:
        client.produce(topic, [Sent(bytes(500_000)), Sent(b"next")], Producing(linger_ms=0))
        fetched = client.fetch_all(topic, {0: 0}, 2, max_partition_bytes=1000)
        large, following = fetched[0]
        assert large.value == bytes(500_000)
        assert following.value == b"next"

    def test_an_idempotent_producer_writes_each_record_once(
        self, client: Client, topic: str
    ) -> None:
        sent = [Sent(b"%d" % number) for number in range(2000)]
        assert client.produce(topic, sent, Producing(idempotent=True)) == list(range(2000))
        assert [each.value for each in client.fetch(topic, 0, 2000)] == [e.value for e in sent]

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_every_level_of_acknowledgement(self, client: Client, topic: str, acks: int) -> None:
        client.create_topic(topic)
        offsets = client.produce(topic, [Sent(b"%d" % n) for n in range(10)], Producing(acks=acks))
        assert offsets == ([-1] * 10 if acks == 0 else list(range(10)))
        assert [each.value for each in client.fetch(topic, 0, 10)] == [b"%d" % n for n in range(10)]

    def test_a_topic_is_created_on_first_use(self, client: Client, topic: str) -> None:
        assert topic not in client.topics()
        assert client.produce(topic, [Sent(b"first")]) == [0]
        assert topic in client.topics()
        assert len(client.describe_topic(topic)) == 1

    def test_a_waiting_fetch_wakes_up_when_a_record_is_produced(
        self, client: Client, topic: str
    ) -> None:
        client.produce(topic, [Sent(b"before")])
        # The fetch may wait longer than the test does: only a wake-up can end it in time.
        waiting = client.long_poll(topic, max_wait_ms=2 * DEADLINE_S * 1000)
        deadline = time.monotonic() + DEADLINE_S
        produced = 1
        while not waiting.done() and time.monotonic() < deadline:
            client.produce(topic, [Sent(b"%d" % produced)])
            produced += 1
        received = waiting.result(0)
        assert received.value == b"%d" % received.offset

    def test_append_time_replaces_the_producers(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
        before_ms = int(time.time() * 1000)
        client.produce(topic, [Sent(b"v", timestamp_ms=before_ms - MINUTE_MS)])
        (fetched,) = client.fetch(topic, 0, 1)
        assert fetched.is_append_time
        assert before_ms <= fetched.timestamp_ms <= time.time() * 1000
        assert client.offset_for_time(topic, fetched.timestamp_ms) == 0
        assert client.offset_for_time(topic, fetched.timestamp_ms + 1) is None

    def test_a_timestamp_too_far_ahead_is_refused(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"message.timestamp.after.max.ms": str(MINUTE_MS)})
        now_ms = int(time.time() * 1000)
        with refused_with(Code.INVALID_TIMESTAMP):
            client.produce(topic, [Sent(b"v", timestamp_ms=now_ms + 10 * MINUTE_MS)])

    def test_a_compacted_topic_refuses_a_record_without_key(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"cleanup.policy": "compact"})
        with refused_with(Code.INVALID_RECORD):
            client.produce(topic, [Sent(b"no key")])
        assert client.produce(topic, [Sent(None, b"k"), Sent(b"v", b"k")]) == [0, 1]

    def test_reading_across_segments(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"segment.bytes": "1048576"})
        values = [b"%d" % number + bytes(9_000) for number in range(400)]
        client.produce(topic, list(map(Sent, values)))
        assert [each.value for each in client.fetch(topic, 0, 400)] == values
        assert client.fetch(topic, 333, 1)[0].value == values[333]

    def test_one_fetch_serves_many_partitions(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 50)
        sent = [Sent(b"%d/%d" % (p, n), partition=p) for n in range(20) for p in range(50)]
        # A new partition may not have its leader yet; without sequences a retry could reorder.
        client.produce(topic, sent, Producing(idempotent=True))
        fetched = client.fetch_all(topic, dict.fromkeys(range(50), 0), len(sent))
        for partition in range(50):
            values = [each.value for each in fetched[partition]]
            assert values == [b"%d/%d" % (partition, number) for number in range(20)]
