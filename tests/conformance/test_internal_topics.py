"""`__consumer_offsets` and `__transaction_state`: both brokers write the same records, and either
goes on where the other stopped."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.activity import OPEN, Living, be_active
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, peer
from tests.conformance.same.conftest import PLAIN, make_ready
from tests.conformance.same.consumers import beat
from tests.conformance.same.groups import heartbeat
from tests.conformance.same.offsets import fetched
from tests.conformance.same.sides import Side
from tests.conformance.same.talk import Talk

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
GROUPS = ["plain", "came-and-went", "consumers", "patterns", "left", "transactional", "classic"]
GROUPS += ["deleted", "gone", OPEN]


@dataclass(slots=True)
class Written:
    """A directory that a broker filled and left cleanly, and what it knew before."""

    broker: Broker
    living: Living
    known: list[tuple[str, Any]]
    records: dict[str, list[str]]


@pytest.fixture(scope="module")
def by_kafka(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(PeerBroker(tmp_path_factory.mktemp("by-kafka"), settings=AT_ONCE))


@pytest.fixture(scope="module")
def by_barnabas(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(BrokerProcess(tmp_path_factory.mktemp("by-barnabas"), settings=AT_ONCE))


def written(broker: Broker) -> Written:
    broker.start()
    try:
        talk = Talk(Side("writer", broker))
        living = be_active(talk)
        known = what_is_known(broker)
        talk.close()
    finally:
        broker.stop()
    records = {topic: dumped(broker.data, topic) for topic in DECODERS}
    return Written(broker, living, known, records)


MADE_UP = [
    (r"^Dumping .*/(.*)/.*", r"\1"),
    (r"CreateTime: \d+", "CreateTime: then"),
    (r"position: \d+ (.*) crc: \d+", r"\1"),
    (r"(Size: -?\d+) sequence: -?\d+", r"\1"),
    (r'("\w*[tT]imestamp(?:Ms)?"):\d+', r"\1:then"),
    (r"\b(same|static)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"\1-uuid"),
    (r'"topicId":"[\w-]{22}"', '"topicId":"an id"'),
    (r'"metadataHash":-?\d+', '"metadataHash":"of the id"'),
    (r'("topics":\[[^]]*\],"version"):\d+', r'\1:"of the metadata"'),
]
"""What differs between any two clusters: times, checksums over them, ids, hashes over those; and
how many writes went into a batch, which Kafka leaves to the moment."""


def dumped(data: Path, topic: str) -> list[str]:
    """What kafka-dump-log prints of a topic, with words for what a broker makes up."""
    logs = sorted(log for log in data.glob(f"{topic}-*/*.log") if log.stat().st_size)
    named = ",".join(map(str, logs))
    printed = peer("tool", "dump-log", DECODERS[topic], "--files", named)
    for pattern, word in MADE_UP:
        printed = re.sub(pattern, word, printed, flags=re.MULTILINE)
    printed = re.sub(r'(?<="transactionPartitions":)\[{.*}\](?=,)', in_order, printed)
    lines = printed.splitlines()
    return [line for line in lines if "isTransactional: false" not in line]


def what_is_known(broker: Broker) -> list[tuple[str, Any]]:
    """Every group, its members and offsets, and every transaction."""
    side = Side("reader", broker)
    make_ready(side)
    talk = Talk(side)
    talk.ask(ListGroupsRequest())
    talk.ask(DescribeGroupsRequest(groups=GROUPS))
    talk.ask(ConsumerGroupDescribeRequest(group_ids=GROUPS))
    for stable in False, True:
        talk.ask(fetched(side, 9, *GROUPS, topics=None, require_stable=stable), 9)
    for name in "second-version", "first-version", OPEN:
        talk.ask_patiently(DescribeTransactionsRequest(transactional_ids=[name]))
    side.close()
    return list(talk.told())


def in_order(found: re.Match[str]) -> str:
    """A transaction's partitions are a set, which Kafka writes in the order of a hash table."""
    topics = [(each["topic"], sorted(each["partitionIds"])) for each in json.loads(found[0])]
    return json.dumps(sorted(topics))


@pytest.mark.parametrize("topic", DECODERS)
def test_the_same_records_are_written(by_kafka: Written, by_barnabas: Written, topic: str) -> None:
    assert by_barnabas.records[topic] == by_kafka.records[topic]


@pytest.mark.parametrize("writer", ["by_kafka", "by_barnabas"])
def test_a_directory_is_taken_over_and_goes_on(request: pytest.FixtureRequest, writer: str) -> None:
    """By the other broker, which ends what was left open; then the first has all of it."""
    left: Written = request.getfixturevalue(writer)
    kinds = [BrokerProcess, PeerBroker] if writer == "by_kafka" else [PeerBroker, BrokerProcess]
    known = left.known
    for kind in kinds:
        broker = kind(left.broker.directory, settings=AT_ONCE)
        broker.start()
        try:
            found = what_is_known(broker)
            assert found == known
            go_on(broker, left.living)
            known = what_is_known(broker)
        finally:
            broker.stop()


def go_on(broker: Broker, living: Living) -> None:
    """The members are still members; the transaction is committed, and another one is begun."""
    side = Side("reader", broker)
    talk = Talk(side)
    member, consumer = living.classic, living.consumer
    classic_beat = heartbeat(member.group, member.generation, member.member_id, "static")
    assert talk.ask(classic_beat).error_code == 0
    consumer_beat = beat(consumer.group, consumer.member_id, consumer.epoch, owned=consumer.owned)
    answer = talk.ask(consumer_beat)
    assert (answer.error_code, answer.member_epoch) == (0, consumer.epoch)
    ended = talk.ask_patiently(living.producer.end(True))
    assert ended.error_code == 0
    living.producer = living.producer.but(epoch=ended.producer_epoch)
    talk.ask_until(
        lambda: fetched(side, 9, OPEN, require_stable=True),
        9,
        lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
    )
    answer = talk.ask_patiently(living.producer.produce(PLAIN, 0), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0
    answer = talk.ask_patiently(living.producer.commit_offsets(OPEN, 9), 5)
    assert answer.topics[0].partitions[0].error_code == 0
    side.close()
