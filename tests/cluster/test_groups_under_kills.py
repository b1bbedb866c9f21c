"""Members are killed and stopped under load: all records are processed, offsets never decrease.

BARNABAS_KILL_ROUNDS sets the number of rounds; BARNABAS_SEED repeats or varies the moments.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.group import Group
from tests.cluster.member_process import SESSION_MS
from tests.cluster.numbered_records import NumberedWriter
from tests.cluster.workers import Worker, Workers, shuffled
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker
from tests.wait import wait_until

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
def stable_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path_factory.mktemp("calm"), settings=SETTINGS)
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.timeout(300 + 30 * ROUNDS)
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_every_record_is_processed_while_members_are_killed(
    stable_broker: Broker, protocol: str, tmp_path: Path
) -> None:
    bootstrap, topic = stable_broker.bootstrap, f"work-{protocol}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    group = Group(bootstrap, topic, topic, PARTITIONS)
    group.commit_first_positions()
    workers = Workers(
        "tests.cluster.member_process",
        [bootstrap, topic, topic, protocol],
        MEMBERS,
        tmp_path,
    )
    writer = NumberedWriter(bootstrap, topic, PARTITIONS, record_bytes=20, pause_s=0.005)
    writer.start()
    try:
        inject_faults(group, workers, random.Random(f"{SEED} {protocol}"))
        writer.stop()
        written = {
            (partition, offset): number
            for partition, numbers in writer.acknowledged.numbers.items()
            for offset, number in numbers.items()
        }
        wait_until(lambda: processed(workers) == written, "every record is processed", poll_s=0.1)
        wait_until(lambda: group.is_stable(MEMBERS), "every partition has one owner again")
        ends = {
            partition: len(numbers) for partition, numbers in writer.acknowledged.numbers.items()
        }
        wait_until(lambda: group.committed() == ends, "every position is committed")
    except BaseException:
        print(workers.output())
        raise
    finally:
        workers.end()
        writer.stop()
    for partition, offsets in group.history().items():
        assert offsets == sorted(offsets), f"the position in {topic}-{partition} moved back"
    group.close()


def inject_faults(group: Group, workers: Workers, moments: random.Random) -> None:
    """Kills members, or stops them until the group has removed them."""
    for fault in shuffled(("kill", "stall", "kill"), ROUNDS, moments):
        goal = len(processed(workers)) + moments.randrange(1, 500)
        wait_until(
            lambda goal=goal: len(processed(workers)) >= goal,
            f"{goal} records are processed",
            poll_s=moments.uniform(0.01, 0.1),
        )
        slot = moments.randrange(MEMBERS)
        if fault == "kill":
            workers.replace(slot)
        else:
            stop_until_removed(workers.slots[slot], slot, group)


def stop_until_removed(worker: Worker, slot: int, group: Group) -> None:
    """Stops a member until the group has removed it, and resumes it."""
    wait_until(worker.lines, f"{slot} has begun to work")
    worker.stop()
    wait_until(lambda: slot not in group.members(), f"{slot} is removed")
    worker.resume()


def processed(workers: Workers) -> dict[tuple[int, int], int]:
    """Returns the processed numbers by partition and offset."""
    return {
        (int(partition), int(offset)): int(number)
        for worker in workers.all()
        for partition, offset, number, *_ in worker.lines()
    }
