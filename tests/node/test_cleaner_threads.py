"""Cleanings have threads of their own: they never delay a flush."""

from tests.wait import wait_until

from barnabas import Producer
from barnabas.testing import Broker

PARTITIONS = 8
SETTINGS = {
    "log.cleaner.threads": PARTITIONS,
    "log.cleaner.dedupe.buffer.size": PARTITIONS << 20,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.io.max.bytes.per.second": 1,  # each cleaning sleeps in its thread
}


def test_records_are_flushed_while_more_cleanings_run_than_there_are_disk_threads() -> None:
    with Broker(SETTINGS) as broker:
        config = {"cleanup.policy": "compact", "max.compaction.lag.ms": 1, "segment.ms": 1}
        broker.create_topic("prices", PARTITIONS, config)
        broker.create_topic("orders", 1, {"flush.messages": 1})
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for partition in range(PARTITIONS):
            producer.produce("prices", b"1", b"key", partition)
        assert producer.flush(10) == 0
        wait_until(lambda: closed_segments(broker) == PARTITIONS, "the cleanings begin")
        for value in range(10):
            producer.produce("orders", str(value))
            assert producer.flush(10) == 0


def closed_segments(broker: Broker) -> int:
    """The cleaner closes the segments of a round, and then begins to clean them."""
    return len(list(broker.directory.glob("prices-*/00000000000000000001.log")))
