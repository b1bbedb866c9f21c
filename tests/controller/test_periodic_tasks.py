"""What time brings: sessions that end, and elections that nobody asked for."""

from typing import Any

import pytest
from tests.controller.harness import Stage, creation, registration

from barnabas.metadata.states import NO_LEADER
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.metadata_records import (
    PartitionChangeRecord,
)

QUIET = "metadata.max.idle.interval.ms"


def test_a_broker_without_heartbeats_is_fenced_with_its_partitions_in_one_batch() -> None:
    stage = Stage(**{QUIET: "0"})

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2, 3)
        await stage.ask(creation("orders", partitions=60, replicas=3))
        await stage.pass_ms(8_900)
        for alive in (2, 3):
            await stage.beat(alive)
        written = len(stage.quorum.batches)
        stage.controller.run_periodic_tasks()
        assert len(stage.quorum.batches) == written
        await stage.pass_ms(100)
        stage.controller.run_periodic_tasks()
        (batch,) = stage.quorum.batches[written:]
        assert len(batch[2]) == 61
        stage.commit()
        assert stage.image.brokers[1].fenced
        orders = stage.image.topics.by_name("orders")
        assert orders is not None
        assert {p.leader for p in orders.partitions.values()} == {2, 3}
        assert all(1 not in p.isr for p in orders.partitions.values())
        stage.controller.run_periodic_tasks()
        assert len(stage.quorum.batches) == written + 1

    stage.run(life)


def test_a_change_of_the_wall_clock_does_not_affect_sessions() -> None:
    stage = Stage(**{QUIET: "0"})

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        for ahead_ms in (3_600_000, -3_600_000):
            stage.clock_ahead_ms = ahead_ms
            stage.controller.run_periodic_tasks()
            stage.commit()
            assert not any(broker.fenced for broker in stage.image.brokers.values())
            await stage.pass_ms(4_500)
            await stage.beat(2)
        stage.controller.run_periodic_tasks()
        stage.commit()
        assert [b.broker_id for b in stage.image.brokers.values() if b.fenced] == [1]

    stage.run(life)


def test_a_new_controller_begins_a_session_for_every_broker() -> None:
    stage = Stage(**{QUIET: "0"})

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        await stage.pass_ms(20_000)
        stage.follow()
        stage.lead(2)
        await stage.pass_ms(8_999)
        stage.controller.run_periodic_tasks()
        stage.commit()
        assert not any(broker.fenced for broker in stage.image.brokers.values())
        await stage.beat(2)
        await stage.pass_ms(1)
        stage.controller.run_periodic_tasks()
        stage.commit()
        assert [b.broker_id for b in stage.image.brokers.values() if b.fenced] == [1]

    stage.run(life)


def test_a_broker_whose_process_is_gone_is_fenced_at_once_and_may_return() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        await stage.ask(creation("orders", replicas=2))
        stage.controller.fence_broker(1)
        stage.controller.fence_broker(1)
        stage.controller.fence_broker(9)
        stage.commit()
        assert stage.image.brokers[1].fenced
        orders = stage.image.topics.by_name("orders")
        assert orders is not None
        assert orders.partitions[0].isr == (2,)
        again = registration(1)
        again.incarnation_id = b"n" * 16
        assert (await stage.ask(again)).error_code == ErrorCode.NONE
        assert not (await stage.beat(1)).is_fenced

    stage.run(life)


def test_a_second_process_with_the_same_id_is_rejected_while_the_first_lives() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        other = registration(1)
        other.incarnation_id = b"o" * 16
        other.log_dirs = [b"o" * 16]
        refused = await stage.ask(other)
        assert refused.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await stage.pass_ms(9_000)
        assert (await stage.ask(other)).error_code == ErrorCode.NONE

    stage.run(life)


def test_the_broker_in_the_process_of_the_controller_registers_at_once() -> None:
    """The process that had registered before is the one that this controller replaced."""
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        stage.follow()
        stage.lead(2)
        for broker_id, code in ((1, ErrorCode.NONE), (2, ErrorCode.DUPLICATE_BROKER_REGISTRATION)):
            again = registration(broker_id)
            again.incarnation_id = b"n" * 16
            again.log_dirs = [bytes([broker_id]) * 16]
            assert (await stage.ask(again)).error_code == code

    stage.run(life)


def test_a_heartbeat_reads_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        await stage.ask(creation("orders", partitions=100, replicas=2))

        def scanned(*_: Any) -> Any:
            raise AssertionError("topics were scanned")

        monkeypatch.setattr("barnabas.metadata.image.TopicsImage.__iter__", scanned)
        monkeypatch.setattr("barnabas.metadata.image.TopicsImage.by_id", scanned)
        await stage.beat(1)
        request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=0)
        assert (await stage.ask(request)).error_code == ErrorCode.STALE_BROKER_EPOCH

    stage.run(life)


# Elections that nobody asked for


def test_preferred_leaders_are_elected_periodically_in_bounded_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(**{QUIET: "0"})
    monkeypatch.setattr("barnabas.controller.leader_balancer.MAX_ELECTIONS_PER_RUN", 7)

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        await stage.ask(creation("orders", partitions=20, replicas=2))
        orders = stage.image.topics.by_name("orders")
        assert orders is not None
        stage.quorum.batches.append((stage.quorum.end_offset - 1, 1, _all_led_by(2, orders)))
        stage.commit()
        stage.follow()
        stage.lead(2)
        written = len(stage.quorum.batches)
        stage.controller.run_periodic_tasks()
        assert len(stage.quorum.batches) == written
        await stage.pass_ms(300_000)
        for _ in range(3):
            await stage.beat(1)
            await stage.beat(2)
            stage.controller.run_periodic_tasks()
        stage.commit()
        assert [len(records) for _, _, records in stage.quorum.batches[written:]] == [7, 3]
        now = stage.image.topics.by_name("orders")
        assert now is not None
        assert all(p.leader == p.replicas[0] for p in now.partitions.values())

    stage.run(life)


def _all_led_by(broker_id: int, topic: Any) -> list[Any]:
    return [
        PartitionChangeRecord(topic_id=topic.topic_id, partition_id=number, leader=broker_id)
        for number in topic.partitions
    ]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_leaderless_partition_gets_a_leader_when_unclean_elections_are_enabled(
    allowed: bool,
) -> None:
    stage = Stage(**{QUIET: "0"})

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1, 2)
        await stage.ask(creation("orders", replicas=2))
        stage.controller.fence_broker(1)
        stage.controller.fence_broker(2)
        stage.commit()
        orders = stage.image.topics.by_name("orders")
        assert orders is not None
        assert (orders.partitions[0].leader, orders.partitions[0].elr) == (NO_LEADER, (2,))
        await stage.beat(1)
        await stage.ask(_unclean_elections(allowed))
        stage.controller.run_periodic_tasks()
        stage.commit()
        orders = stage.image.topics.by_name("orders")
        assert orders is not None
        assert orders.partitions[0].leader == (1 if allowed else NO_LEADER)

    stage.run(life)


def _unclean_elections(allowed: bool) -> IncrementalAlterConfigsRequest:
    setting = AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value=str(allowed).lower()
    )
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[setting])
    return IncrementalAlterConfigsRequest(resources=[resource])
