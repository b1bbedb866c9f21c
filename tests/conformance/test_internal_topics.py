"""`__consumer_offsets` and `__transaction_state`: both brokers write the same records, and each
continues on the files of the other.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, run_peer
from tests.conformance.side_by_side.conftest import PLAIN, wait_until_ready
from tests.conformance.side_by_side.consumers import consumer_heartbeat
from tests.conformance.side_by_side.dialog import Dialog
from tests.conformance.side_by_side.groups import heartbeat
from tests.conformance.side_by_side.offsets import fetch_offsets
from tests.conformance.side_by_side.sides import Side
from tests.conformance.workload import OPEN, ActiveClients, run_workload

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
GROUPS = ["plain", "came-and-went", "consumers", "patterns", "left", "transactional", "classic"]
GROUPS += ["deleted", "gone", OPEN]


@dataclass(slots=True)
class Written:
    """A broker after a clean shutdown, and its state and records before."""

    broker: Broker
    clients: ActiveClients
    described: list[tuple[str, Any]]
    records: dict[str, list[str]]


@pytest.fixture(scope="module")
def kafka_state(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return run_and_dump(PeerBroker(tmp_path_factory.mktemp("by-kafka"), settings=SETTINGS))


@pytest.fixture(scope="module")
def barnabas_state(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return run_and_dump(BrokerProcess(tmp_path_factory.mktemp("by-barnabas"), settings=SETTINGS))


def run_and_dump(broker: Broker) -> Written:
    broker.start()
    try:
        dialog = Dialog(Side("writer", broker))
        clients = run_workload(dialog)
        described = describe_state(broker)
        dialog.close()
    finally:
        broker.stop()
    records = {topic: dump_topic(broker.data, topic) for topic in DECODERS}
    return Written(broker, clients, described, records)


VARIABLE_PARTS = [
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
"""Parts that differ between any two clusters: times, checksums, ids and their hashes; and the
number of writes in a batch, which depends on timing in Kafka.
"""


def dump_topic(data: Path, topic: str) -> list[str]:
    """Returns the output of kafka-dump-log for a topic without the variable parts."""
    logs = sorted(log for log in data.glob(f"{topic}-*/*.log") if log.stat().st_size)
    files = ",".join(map(str, logs))
    printed = run_peer("tool", "dump-log", DECODERS[topic], "--files", files)
    for pattern, alias in VARIABLE_PARTS:
        printed = re.sub(pattern, alias, printed, flags=re.MULTILINE)
    printed = re.sub(r'(?<="transactionPartitions":)\[{.*}\](?=,)', sort_partitions, printed)
    lines = printed.splitlines()
    return [line for line in lines if "isTransactional: false" not in line]


def describe_state(broker: Broker) -> list[tuple[str, Any]]:
    """Returns descriptions of all groups, members, offsets and transactions."""
    side = Side("reader", broker)
    wait_until_ready(side)
    dialog = Dialog(side)
    dialog.send(ListGroupsRequest())
    dialog.send(DescribeGroupsRequest(groups=GROUPS))
    dialog.send(ConsumerGroupDescribeRequest(group_ids=GROUPS))
    for stable in False, True:
        dialog.send(fetch_offsets(side, 9, *GROUPS, topics=None, require_stable=stable), 9)
    for name in "second-version", "first-version", OPEN:
        dialog.send_with_retries(DescribeTransactionsRequest(transactional_ids=[name]))
    side.close()
    return list(dialog.comparable_responses())


def sort_partitions(now: re.Match[str]) -> str:
    """Sorts the partitions of a transaction, which Kafka writes in the order of a hash table."""
    topics = [(load["topic"], sorted(load["partitionIds"])) for load in json.loads(now[0])]
    return json.dumps(sorted(topics))


@pytest.mark.parametrize("topic", DECODERS)
def test_both_brokers_write_the_same_records(
    kafka_state: Written, barnabas_state: Written, topic: str
) -> None:
    assert barnabas_state.records[topic] == kafka_state.records[topic]


@pytest.mark.parametrize("writer", ["kafka_state", "barnabas_state"])
def test_a_broker_continues_on_the_directory_of_the_other(
    request: pytest.FixtureRequest, writer: str
) -> None:
    """The other broker ends the open transaction; the first broker then has the same state."""
    state: Written = request.getfixturevalue(writer)
    kinds = [BrokerProcess, PeerBroker] if writer == "kafka_state" else [PeerBroker, BrokerProcess]
    described = state.described
    for kind in kinds:
        broker = kind(state.broker.directory, settings=SETTINGS)
        broker.start()
        try:
            now = describe_state(broker)
            assert now == described
            continue_workload(broker, state.clients)
            described = describe_state(broker)
        finally:
            broker.stop()


def continue_workload(broker: Broker, clients: ActiveClients) -> None:
    """Sends heartbeats of the members, commits the transaction, and begins another one."""
    side = Side("reader", broker)
    dialog = Dialog(side)
    member, consumer = clients.classic, clients.consumer
    classic_beat = heartbeat(member.group, member.generation, member.member_id, "static")
    assert dialog.send(classic_beat).error_code == 0
    consumer_beat = consumer_heartbeat(
        consumer.group, consumer.member_id, consumer.epoch, owned=consumer.owned
    )
    response = dialog.send(consumer_beat)
    assert (response.error_code, response.member_epoch) == (0, consumer.epoch)
    ended = dialog.send_with_retries(clients.producer.end(True))
    assert ended.error_code == 0
    clients.producer = clients.producer.with_changes(epoch=ended.producer_epoch)
    dialog.send_until(
        lambda: fetch_offsets(side, 9, OPEN, require_stable=True),
        9,
        lambda response: response.groups[0].topics[0].partitions[0].error_code == 0,
    )
    response = dialog.send_with_retries(clients.producer.produce(PLAIN, 0), 12)
    assert response.responses[0].partition_responses[0].error_code == 0
    response = dialog.send_with_retries(clients.producer.commit_offsets(OPEN, 9), 5)
    assert response.topics[0].partitions[0].error_code == 0
    side.close()
