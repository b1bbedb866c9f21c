"""A workload of groups and transactions that fills the internal topics."""

from dataclasses import dataclass

from tests.conformance.side_by_side.conftest import PLAIN, create_topic, wait_until_ready
from tests.conformance.side_by_side.consumers import Consumer
from tests.conformance.side_by_side.dialog import Dialog
from tests.conformance.side_by_side.groups import (
    Member,
    first_member,
    join_member,
    leave,
)
from tests.conformance.side_by_side.offsets import commit, delete_offsets
from tests.conformance.side_by_side.transactions import Producer, new_producer

from barnabas.wire.messages.groups import DeleteGroupsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest

OPEN = "open"
"""The id of a transaction that stays open, and the group that it commits to."""


@dataclass(slots=True)
class ActiveClients:
    """The clients that are still active after the workload."""

    classic: Member
    consumer: Consumer
    producer: Producer


def run_workload(dialog: Dialog) -> ActiveClients:
    create_topic(dialog.side, PLAIN, 2)
    wait_until_ready(dialog.side)
    commit_without_members(dialog)
    run_classic_groups(dialog)
    consumer = run_consumer_groups(dialog)
    run_transactions(dialog)
    classic = first_member(dialog, "classic", "member of classic", instance="static")
    dialog.send(
        commit(
            dialog.side,
            9,
            "classic",
            offset=3,
            member_id=classic.member_id,
            generation=classic.generation,
        ),
        9,
    )
    producer = new_producer(dialog, OPEN, "open producer", timeout_ms=600_000)
    dialog.send_with_retries(producer.produce(PLAIN, 0), 12)
    dialog.send_with_retries(producer.commit_offsets(OPEN, 8), 5)
    return ActiveClients(classic, consumer, producer)


def commit_without_members(dialog: Dialog) -> None:
    dialog.send(commit(dialog.side, 9, "plain", offset=1, partitions=[0, 1], metadata="first"), 9)
    dialog.send(commit(dialog.side, 10, "plain", offset=2, leader_epoch=0), 10)
    dialog.send(commit(dialog.side, 4, "plain", offset=3, partitions=[1]), 4)
    dialog.send(delete_offsets("plain", PLAIN, partitions=[1]))
    dialog.send(commit(dialog.side, 9, "deleted", offset=1), 9)
    dialog.send(DeleteGroupsRequest(groups_names=["deleted"]), 2)


def run_classic_groups(dialog: Dialog) -> None:
    """Runs a classic group through its states, and deletes another one."""
    group = "came-and-went"
    member = first_member(dialog, group, "visitor", version=9, protocols=["range", "sticky"])
    dialog.send(leave(group, member.member_id))
    again = join_member(dialog, group, "visitor again", version=3)
    dialog.send(leave(group, again.member_id))
    gone = first_member(dialog, "gone", "gone")
    dialog.send(leave("gone", gone.member_id))
    dialog.send(DeleteGroupsRequest(groups_names=["gone"]), 2)


def run_consumer_groups(dialog: Dialog) -> Consumer:
    """Runs consumer groups whose members change subscriptions and leave; returns one that stays."""
    group = "consumers"
    one = Consumer(dialog, group, "one").join(rack_id="r", server_assignor="range")
    two = Consumer(dialog, group, "two").join(instance_id="static")
    one.heartbeat_until_owning(1)
    one.heartbeat()
    two.heartbeat_until_owning(1)
    one.heartbeat(topics=[PLAIN, "other"])
    two.heartbeat_until_owning(1)
    dialog.send(commit(dialog.side, 9, group, offset=4, member_id="one", generation=one.epoch), 9)
    two.leave(-2, instance_id="static")
    two = Consumer(dialog, group, "second-two").join(instance_id="static")
    two.leave(instance_id="static")
    one.heartbeat_until_owning(2)
    three = Consumer(dialog, "patterns", "three")
    three.join(topics=None, subscribed_topic_regex="pl.*").heartbeat_until_owning(2)
    four = Consumer(dialog, "left", "four").join()
    four.leave()
    return one


def run_transactions(dialog: Dialog) -> None:
    """Commits and aborts transactions in both protocol versions, with and without offsets."""
    one = new_producer(dialog, "second-version", "one")
    for committed in True, False:
        dialog.send_with_retries(one.produce(PLAIN, 0), 12)
        dialog.send_with_retries(one.commit_offsets("transactional", 6), 5)
        ended = dialog.send_with_retries(one.end(committed), 5)
        one = one.with_changes(epoch=ended.producer_epoch)
        wait_for_markers(dialog, one)
    one = new_producer(dialog, "first-version", "other")
    for number, committed in enumerate((True, False)):
        dialog.send_with_retries(one.add(3, PLAIN, partitions=[0, 1]), 3)
        dialog.send_with_retries(one.add_group("transactional"), 3)
        dialog.send_with_retries(one.produce(PLAIN, 2 * number), 11)
        dialog.send_with_retries(one.commit_offsets("transactional", 7), 4)
        dialog.send_with_retries(one.end(committed), 4)
        wait_for_markers(dialog, one)
    dialog.send_with_retries(one.init())


def wait_for_markers(dialog: Dialog, producer: Producer) -> None:
    """Waits for the markers: Kafka responds when the end is decided, before they are written."""
    names = [producer.transactional_id]
    dialog.send_with_retries(DescribeTransactionsRequest(transactional_ids=names))
