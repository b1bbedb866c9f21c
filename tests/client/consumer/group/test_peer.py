"""Members of groups at the real Kafka, and in groups with Java's members."""

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.client.consumer.group.joining import Joined, all_of, on_a_loop
from tests.conformance.brokers import PEERS, PeerBroker, is_peer_installed, run_peer
from tests.wait import async_wait_until

from barnabas.client.cluster import Deadline
from barnabas.client.values import TopicPartition
from barnabas.testing import Broker

pytestmark = pytest.mark.peer

EVERY_WAY = [
    {"assignors": ("range",)},
    {"assignors": ("roundrobin",)},
    {"assignors": ("sticky",)},
    {"assignors": ("cooperative-sticky",)},
    {"group_protocol": "consumer"},
]
JAVAS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@pytest.fixture(scope="module")
def topic(kafka: PeerBroker) -> str:
    where = ("--bootstrap-server", kafka.bootstrap, "--create")
    run_peer("tool", "topics", *where, "--topic", "members-share-this", "--partitions", "4")
    return "members-share-this"


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
@on_a_loop
async def test_members_share_partitions_commit_and_rejoin(
    kafka: PeerBroker, topic: str, way: dict[str, object]
) -> None:
    group_id = f"shared-{way}"
    first, second = (Joined(kafka.bootstrap, group_id, **way) for _ in range(2))
    first.group.subscribe([topic])
    await async_wait_until(lambda: first.partitions == all_of(topic, 4))
    second.group.subscribe([f"^{topic}$"])
    await async_wait_until(lambda: len(first.partitions) == len(second.partitions) == 2)
    deadline = Deadline.after(10_000)
    offsets = {each: TopicPartition(*each, 5, "here") for each in second.partitions}
    assert set((await second.group.commit(offsets, deadline=deadline)).values()) == {None}
    await second.close()
    await async_wait_until(lambda: first.partitions == all_of(topic, 4))
    found = await first.group.committed(first.partitions, deadline=deadline)
    assert {each for each, position in found.items() if position.offset == 5} == offsets.keys()
    await first.close()
    assert not first.errors + second.errors


@pytest.mark.parametrize("way", EVERY_WAY[::4], ids=str)
@on_a_loop
async def test_a_static_member_gets_its_partitions_back(
    kafka: PeerBroker, topic: str, way: dict[str, object]
) -> None:
    group_id = f"static-{way}"
    other = Joined(kafka.bootstrap, group_id, group_instance_id="other", **way)
    member = Joined(kafka.bootstrap, group_id, group_instance_id="this", **way)
    other.group.subscribe([topic])
    member.group.subscribe([topic])
    await async_wait_until(lambda: len(other.partitions) == len(member.partitions) == 2)
    had, events = member.partitions, list(other.events)
    await member.close()
    again = Joined(kafka.bootstrap, group_id, group_instance_id="this", **way)
    again.group.subscribe([topic])
    await async_wait_until(lambda: again.partitions == had)
    assert other.events == events
    await asyncio.gather(again.close(), other.close())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not here: set PEERS to the folder of its script")
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("four", 4)
        yield broker


@pytest.mark.parametrize("ours_leads", [True, False], ids=["ours leads", "Java's leads"])
@pytest.mark.parametrize("name", JAVAS)
@on_a_loop
async def test_members_of_both_libraries_share_a_group(
    broker: Broker, name: str, ours_leads: bool
) -> None:
    group_id = f"{name}-{ours_leads}"
    ours = Joined(broker.bootstrap_servers, group_id, assignors=(name,))
    synced = broker.requests["SyncGroup"]
    if ours_leads:
        ours.group.subscribe(["four"])
        await async_wait_until(lambda: ours.partitions == all_of("four", 4))
    async with java_consumer(broker, group_id, JAVAS[name]):
        if not ours_leads:
            await async_wait_until(lambda: broker.requests["SyncGroup"] > synced)
            ours.group.subscribe(["four"])
        await async_wait_until(lambda: len(ours.partitions) == 2)
        had = ours.partitions
    await async_wait_until(lambda: ours.partitions == all_of("four", 4))
    if name == "cooperative-sticky":
        revoked = [partitions for what, partitions in ours.events if what == "revoked"]
        assert revoked == ([all_of("four", 4) - had] if ours_leads else [])
    await ours.close()
    assert not ours.errors


@asynccontextmanager
async def java_consumer(broker: Broker, group_id: str, assignor: str) -> AsyncIterator[None]:
    command = [PEERS / "kafka", "tool", "console-consumer", "--topic", "four"]
    command += ["--bootstrap-server", broker.bootstrap_servers, "--group", group_id]
    for setting in (
        f"partition.assignment.strategy=org.apache.kafka.clients.consumer.{assignor}",
        "heartbeat.interval.ms=100",
    ):
        command += ["--command-property", setting]
    process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
