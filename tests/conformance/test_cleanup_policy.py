"""Kafka's tool changes cleanup.policy of a topic in every direction, while it is written to."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.cluster.keyed_records import (
    FAST_CLEANING,
    KeyedWriter,
    cleaner_offset,
    is_cleaned,
    last_values,
    read,
)
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker
from tests.conformance.clients.confluent import ConfluentClient
from tests.conformance.tools import tool
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

TOPIC = "prices"
RECORDS = 400
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
}


@pytest.fixture(params=[BrokerProcess, PeerBroker], ids=["barnabas", "kafka"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path, settings=SETTINGS)
    broker.start()
    yield broker
    broker.stop()


def test_each_policy_takes_effect_when_it_is_set(broker: Broker) -> None:
    client = ConfluentClient(broker.bootstrap)
    client.create_topic(TOPIC, configs=FAST_CLEANING | {"cleanup.policy": "delete"})
    writer = KeyedWriter(TOPIC)
    writer.write(broker.bootstrap, RECORDS)
    assert writer.check(broker.bootstrap) == len(writer.committed)

    set_configs(broker, "cleanup.policy=compact")
    wait_until(partial(is_cleaned, broker.data, TOPIC), "the topic is compacted")
    assert writer.check(broker.bootstrap) < len(writer.committed)
    assert client.watermarks(TOPIC)[0] == 0

    set_configs(broker, "cleanup.policy=[compact,delete],retention.ms=1")
    end_offset = client.watermarks(TOPIC)[1]
    wait_until(lambda: client.watermarks(TOPIC) == (end_offset, end_offset), "all is deleted")

    set_configs(broker, "cleanup.policy=delete,retention.ms=-1")
    cleaned_to, deleted = cleaner_offset(broker.data, TOPIC), len(writer.committed)
    writer.write(broker.bootstrap, RECORDS)
    assert cleaner_offset(broker.data, TOPIC) == cleaned_to
    written = dict(list(writer.committed.items())[deleted:])
    assert read(broker.bootstrap, TOPIC) == written

    set_configs(broker, "cleanup.policy=compact")
    wait_until(partial(is_cleaned, broker.data, TOPIC), "the topic is compacted again")
    assert last_values(read(broker.bootstrap, TOPIC)) == last_values(written)
    client.close()


def set_configs(broker: Broker, assigned: str) -> None:
    tool(broker, "configs", "--alter", "--topic", TOPIC, "--add-config", assigned)
