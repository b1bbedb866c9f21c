"""Limits of groups and transactions: full groups, and members and producers that time out."""

from collections.abc import Iterator

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker, is_peer_installed
from tests.conformance.side_by_side.conftest import PLAIN, create_topic, wait_until_ready
from tests.conformance.side_by_side.consumers import Consumer, consumer_heartbeat, first_heartbeat
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import (
    first_member,
    heartbeat,
    join,
    join_member,
    leave,
    request_member_id,
    sync,
)
from tests.conformance.side_by_side.offsets import commit, delete_offsets, fetch_offsets
from tests.conformance.side_by_side.sides import Side, Sides
from tests.conformance.side_by_side.transactions import Producer, init, new_producer

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from barnabas.wire.schema import Message

pytestmark = pytest.mark.peer

LOW_LIMITS = {
    "group.max.size": "2",
    "group.consumer.max.size": "2",
    "group.min.session.timeout.ms": "1",
    "group.consumer.min.session.timeout.ms": "1",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "1",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.migration.policy": "disabled",
    "offset.metadata.max.bytes": "10",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.max.timeout.ms": "5000",
}


@pytest.fixture(scope="module")
def new_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Both brokers with low limits and short timeouts, before any coordinator was requested."""
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    brokers = [
        PeerBroker(tmp_path_factory.mktemp("narrow-kafka"), settings=LOW_LIMITS),
        BrokerProcess(tmp_path_factory.mktemp("narrow-barnabas"), settings=LOW_LIMITS),
    ]
    sides = []
    try:
        for name, broker in zip(("Kafka", "Barnabas"), brokers, strict=True):
            broker.start()
            sides.append(Side(name, broker))
            create_topic(sides[-1], PLAIN, 2)
        yield sides
    finally:
        for side in sides:
            side.close()
        for broker in brokers:
            broker.stop()


@pytest.fixture(scope="module")
def limited(new_brokers: Sides) -> Sides:
    for side in new_brokers:
        wait_until_ready(side)
    return new_brokers


def test_only_find_coordinator_creates_internal_topics(new_brokers: Sides) -> None:
    """Only FindCoordinator creates the internal topics."""

    def script(dialog: Dialog) -> None:
        unknown = Producer("t", 1, 0)
        requests: list[Message] = [
            join("g"),
            heartbeat("g", 1, "m"),
            sync("g", 1, "m"),
            leave("g", "m"),
            fetch_offsets(dialog.side, 9, "g"),
            fetch_offsets(dialog.side, 9, "g", topics=None),
            delete_offsets("g", PLAIN),
            first_heartbeat("g", "m"),
            DescribeGroupsRequest(groups=["g"]),
            ConsumerGroupDescribeRequest(group_ids=["g"]),
            DeleteGroupsRequest(groups_names=["g"]),
            ListGroupsRequest(),
            init("t"),
            unknown.add(3, PLAIN),
            unknown.add(5, PLAIN, verify=True),
            unknown.add_group("g"),
            unknown.commit_offsets("g"),
            unknown.end(True),
            unknown.produce(PLAIN, 0),
            DescribeTransactionsRequest(transactional_ids=["t"]),
            ListTransactionsRequest(),
            MetadataRequest(topics=None),
        ]
        for request in requests:
            dialog.send_in_all_versions(request)
        dialog.send(commit(dialog.side, 9, "g"), 9)

    assert_same_dialog(new_brokers, script)


def test_a_full_classic_group_rejects_members(limited: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "full"
        first = first_member(dialog, group)
        second = request_member_id(dialog, group, "second")
        waiting = dialog.send_async(join(group, second))
        dialog.send_until(
            lambda: heartbeat(group, first.generation, first.member_id),
            4,
            lambda response: response.error_code != 0,
        )
        dialog.send(join(group, first.member_id))
        waiting.response()
        dialog.send_in_all_versions(join(group))
        dialog.send_in_all_versions(join(group, instance="i"))
        dialog.send(join(group, second))

    assert_same_dialog(limited, script)


def test_a_full_consumer_group_rejects_members(limited: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "full-848"
        one = Consumer(dialog, group, "one").join(instance_id="i")
        Consumer(dialog, group, "two").join()
        dialog.send_in_all_versions(first_heartbeat(group, "three"))
        dialog.send_in_all_versions(first_heartbeat(group, "three", instance_id="j"))
        one.leave(-2, instance_id="i")
        dialog.send_in_all_versions(first_heartbeat(group, "three", instance_id="j"))
        dialog.send(first_heartbeat(group, "three", instance_id="i"))

    assert_same_dialog(limited, script)


def test_groups_do_not_migrate_if_migration_is_disabled(limited: Sides) -> None:
    def script(dialog: Dialog) -> None:
        first_member(dialog, "stays-classic")
        dialog.send_in_all_versions(first_heartbeat("stays-classic", "one"))
        Consumer(dialog, "stays-consumer", "one").join()
        dialog.send_in_all_versions(join("stays-consumer"))
        dialog.send_in_all_versions(join("stays-consumer", "nobody"))

    assert_same_dialog(limited, script)


def test_a_classic_member_times_out(limited: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "late"
        first = first_member(dialog, group, session_ms=300)
        dialog.send_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda response: response.groups[0].group_state == "Empty",
        )
        dialog.send(heartbeat(group, first.generation, first.member_id))
        dialog.send(join(group, first.member_id))

    assert_same_dialog(limited, script)


def test_a_leader_that_does_not_rejoin_is_removed(limited: Sides) -> None:
    """It is removed after the rebalance timeout; the others continue."""

    def script(dialog: Dialog) -> None:
        group = "late-leader"
        first = first_member(dialog, group, rebalance_ms=700)
        second = request_member_id(dialog, group, "second")
        waiting = dialog.send_async(join(group, second, rebalance_ms=700))
        waiting.response()
        dialog.send(heartbeat(group, first.generation, first.member_id))

    assert_same_dialog(limited, script)


def test_a_leader_that_does_not_sync_is_removed(limited: Sides) -> None:
    """Members that do not sync in time are removed too (KAFKA-9752)."""

    def script(dialog: Dialog) -> None:
        group = "late-sync"
        first = join_member(dialog, group, "first", rebalance_ms=500)
        dialog.send_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda response: response.groups[0].group_state == "Empty",
        )
        dialog.send(heartbeat(group, first.generation, first.member_id))

    assert_same_dialog(limited, script)


def test_a_consumer_times_out(limited: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "late-848"
        one = Consumer(dialog, group, "one").join()
        dialog.send_until(
            lambda: ConsumerGroupDescribeRequest(group_ids=[group]),
            1,
            lambda response: not response.groups[0].members,
        )
        dialog.send(consumer_heartbeat(group, "one", one.epoch))

    assert_same_dialog(limited, script)


def test_a_consumer_that_does_not_revoke_its_partitions_is_fenced(limited: Sides) -> None:
    """It is fenced after its rebalance timeout although it sends heartbeats."""

    def script(dialog: Dialog) -> None:
        group = "clinging"
        one = Consumer(dialog, group, "one").join(rebalance_timeout_ms=600)
        keeps = dict(one.owned)
        Consumer(dialog, group, "two").join()
        dialog.send_until(
            lambda: consumer_heartbeat(group, "one", one.epoch, owned=keeps),
            1,
            lambda a: a.error_code != 0,
        )

    assert_same_dialog(limited, script)


def test_a_transaction_times_out(limited: Sides) -> None:
    """It is aborted with a new epoch; the producer is fenced and can initialize again."""

    def script(dialog: Dialog) -> None:
        name = "late-transaction"
        one = new_producer(dialog, name, timeout_ms=300)
        dialog.send(one.add(3, PLAIN), 3)
        dialog.send_until(
            lambda: DescribeTransactionsRequest(transactional_ids=[name]),
            0,
            lambda response: response.transaction_states[0].transaction_state == "CompleteAbort",
        )
        for committed in True, False:
            dialog.send_in_all_versions(one.end(committed))
        dialog.send(one.add(3, PLAIN), 3)
        dialog.send_with_retries(one.produce(PLAIN, 0), 11)
        dialog.send_with_retries(one.produce(PLAIN, 0), 12)
        again = init(name, timeout_ms=300, producer_id=one.producer_id, epoch=one.epoch)
        dialog.send_with_retries(again)
        dialog.send(DescribeTransactionsRequest(transactional_ids=[name]))

    assert_same_dialog(limited, script)
