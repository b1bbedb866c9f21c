"""Barnabas and Kafka take over the directories that the other has cleaned, and clean them on."""

from functools import partial
from pathlib import Path

import pytest
from tests.cluster.keyed_records import FAST_CLEANING, KeyedWriter, is_cleaned
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker
from tests.conformance.clients.client import BrokerError, ErrorCode
from tests.conformance.clients.confluent_groups import ConfluentGroups
from tests.conformance.clients.group_client import Committed, PartitionKey
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

PRICES = PartitionKey("prices", 0)
OFFSETS = "__consumer_offsets"
GROUP = "readers"
SETTINGS = {"log.cleaner.backoff.ms": "100", "offsets.topic.num.partitions": "1"}
RECORDS, COMMITS = 1_000, 400


@pytest.mark.parametrize(
    "programs",
    [(BrokerProcess, PeerBroker, BrokerProcess), (PeerBroker, BrokerProcess, PeerBroker)],
    ids=["from-barnabas", "from-kafka"],
)
def test_a_broker_serves_and_cleans_what_the_other_has_cleaned(
    programs: tuple[type[Broker], ...], tmp_path: Path
) -> None:
    writer, commits, left = KeyedWriter(PRICES.topic), 0, 0
    for program in programs:
        broker = program(tmp_path, settings=SETTINGS)
        broker.start()
        client = ConfluentGroups(broker.bootstrap)
        try:
            if commits:
                wait_until(partial(has_leader, client), "the partition has a leader")
                assert writer.check(broker.bootstrap) <= left
                assert client.group_offsets(GROUP) == {PRICES: Committed(commits)}
            else:
                create_topics(client)
            writer.write(broker.bootstrap, RECORDS)
            commit(client, range(commits + 1, commits + COMMITS + 1))
            commits += COMMITS
            for topic in PRICES.topic, OFFSETS:
                wait_until(partial(is_cleaned, broker.data, topic), f"{topic} is cleaned")
            left = writer.check(broker.bootstrap)
            assert left < RECORDS / 2
            assert client.group_offsets(GROUP) == {PRICES: Committed(commits)}
        finally:
            client.close()
            broker.stop()


def create_topics(client: ConfluentGroups) -> None:
    client.create_topic(PRICES.topic, configs=FAST_CLEANING)
    commit(client, range(1))  # creates the internal topic
    for name, value in FAST_CLEANING.items():
        client.change_topic_config(OFFSETS, name, "SET", value)


def commit(client: ConfluentGroups, offsets: range) -> None:
    consumer = client.assigned_consumer(GROUP, [PRICES])
    for offset in offsets:
        consumer.commit({PRICES: Committed(offset)})
    consumer.leave()


def has_leader(client: ConfluentGroups) -> bool:
    """Whether a partition has its leader: a starting broker registers before it leads."""
    try:
        return bool(client.watermarks(PRICES.topic))
    except BrokerError as error:
        if error.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise
        return False
