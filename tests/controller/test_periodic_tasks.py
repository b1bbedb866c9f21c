"""Periodic tasks: sessions that end, and elections that are due."""

from typing import Any

import pytest
from tests.controller.harness import ControllerHarness, creation, registration

from barnabas.metadata.states import NO_LEADER
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.metadata_records import (
    PartitionChangeRecord,
)
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest

QUIET = "metadata.max.idle.interval.ms"


def test_a_broker_without_heartbeats_is_fenced_with_its_partitions_in_one_batch() -> None:
    harness = ControllerHarness(**{QUIET: "0"})

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2, 3)
        await harness.send(creation("orders", partitions=60, replicas=3))
        await harness.pass_ms(8_900)
        for alive in (2, 3):
            await harness.beat(alive)
        written = len(harness.quorum.batches)
        harness.controller.run_periodic_tasks()
        assert len(harness.quorum.batches) == written
        await harness.pass_ms(100)
        harness.controller.run_periodic_tasks()
        (batch,) = harness.quorum.batches[written:]
        assert len(batch[2]) == 61
        harness.commit()
        assert harness.image.brokers[1].fenced
        orders = harness.image.topics.by_name("orders")
        assert orders is not None
        assert {p.leader for p in orders.partitions.values()} == {2, 3}
        assert all(1 not in p.isr for p in orders.partitions.values())
        harness.controller.run_periodic_tasks()
        assert len(harness.quorum.batches) == written + 1

    harness.run(scenario)


def test_a_change_of_the_wall_clock_does_not_affect_sessions() -> None:
    harness = ControllerHarness(**{QUIET: "0"})

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        for ahead_ms in (3_600_000, -3_600_000):
            harness.clock_ahead_ms = ahead_ms
            harness.controller.run_periodic_tasks()
            harness.commit()
            assert not any(broker.fenced for broker in harness.image.brokers.values())
            await harness.pass_ms(4_500)
            await harness.beat(2)
        harness.controller.run_periodic_tasks()
        harness.commit()
        assert [b.broker_id for b in harness.image.brokers.values() if b.fenced] == [1]

    harness.run(scenario)


def test_a_new_controller_begins_a_session_for_every_broker() -> None:
    harness = ControllerHarness(**{QUIET: "0"})

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        await harness.pass_ms(20_000)
        harness.follow()
        harness.lead(2)
        await harness.pass_ms(8_999)
        harness.controller.run_periodic_tasks()
        harness.commit()
        assert not any(broker.fenced for broker in harness.image.brokers.values())
        await harness.beat(2)
        await harness.pass_ms(1)
        harness.controller.run_periodic_tasks()
        harness.commit()
        assert [b.broker_id for b in harness.image.brokers.values() if b.fenced] == [1]

    harness.run(scenario)


def test_a_broker_whose_process_is_gone_is_fenced_at_once_and_may_return() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        await harness.send(creation("orders", replicas=2))
        harness.controller.fence_broker(1)
        harness.controller.fence_broker(1)
        harness.controller.fence_broker(9)
        harness.commit()
        assert harness.image.brokers[1].fenced
        orders = harness.image.topics.by_name("orders")
        assert orders is not None
        assert orders.partitions[0].isr == (2,)
        again = registration(1)
        again.incarnation_id = b"n" * 16
        assert (await harness.send(again)).error_code == ErrorCode.NONE
        assert not (await harness.beat(1)).is_fenced

    harness.run(scenario)


def test_a_second_process_with_the_same_id_is_rejected_while_the_first_lives() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        other = registration(1)
        other.incarnation_id = b"o" * 16
        other.log_dirs = [b"o" * 16]
        error = await harness.send(other)
        assert error.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await harness.pass_ms(9_000)
        assert (await harness.send(other)).error_code == ErrorCode.NONE

    harness.run(scenario)


def test_the_broker_in_the_process_of_the_controller_registers_at_once() -> None:
    """The process that had registered before is the one that this controller replaced."""
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        harness.follow()
        harness.lead(2)
        for broker_id, code in ((1, ErrorCode.NONE), (2, ErrorCode.DUPLICATE_BROKER_REGISTRATION)):
            again = registration(broker_id)
            again.incarnation_id = b"n" * 16
            again.log_dirs = [bytes([broker_id]) * 16]
            assert (await harness.send(again)).error_code == code

    harness.run(scenario)


def test_a_heartbeat_reads_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        await harness.send(creation("orders", partitions=100, replicas=2))

        def scanned(*_: Any) -> Any:
            raise AssertionError("topics were scanned")

        monkeypatch.setattr("barnabas.metadata.image.TopicsImage.__iter__", scanned)
        monkeypatch.setattr("barnabas.metadata.image.TopicsImage.by_id", scanned)
        await harness.beat(1)
        request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=0)
        assert (await harness.send(request)).error_code == ErrorCode.STALE_BROKER_EPOCH

    harness.run(scenario)


# Periodic elections


def test_preferred_leaders_are_elected_periodically_in_bounded_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ControllerHarness(**{QUIET: "0"})
    monkeypatch.setattr("barnabas.controller.leader_balancer.MAX_ELECTIONS_PER_RUN", 7)

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        await harness.send(creation("orders", partitions=20, replicas=2))
        orders = harness.image.topics.by_name("orders")
        assert orders is not None
        harness.quorum.batches.append((harness.quorum.end_offset - 1, 1, _all_led_by(2, orders)))
        harness.commit()
        harness.follow()
        harness.lead(2)
        written = len(harness.quorum.batches)
        harness.controller.run_periodic_tasks()
        assert len(harness.quorum.batches) == written
        await harness.pass_ms(300_000)
        for _ in range(3):
            await harness.beat(1)
            await harness.beat(2)
            harness.controller.run_periodic_tasks()
        harness.commit()
        assert [len(records) for _, _, records in harness.quorum.batches[written:]] == [7, 3]
        now = harness.image.topics.by_name("orders")
        assert now is not None
        assert all(p.leader == p.replicas[0] for p in now.partitions.values())

    harness.run(scenario)


def _all_led_by(broker_id: int, topic: Any) -> list[Any]:
    return [
        PartitionChangeRecord(topic_id=topic.topic_id, partition_id=number, leader=broker_id)
        for number in topic.partitions
    ]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_leaderless_partition_gets_a_leader_when_unclean_elections_are_enabled(
    allowed: bool,
) -> None:
    harness = ControllerHarness(**{QUIET: "0"})

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1, 2)
        await harness.send(creation("orders", replicas=2))
        harness.controller.fence_broker(1)
        harness.controller.fence_broker(2)
        harness.commit()
        orders = harness.image.topics.by_name("orders")
        assert orders is not None
        assert (orders.partitions[0].leader, orders.partitions[0].elr) == (NO_LEADER, (2,))
        await harness.beat(1)
        await harness.send(_unclean_elections(allowed))
        harness.controller.run_periodic_tasks()
        harness.commit()
        orders = harness.image.topics.by_name("orders")
        assert orders is not None
        assert orders.partitions[0].leader == (1 if allowed else NO_LEADER)

    harness.run(scenario)


def _unclean_elections(allowed: bool) -> IncrementalAlterConfigsRequest:
    setting = IncrementalAlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value=str(allowed).lower()
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=2, resource_name="orders", configs=[setting]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])
