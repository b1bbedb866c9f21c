"""Members of groups at a broker in this process."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.client.consumer.group.joining import Joined, all_of, on_a_loop
from tests.wait import async_wait_until

from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.values import OFFSET_INVALID, TopicPartition
from barnabas.testing import Broker
from barnabas.wire.errors import ErrorCode

EVERY_WAY = [
    {"assignors": ("range",)},
    {"assignors": ("roundrobin",)},
    {"assignors": ("sticky",)},
    {"assignors": ("cooperative-sticky",)},
    {"group_protocol": "consumer"},
]
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 50,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.min.session.timeout.ms": 100,
}


Way = dict[str, object]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        broker.create_topic("four", 4)
        broker.create_topic("two", 2)
        yield broker


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
@on_a_loop
async def test_partitions_are_shared_and_returned(broker: Broker, way: Way) -> None:
    group_id = f"shared-{way}"
    first, second = (Joined(broker.bootstrap_servers, group_id, **way) for _ in range(2))
    first.group.subscribe(["four"])
    await async_wait_until(lambda: first.partitions == all_of("four", 4))
    second.group.subscribe(["four"])
    await async_wait_until(lambda: len(first.partitions) == len(second.partitions) == 2)
    assert first.partitions | second.partitions == all_of("four", 4)
    await first.close()
    assert not first.partitions
    await async_wait_until(lambda: second.partitions == all_of("four", 4))
    await second.close()
    assert [each.str() for each in first.errors + second.errors] == []


@pytest.mark.parametrize("way", EVERY_WAY[2:], ids=str)
@on_a_loop
async def test_partitions_that_need_not_move_stay(broker: Broker, way: Way) -> None:
    group_id = f"stays-{way}"
    first, second = (Joined(broker.bootstrap_servers, group_id, **way) for _ in range(2))
    first.group.subscribe(["four"])
    await async_wait_until(lambda: first.partitions == all_of("four", 4))
    second.group.subscribe(["four"])
    await async_wait_until(lambda: len(first.partitions) == len(second.partitions) == 2)
    kept = first.partitions
    await second.close()
    await async_wait_until(lambda: len(first.partitions) == 4)
    if way != {"assignors": ("sticky",)}:
        revoked = [partitions for what, partitions in first.events if what == "revoked"]
        assert revoked == [all_of("four", 4) - kept]
    await first.close()


@pytest.mark.parametrize("way", EVERY_WAY[3:], ids=str)
@on_a_loop
async def test_a_subscription_can_be_changed(broker: Broker, way: Way) -> None:
    member = Joined(broker.bootstrap_servers, f"changes-{way}", **way)
    member.group.subscribe(["four"])
    await async_wait_until(lambda: member.partitions == all_of("four", 4))
    member.group.subscribe(["two"])
    await async_wait_until(lambda: member.partitions == all_of("two", 2))
    await member.group.unsubscribe()
    assert not member.partitions
    member.group.subscribe(["two"])
    await async_wait_until(lambda: member.partitions == all_of("two", 2))
    await member.close()


@pytest.mark.parametrize("way", EVERY_WAY[::4], ids=str)
@on_a_loop
async def test_a_pattern_finds_topics_that_are_created_later(broker: Broker, way: Way) -> None:
    prefix = f"p-{next(iter(way))}"
    broker.create_topic(f"{prefix}-1", 1)
    member = Joined(broker.bootstrap_servers, f"pattern-{way}", metadata_max_age_ms=100, **way)
    member.group.subscribe([f"^{prefix}-.*"])
    await async_wait_until(lambda: member.partitions == {(f"{prefix}-1", 0)})
    broker.create_topic(f"{prefix}-2", 1)
    broker.clock.advance(11)  # coordinators look for matches every ten seconds
    await async_wait_until(lambda: member.partitions == {(f"{prefix}-1", 0), (f"{prefix}-2", 0)})
    await member.close()


@pytest.mark.parametrize("way", EVERY_WAY[::4], ids=str)
@on_a_loop
async def test_members_read_the_offsets_that_they_committed(broker: Broker, way: Way) -> None:
    member = Joined(broker.bootstrap_servers, f"commits-{way}", **way)
    member.group.subscribe(["four"])
    await async_wait_until(lambda: member.partitions)
    deadline = Deadline.after(30_000)
    offsets = {
        ("four", 0): TopicPartition("four", 0, 7, "a note", 0),
        ("four", 9): TopicPartition("four", 9, 7),
        ("gone", 0): TopicPartition("gone", 0, 7),
    }
    outcomes = await member.group.commit(offsets, deadline=deadline)
    assert outcomes == {
        ("four", 0): None,
        ("four", 9): KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("gone", 0): KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    asked = [("four", 0), ("four", 1), ("gone", 0)]
    found = await member.group.committed(asked, deadline=deadline)
    assert {key: each.offset for key, each in found.items()} == {
        ("four", 0): 7,
        ("four", 1): OFFSET_INVALID,
        ("gone", 0): OFFSET_INVALID,
    }
    assert (found["four", 0].metadata, found["four", 0].leader_epoch) == ("a note", 0)
    assert member.group.metadata.generation_id > 0
    await member.close()


@on_a_loop
async def test_offsets_are_committed_without_membership(broker: Broker) -> None:
    nobody = Joined(broker.bootstrap_servers, "assigned-by-hand")
    deadline = Deadline.after(30_000)
    offsets = {("two", 1): TopicPartition("two", 1, 3)}
    assert await nobody.group.commit(offsets, deadline=deadline) == {("two", 1): None}
    found = await nobody.group.committed([("two", 1)], deadline=deadline)
    assert found["two", 1].offset == 3
    await nobody.close()


@pytest.mark.parametrize("way", EVERY_WAY[3:], ids=str)
@on_a_loop
async def test_a_consumer_that_does_not_poll_loses_its_partitions_until_it_polls(
    broker: Broker, way: Way
) -> None:
    member = Joined(broker.bootstrap_servers, f"idle-{way}", max_poll_interval_ms=500, **way)

    def has_both_while_it_polls() -> bool:
        member.group.on_poll()
        return member.partitions == all_of("two", 2)

    member.group.subscribe(["two"])
    await async_wait_until(has_both_while_it_polls)
    member.events.clear()
    member.errors.clear()  # a busy machine may have kept it from polling before
    await async_wait_until(lambda: ("lost", all_of("two", 2)) in member.events)
    assert member.errors == [KafkaError(KafkaError._MAX_POLL_EXCEEDED)]
    await async_wait_until(has_both_while_it_polls)
    await member.close()


@pytest.mark.parametrize("way", EVERY_WAY[::4], ids=str)
@on_a_loop
async def test_a_static_member_gets_its_partitions_back(broker: Broker, way: Way) -> None:
    group_id = f"static-{way}"
    other = Joined(broker.bootstrap_servers, group_id, group_instance_id="other", **way)
    member = Joined(broker.bootstrap_servers, group_id, group_instance_id="this", **way)
    other.group.subscribe(["four"])
    member.group.subscribe(["four"])
    await async_wait_until(lambda: len(other.partitions) == len(member.partitions) == 2)
    had, events = member.partitions, list(other.events)
    await member.close()
    again = Joined(broker.bootstrap_servers, group_id, group_instance_id="this", **way)
    again.group.subscribe(["four"])
    await async_wait_until(lambda: again.partitions == had)
    assert other.events == events
    await asyncio.gather(again.close(), other.close())


@on_a_loop
async def test_a_fenced_static_member_gets_a_fatal_error(
    broker: Broker,
) -> None:
    member, usurper = (
        Joined(broker.bootstrap_servers, "fenced", group_instance_id="same") for _ in range(2)
    )
    member.group.subscribe(["two"])
    await async_wait_until(lambda: member.partitions)
    usurper.group.subscribe(["two"])
    await async_wait_until(lambda: member.errors)
    assert member.errors == [KafkaError(ErrorCode.FENCED_INSTANCE_ID)]
    assert member.errors[0].fatal()
    await asyncio.gather(member.close(), usurper.close())


@pytest.mark.parametrize("way", EVERY_WAY[3:], ids=str)
def test_members_survive_a_restart_of_their_coordinator(way: Way) -> None:
    with Broker(SETTINGS) as broker:
        broker.create_topic("two", 2)

        @on_a_loop
        async def survive() -> None:
            member = Joined(broker.bootstrap_servers, "survivor", **way)
            member.group.subscribe(["two"])
            await async_wait_until(lambda: member.partitions)
            await asyncio.get_running_loop().run_in_executor(None, broker.restart)
            offsets = {("two", 1): TopicPartition("two", 1, 3)}
            outcomes = await member.group.commit(offsets, deadline=Deadline.after(30_000))
            assert outcomes == {("two", 1): None}
            newcomer = Joined(broker.bootstrap_servers, "survivor", **way)
            newcomer.group.subscribe(["two"])
            await async_wait_until(lambda: len(member.partitions) == len(newcomer.partitions) == 1)
            await asyncio.gather(member.close(), newcomer.close())

        survive()


@pytest.mark.parametrize("way", EVERY_WAY[::4], ids=str)
def test_leaving_ends_although_the_coordinator_is_down(way: Way) -> None:
    with Broker(SETTINGS) as broker:
        broker.create_topic("two", 2)

        @on_a_loop
        async def leave() -> None:
            member = Joined(broker.bootstrap_servers, "left-alone", **way)
            member.group.subscribe(["two"])
            await async_wait_until(lambda: member.partitions)
            await asyncio.get_running_loop().run_in_executor(None, broker.stop)
            await member.close()
            assert not member.partitions

        leave()
