"""Groups of which some members are librdkafka's: either may lead, any assignor may be agreed on."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from tests.client.consumer.group.joining import Joined, all_of, on_a_loop
from tests.wait import async_wait_until

from barnabas.client.consumer.group.assignors import ASSIGNORS, ClusterTopics, SubscribedMember
from barnabas.client.values import PartitionKey
from barnabas.testing import Broker

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 50,
    "group.consumer.min.heartbeat.interval.ms": 50,
}
TOPICS = {"a": 3, "b": 5}
EVERYTHING = all_of("a", 3) | all_of("b", 5)
NAMES = ["range", "roundrobin", "cooperative-sticky"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions)
        yield broker


@pytest.fixture
def strangers(broker: Broker) -> Iterator[list["Stranger"]]:
    them: list[Stranger] = []
    yield them
    for each in them:
        each.close()


class Stranger:
    """A consumer of librdkafka's, polled by a thread of its own."""

    def __init__(self, broker: Broker, group_id: str, **settings: Any) -> None:
        self._settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "logger": logging.getLogger("stranger"),
        } | settings
        self.partitions: frozenset[PartitionKey] = frozenset()
        self.member_id = ""
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._consume)
        self._thread.start()

    def close(self) -> None:
        self._stops.set()
        self._thread.join()

    def _consume(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings)
        consumer.subscribe(list(TOPICS))
        while not self._stops.is_set():
            message = consumer.poll(0.02)
            assert message is None or message.error() is None
            self.partitions = frozenset((p.topic, p.partition) for p in consumer.assignment())
            self.member_id = consumer.memberid() or ""
        consumer.close()
        self.partitions = frozenset()


def classic(name: str) -> dict[str, Any]:
    return {
        "partition.assignment.strategy": name,
        "heartbeat.interval.ms": 50,
        "session.timeout.ms": 6_000,
    }


async def settled(*members: Joined | Stranger) -> None:
    """Everything is assigned, all have something, and nobody has what another has."""

    def is_settled() -> bool:
        given_out = [each for member in members for each in member.partitions]
        return sorted(given_out) == sorted(EVERYTHING) and all(m.partitions for m in members)

    await async_wait_until(is_settled)


@pytest.mark.parametrize("ours_leads", [True, False], ids=["ours leads", "theirs leads"])
@pytest.mark.parametrize("name", NAMES)
@on_a_loop
async def test_members_of_both_libraries_share_a_classic_group(
    broker: Broker, strangers: list[Stranger], name: str, ours_leads: bool
) -> None:
    group_id = f"{name}-{ours_leads}"
    ours = Joined(broker.bootstrap_servers, group_id, assignors=(name,))
    if not ours_leads:
        strangers.append(Stranger(broker, group_id, **classic(name)))
        await settled(*strangers)
    ours.group.subscribe(list(TOPICS))
    await settled(ours, *strangers)
    had = ours.partitions
    strangers.append(Stranger(broker, group_id, **classic(name)))
    await settled(ours, *strangers)
    if name == "cooperative-sticky":
        assert ours.partitions < had
    else:
        ids = {member.member_id: member.partitions for member in strangers}
        ids[ours.group.member_id] = ours.partitions
        expected = ASSIGNORS[name].assign(
            [SubscribedMember(member_id, frozenset(TOPICS)) for member_id in ids],
            ClusterTopics(TOPICS),
        )
        assert {key: sorted(value) for key, value in ids.items()} == expected
    await asyncio.get_running_loop().run_in_executor(None, strangers.pop().close)
    await settled(ours, *strangers)
    await ours.close()
    assert not ours.errors


@on_a_loop
async def test_members_of_both_libraries_share_a_consumer_group(
    broker: Broker, strangers: list[Stranger]
) -> None:
    ours = Joined(broker.bootstrap_servers, "modern", group_protocol="consumer")
    ours.group.subscribe(list(TOPICS))
    await settled(ours)
    strangers.append(Stranger(broker, "modern", **{"group.protocol": "consumer"}))
    await settled(ours, *strangers)
    await asyncio.get_running_loop().run_in_executor(None, strangers.pop().close)
    await settled(ours)
    await ours.close()
    assert not ours.errors
