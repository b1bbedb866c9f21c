"""Members are killed and stopped under load: no record is left out, no position moves back.

BARNABAS_KILL_ROUNDS asks for more rounds than the few of `make test`; BARNABAS_SEED repeats or
varies the moments.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, NewTopic
from tests.cluster.commits import commit_beginnings, commit_history
from tests.cluster.member_process import SESSION_MS
from tests.cluster.numbered import NumberedWriter
from tests.cluster.workers import Workers
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, wait_until

PARTITIONS = 6
MEMBERS = 3
ROUNDS = int(os.environ.get("BARNABAS_KILL_ROUNDS", "3"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(BrokerProcess, id="barnabas"),
        pytest.param(PeerBroker, id="kafka", marks=pytest.mark.peer),
    ],
)
def calm_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path_factory.mktemp("calm"), settings=SETTINGS)
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.timeout(60 + 30 * ROUNDS)
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_every_record_is_processed_while_members_are_killed(
    calm_broker: Broker, protocol: str, tmp_path: Path
) -> None:
    bootstrap, topic = calm_broker.bootstrap, f"work-{protocol}"
    group = Group(bootstrap, topic)
    workers = Workers(
        "tests.cluster.member_process",
        [bootstrap, topic, topic, protocol],
        MEMBERS,
        tmp_path,
    )
    writer = NumberedWriter(bootstrap, topic, PARTITIONS, record_bytes=20, pause_s=0.005)
    writer.start()
    try:
        disturb(group, workers, random.Random(f"{SEED} {protocol}"))
        writer.stop()
        written = {
            (partition, offset): number
            for partition, numbers in writer.acknowledged.numbers.items()
            for offset, number in numbers.items()
        }
        wait_until(lambda: processed(workers) == written, "every record is processed", step_s=0.1)
        wait_until(group.is_stable, "every partition has one owner again")
        ends = {partition: len(each) for partition, each in writer.acknowledged.numbers.items()}
        wait_until(lambda: group.committed() == ends, "every position is committed")
    except BaseException:
        print(workers.said())
        raise
    finally:
        workers.end()
        writer.stop()
    for partition, offsets in commit_history(bootstrap, topic, topic).items():
        assert offsets == sorted(offsets), f"the position in {topic}-{partition} moved back"


def disturb(group: "Group", workers: Workers, moments: random.Random) -> None:
    """Kill members, or stop them until the group has given them up, and let the work go on."""
    for _ in range(ROUNDS):
        goal = len(processed(workers)) + moments.randrange(1, 500)
        wait_until(
            lambda goal=goal: len(processed(workers)) >= goal,
            f"{goal} records are processed",
            step_s=moments.uniform(0.01, 0.1),
        )
        slot = moments.randrange(MEMBERS)
        if moments.random() < 0.6:
            workers.replace(slot)
        else:
            workers.slots[slot].stop()
            wait_until(lambda slot=slot: slot not in group.members(), "it is given up")
            workers.slots[slot].go_on()


def processed(workers: Workers) -> dict[tuple[int, int], int]:
    """By partition and offset, the number that was read there."""
    return {
        (int(partition), int(offset)): int(number)
        for worker in workers.all()
        for partition, offset, number, *_ in worker.lines()
    }


class Group:
    """The group and its topic as an administrator sees them."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._name = name
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        commit_beginnings(bootstrap, name, name, PARTITIONS)

    def members(self) -> set[int]:
        return {int(each.client_id) for each in self._described().members}

    def is_stable(self) -> bool:
        described = self._described()
        owned = [
            place.partition
            for each in described.members
            for place in each.assignment.topic_partitions
        ]
        return (
            described.state == ConsumerGroupState.STABLE
            and len(described.members) == MEMBERS
            and sorted(owned) == list(range(PARTITIONS))
        )

    def committed(self) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(self._name)]
        (answer,) = self._admin.list_consumer_group_offsets(asked).values()
        return {each.partition: each.offset for each in answer.result(30).topic_partitions}

    def _described(self) -> ConsumerGroupDescription:
        (described,) = self._admin.describe_consumer_groups([self._name]).values()
        return described.result(30)
