"""What groups and transactions do, so that it ends up in the internal topics."""

from dataclasses import dataclass

from tests.conformance.same.conftest import PLAIN, create, make_ready
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import (
    Member,
    first_member,
    joined,
    leave,
)
from tests.conformance.same.offsets import commit, delete_offsets
from tests.conformance.same.talk import Talk
from tests.conformance.same.transactions import Producer, new_producer

from barnabas.wire.messages.groups import DeleteGroupsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest

OPEN = "open"
"""A transactional id, and the group it commits to, whose transaction is left open."""


@dataclass(slots=True)
class Living:
    """Who is still there when the activity is over."""

    classic: Member
    consumer: Consumer
    producer: Producer


def be_active(talk: Talk) -> Living:
    create(talk.side, PLAIN, 2)
    make_ready(talk.side)
    commit_plainly(talk)
    come_and_go(talk)
    consumer = consume(talk)
    transact(talk)
    classic = first_member(talk, "classic", "member of classic", instance="static")
    talk.ask(
        commit(
            talk.side,
            9,
            "classic",
            offset=3,
            member_id=classic.member_id,
            generation=classic.generation,
        ),
        9,
    )
    producer = new_producer(talk, OPEN, "open producer", timeout_ms=600_000)
    talk.ask_patiently(producer.produce(PLAIN, 0), 12)
    talk.ask_patiently(producer.commit_offsets(OPEN, 8), 5)
    return Living(classic, consumer, producer)


def commit_plainly(talk: Talk) -> None:
    talk.ask(commit(talk.side, 9, "plain", offset=1, partitions=[0, 1], metadata="first"), 9)
    talk.ask(commit(talk.side, 10, "plain", offset=2, leader_epoch=0), 10)
    talk.ask(commit(talk.side, 4, "plain", offset=3, partitions=[1]), 4)
    talk.ask(delete_offsets("plain", PLAIN, partitions=[1]))
    talk.ask(commit(talk.side, 9, "deleted", offset=1), 9)
    talk.ask(DeleteGroupsRequest(groups_names=["deleted"]), 2)


def come_and_go(talk: Talk) -> None:
    """A classic group through its states, and one that is deleted."""
    group = "came-and-went"
    member = first_member(talk, group, "visitor", version=9, protocols=["range", "sticky"])
    talk.ask(leave(group, member.member_id))
    again = joined(talk, group, "visitor again", version=3)
    talk.ask(leave(group, again.member_id))
    gone = first_member(talk, "gone", "gone")
    talk.ask(leave("gone", gone.member_id))
    talk.ask(DeleteGroupsRequest(groups_names=["gone"]), 2)


def consume(talk: Talk) -> Consumer:
    """Members of a consumer group share, change their minds and leave; one stays."""
    group = "consumers"
    one = Consumer(talk, group, "one").join(rack_id="r", server_assignor="range")
    two = Consumer(talk, group, "two").join(instance_id="static")
    one.beat_until_owning(1)
    one.beat()
    two.beat_until_owning(1)
    one.beat(topics=[PLAIN, "other"])
    two.beat_until_owning(1)
    talk.ask(commit(talk.side, 9, group, offset=4, member_id="one", generation=one.epoch), 9)
    two.leave(-2, instance_id="static")
    two = Consumer(talk, group, "second-two").join(instance_id="static")
    two.leave(instance_id="static")
    one.beat_until_owning(2)
    three = Consumer(talk, "patterns", "three")
    three.join(topics=None, subscribed_topic_regex="pl.*").beat_until_owning(2)
    four = Consumer(talk, "left", "four").join()
    four.leave()
    return one


def transact(talk: Talk) -> None:
    """Committed and aborted, in both versions of the protocol, with offsets and without."""
    one = new_producer(talk, "second-version", "one")
    for committed in True, False:
        talk.ask_patiently(one.produce(PLAIN, 0), 12)
        talk.ask_patiently(one.commit_offsets("transactional", 6), 5)
        ended = talk.ask_patiently(one.end(committed), 5)
        one = one.but(epoch=ended.producer_epoch)
        wait_for_markers(talk, one)
    one = new_producer(talk, "first-version", "other")
    for number, committed in enumerate((True, False)):
        talk.ask_patiently(one.add(3, PLAIN, partitions=[0, 1]), 3)
        talk.ask_patiently(one.add_group("transactional"), 3)
        talk.ask_patiently(one.produce(PLAIN, 2 * number), 11)
        talk.ask_patiently(one.commit_offsets("transactional", 7), 4)
        talk.ask_patiently(one.end(committed), 4)
        wait_for_markers(talk, one)
    talk.ask_patiently(one.init())


def wait_for_markers(talk: Talk, producer: Producer) -> None:
    """Kafka answers when the end is decided; what follows must not come before its markers."""
    names = [producer.transactional_id]
    talk.ask_patiently(DescribeTransactionsRequest(transactional_ids=names))
