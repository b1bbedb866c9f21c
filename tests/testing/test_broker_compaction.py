"""`Broker.compact`: what a test sees of compaction, with clients of its own."""

from pathlib import Path
from types import ModuleType
from urllib.request import urlopen

import confluent_kafka
import pytest
from tests.testing.clients import DEADLINE_S, producer

import barnabas
from barnabas.testing import Broker
from barnabas.testing.ports import free_port

DAY_S = 24 * 3600

Pair = tuple[str, str | None]
CLASSIC: list[Pair] = [("A", "1"), ("B", "10"), ("A", "2"), ("C", "5"), ("B", "20"), ("A", "3")]


def write(broker: Broker, topic: str, *pairs: Pair) -> None:
    client = producer(broker.bootstrap_servers)
    for key, value in pairs:
        client.produce(topic, value, key)
    assert client.flush(DEADLINE_S) == 0


def read(broker: Broker, topic: str, module: ModuleType = barnabas) -> list[Pair]:
    """Returns the records of a topic up to its end."""
    client = module.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "enable.partition.eof": True,
        }
    )
    client.assign([module.TopicPartition(topic, 0, 0)])
    pairs = []
    while not (message := client.poll(DEADLINE_S)).error():
        value = message.value()
        pairs.append((message.key().decode(), value and value.decode()))
    assert message.error().code() == module.KafkaError._PARTITION_EOF
    client.close()
    return pairs


@pytest.mark.parametrize("module", [barnabas, confluent_kafka], ids=lambda m: m.__name__)
def test_the_last_value_of_each_key_is_left_when_compact_returns(module: ModuleType) -> None:
    with Broker() as broker:
        broker.create_topic("prices", config={"cleanup.policy": "compact"})
        broker.create_topic("events")
        for topic in ("prices", "events"):
            write(broker, topic, *CLASSIC)
        broker.compact()
        assert read(broker, "prices", module) == [("C", "5"), ("B", "20"), ("A", "3")]
        assert read(broker, "events", module) == CLASSIC
        write(broker, "prices", ("C", "6"))
        broker.compact()
        assert read(broker, "prices", module) == [("B", "20"), ("A", "3"), ("C", "6")]


@pytest.mark.parametrize("module", [barnabas, confluent_kafka], ids=lambda m: m.__name__)
def test_a_tombstone_is_removed_once_the_clock_has_passed_its_retention(module: ModuleType) -> None:
    with Broker() as broker:
        broker.create_topic("prices", config={"cleanup.policy": "compact"})
        write(broker, "prices", ("A", "1"), ("B", "1"), ("A", None))
        broker.compact()
        assert read(broker, "prices", module) == [("B", "1"), ("A", None)]
        broker.compact()
        assert read(broker, "prices", module) == [("B", "1"), ("A", None)]
        broker.clock.advance(DAY_S + 1)
        broker.compact()
        assert read(broker, "prices", module) == [("B", "1")]


def test_topics_that_nobody_has_used_since_a_restart_are_compacted() -> None:
    with Broker() as broker:
        broker.create_topic("prices", config={"cleanup.policy": "compact"})
        write(broker, "prices", *CLASSIC)
        broker.restart()
        broker.compact()
        assert read(broker, "prices") == [("C", "5"), ("B", "20"), ("A", "3")]


def test_the_metrics_of_the_cleaner_have_kafkas_names(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with Broker({"barnabas.metrics.listener": address}, directory=tmp_path) as broker:
        for topic in ("prices", "damaged"):
            broker.create_topic(topic, config={"cleanup.policy": "compact"})
            write(broker, topic, *CLASSIC)
        broker.stop()
        damage(tmp_path / "damaged-0")
        broker.start()
        broker.clock.freeze()
        broker.clock.advance(60)  # a round of the cleaner
        broker.compact()
        broker.clock.advance(2)
        metrics = scrape(address)
    cleaner, manager = "kafka_log_logcleaner_", "kafka_log_logcleanermanager_"
    assert 0 < metrics[cleaner + "cleaner_recopy_percent"] < 100
    assert metrics[cleaner + "max_clean_time_secs"] > 0
    assert metrics[cleaner + "max_compaction_delay_secs"] == 0
    assert metrics[cleaner + "deadthreadcount"] == 0
    assert metrics["kafka_utils_throttler_cleaner_io_count"] > 0
    assert cleaner + "max_buffer_utilization_percent" in metrics
    assert metrics[manager + "max_dirty_percent"] == 0
    assert metrics[manager + "time_since_last_run_ms"] <= 17_000
    directory = f'{{logDirectory="{tmp_path}"}}'
    assert metrics[manager + "uncleanable_partitions_count" + directory] == 1
    assert metrics[manager + "uncleanable_bytes" + directory] > 0


def damage(folder: Path) -> None:
    (path,) = folder.glob("*.log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def scrape(address: str) -> dict[str, float]:
    text = urlopen(f"http://{address}/metrics", timeout=DEADLINE_S).read().decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
