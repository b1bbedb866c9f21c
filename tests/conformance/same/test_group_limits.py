"""Groups and transactions at their limits: full ones, and members and producers out of time."""

from collections.abc import Iterator

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker, peer_is_here
from tests.conformance.same.conftest import PLAIN, create, make_ready
from tests.conformance.same.consumers import Consumer, beat, first_beat
from tests.conformance.same.groups import (
    first_member,
    heartbeat,
    join,
    joined,
    leave,
    member_id_for,
    sync,
)
from tests.conformance.same.offsets import commit, delete_offsets, fetched
from tests.conformance.same.sides import Side, Sides
from tests.conformance.same.talk import Talk, agree
from tests.conformance.same.transactions import Producer, init, new_producer

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

NARROW = {
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
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Both brokers with little room and little time, whom nobody asked for a coordinator yet."""
    if not peer_is_here():
        pytest.skip("the real Kafka is not here: set PEERS to the folder of its script")
    brokers = [
        PeerBroker(tmp_path_factory.mktemp("narrow-kafka"), settings=NARROW),
        BrokerProcess(tmp_path_factory.mktemp("narrow-barnabas"), settings=NARROW),
    ]
    sides = []
    try:
        for name, broker in zip(("Kafka", "Barnabas"), brokers, strict=True):
            broker.start()
            sides.append(Side(name, broker))
            create(sides[-1], PLAIN, 2)
        yield sides
    finally:
        for side in sides:
            side.close()
        for broker in brokers:
            broker.stop()


@pytest.fixture(scope="module")
def narrow(untouched: Sides) -> Sides:
    for side in untouched:
        make_ready(side)
    return untouched


def test_before_anybody_asked_for_a_coordinator(untouched: Sides) -> None:
    """The internal topics are made when a coordinator is looked for, and not by anything else."""

    def conversation(talk: Talk) -> None:
        nobody = Producer("t", 1, 0)
        requests: list[Message] = [
            join("g"),
            heartbeat("g", 1, "m"),
            sync("g", 1, "m"),
            leave("g", "m"),
            fetched(talk.side, 9, "g"),
            fetched(talk.side, 9, "g", topics=None),
            delete_offsets("g", PLAIN),
            first_beat("g", "m"),
            DescribeGroupsRequest(groups=["g"]),
            ConsumerGroupDescribeRequest(group_ids=["g"]),
            DeleteGroupsRequest(groups_names=["g"]),
            ListGroupsRequest(),
            init("t"),
            nobody.add(3, PLAIN),
            nobody.add(5, PLAIN, verify=True),
            nobody.add_group("g"),
            nobody.commit_offsets("g"),
            nobody.end(True),
            nobody.produce(PLAIN, 0),
            DescribeTransactionsRequest(transactional_ids=["t"]),
            ListTransactionsRequest(),
            MetadataRequest(topics=None),
        ]
        for request in requests:
            talk.ask_in_all_versions(request)
        talk.ask(commit(talk.side, 9, "g"), 9)

    agree(untouched, conversation)


def test_a_classic_group_that_is_full(narrow: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "full"
        first = first_member(talk, group)
        second = member_id_for(talk, group, "second")
        waiting = talk.call(join(group, second))
        talk.ask_until(
            lambda: heartbeat(group, first.generation, first.member_id),
            4,
            lambda answer: answer.error_code != 0,
        )
        talk.ask(join(group, first.member_id))
        waiting.answer()
        talk.ask_in_all_versions(join(group))
        talk.ask_in_all_versions(join(group, instance="i"))
        talk.ask(join(group, second))

    agree(narrow, conversation)


def test_a_consumer_group_that_is_full(narrow: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "full-848"
        one = Consumer(talk, group, "one").join(instance_id="i")
        Consumer(talk, group, "two").join()
        talk.ask_in_all_versions(first_beat(group, "three"))
        talk.ask_in_all_versions(first_beat(group, "three", instance_id="j"))
        one.leave(-2, instance_id="i")
        talk.ask_in_all_versions(first_beat(group, "three", instance_id="j"))
        talk.ask(first_beat(group, "three", instance_id="i"))

    agree(narrow, conversation)


def test_the_other_protocol_when_groups_may_not_move(narrow: Sides) -> None:
    def conversation(talk: Talk) -> None:
        first_member(talk, "stays-classic")
        talk.ask_in_all_versions(first_beat("stays-classic", "one"))
        Consumer(talk, "stays-consumer", "one").join()
        talk.ask_in_all_versions(join("stays-consumer"))
        talk.ask_in_all_versions(join("stays-consumer", "nobody"))

    agree(narrow, conversation)


def test_a_classic_member_out_of_time(narrow: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "late"
        first = first_member(talk, group, session_ms=300)
        talk.ask_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda answer: answer.groups[0].group_state == "Empty",
        )
        talk.ask(heartbeat(group, first.generation, first.member_id))
        talk.ask(join(group, first.member_id))

    agree(narrow, conversation)


def test_a_leader_that_does_not_come_to_the_rebalance(narrow: Sides) -> None:
    """It is dropped after the rebalance timeout, and who came goes on."""

    def conversation(talk: Talk) -> None:
        group = "late-leader"
        first = first_member(talk, group, rebalance_ms=700)
        second = member_id_for(talk, group, "second")
        waiting = talk.call(join(group, second, rebalance_ms=700))
        waiting.answer()
        talk.ask(heartbeat(group, first.generation, first.member_id))

    agree(narrow, conversation)


def test_a_leader_that_does_not_sync(narrow: Sides) -> None:
    """Members that do not sync in time are dropped too (KAFKA-9752)."""

    def conversation(talk: Talk) -> None:
        group = "late-sync"
        first = joined(talk, group, "first", rebalance_ms=500)
        talk.ask_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda answer: answer.groups[0].group_state == "Empty",
        )
        talk.ask(heartbeat(group, first.generation, first.member_id))

    agree(narrow, conversation)


def test_a_consumer_out_of_time(narrow: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "late-848"
        one = Consumer(talk, group, "one").join()
        talk.ask_until(
            lambda: ConsumerGroupDescribeRequest(group_ids=[group]),
            1,
            lambda answer: not answer.groups[0].members,
        )
        talk.ask(beat(group, "one", one.epoch))

    agree(narrow, conversation)


def test_a_consumer_that_does_not_give_up_its_partitions(narrow: Sides) -> None:
    """Fenced after its rebalance timeout, though it sends heartbeats."""

    def conversation(talk: Talk) -> None:
        group = "clinging"
        one = Consumer(talk, group, "one").join(rebalance_timeout_ms=600)
        keeps = dict(one.owned)
        Consumer(talk, group, "two").join()
        talk.ask_until(
            lambda: beat(group, "one", one.epoch, owned=keeps), 1, lambda a: a.error_code != 0
        )

    agree(narrow, conversation)


def test_a_transaction_out_of_time(narrow: Sides) -> None:
    """Aborted with a new epoch: the producer is fenced, and may begin again."""

    def conversation(talk: Talk) -> None:
        name = "late-transaction"
        one = new_producer(talk, name, timeout_ms=300)
        talk.ask(one.add(3, PLAIN), 3)
        talk.ask_until(
            lambda: DescribeTransactionsRequest(transactional_ids=[name]),
            0,
            lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
        )
        for committed in True, False:
            talk.ask_in_all_versions(one.end(committed))
        talk.ask(one.add(3, PLAIN), 3)
        talk.ask_patiently(one.produce(PLAIN, 0), 11)
        talk.ask_patiently(one.produce(PLAIN, 0), 12)
        again = init(name, timeout_ms=300, producer_id=one.producer_id, epoch=one.epoch)
        talk.ask_patiently(again)
        talk.ask(DescribeTransactionsRequest(transactional_ids=[name]))

    agree(narrow, conversation)
