"""Consume, process, produce under kills: each input is written once, and zombies are fenced.

BARNABAS_KILL_ROUNDS sets the number of rounds; BARNABAS_SEED repeats or varies the moments.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.group import Group
from tests.cluster.numbered_records import NumberedWriter, parse_number, read_numbers
from tests.cluster.processor_process import FENCED_STATUS, READY
from tests.cluster.test_groups_under_kills import SETTINGS, stop_until_removed
from tests.cluster.workers import Worker, Workers, shuffled
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker
from tests.wait import wait_until

PARTITIONS = 4
PROCESSORS = 2
ROUNDS = int(os.environ.get("BARNABAS_KILL_ROUNDS", "3"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
DEADLINE_S = 60


@pytest.fixture(
    params=[
        pytest.param(BrokerProcess, id="barnabas"),
        pytest.param(PeerBroker, id="kafka", marks=pytest.mark.peer),
    ]
)
def killable_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path / "broker", settings=SETTINGS)
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(300 + 30 * ROUNDS)
@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_each_input_is_written_once_while_processors_are_killed(
    killable_broker: Broker, protocol: str, tmp_path: Path
) -> None:
    moments = random.Random(f"{SEED} {protocol}")
    with Pipeline(killable_broker.bootstrap, protocol, tmp_path) as pipeline:
        for fault in shuffled(("kill", "supersede", "stall"), ROUNDS, moments):
            pipeline.wait_for_progress(moments)
            slot = moments.randrange(PROCESSORS)
            match fault:
                case "kill":
                    pipeline.workers.replace(slot)
                case "supersede":
                    pipeline.supersede(slot)
                case "stall":
                    stop_until_removed(pipeline.workers.slots[slot], slot, pipeline.group)
        pipeline.finish()
        ended = {worker.end() for worker in pipeline.workers.all()}
        assert ended <= {-signal.SIGKILL, FENCED_STATUS}, pipeline.workers.output()


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_each_input_is_written_once_while_the_broker_is_killed(
    killable_broker: Broker, tmp_path: Path
) -> None:
    """A processor can end when its transaction is lost; another one replaces it."""
    moments = random.Random(f"{SEED} broker")
    with Pipeline(killable_broker.bootstrap, "cooperative-sticky", tmp_path) as pipeline:
        for _ in range(ROUNDS):
            pipeline.wait_for_progress(moments)
            killable_broker.kill()
            if moments.random() < 0.3:
                pipeline.workers.replace(moments.randrange(PROCESSORS))
            killable_broker.start()
        pipeline.finish()


class Pipeline:
    """A writer of numbers, a group of processors, and the topic that they write to."""

    SOURCE = "numbers"
    TARGET = "results"

    def __init__(self, bootstrap: str, protocol: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        new = [NewTopic(name, PARTITIONS, 1) for name in (self.SOURCE, self.TARGET)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in admin.create_topics(new).values():
            created.result(DEADLINE_S)
        self.group = Group(bootstrap, self.SOURCE, self.SOURCE, PARTITIONS)
        self.group.commit_first_positions()
        self._writer = NumberedWriter(
            bootstrap, self.SOURCE, PARTITIONS, record_bytes=20, pause_s=0.005
        )
        self.workers = Workers(
            "tests.cluster.processor_process",
            [bootstrap, self.SOURCE, self.TARGET, protocol],
            PROCESSORS,
            directory,
        )

    def __enter__(self) -> "Pipeline":
        self._writer.start()
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure:
            print(self.workers.output())
        self.workers.end()
        self.group.close()
        self._writer.stop()

    def wait_for_progress(self, moments: random.Random) -> None:
        """Waits until some more numbers are processed."""
        goal = sum(self._committed().values()) + moments.randrange(1, 1_000)
        wait_until(
            lambda: sum(self._committed().values()) >= goal,
            f"{goal} numbers are processed",
            DEADLINE_S,
            poll_s=moments.uniform(0.01, 0.1),
        )

    def supersede(self, slot: int) -> None:
        """Stops a processor before it commits, starts another with its id, and expects fencing."""
        zombie = self.workers.slots[slot]
        wait_until_ready(zombie)
        zombie.stop()
        wait_until_ready(self.workers.supersede(slot))
        zombie.resume()
        assert zombie.wait(DEADLINE_S) == FENCED_STATUS, zombie.output()

    def finish(self) -> None:
        """Waits until all numbers are processed, and checks the results."""
        self._writer.stop()
        with open_consumer(self._bootstrap, committed=False) as consumer:
            ends = {
                index: consumer.get_watermark_offsets(
                    TopicPartition(self.SOURCE, index), timeout=DEADLINE_S
                )[1]
                for index in range(PARTITIONS)
            }
        wait_until(lambda: self._committed() == ends, "all is processed", DEADLINE_S)
        wait_until(
            lambda: not self._partitions_with_open_transactions(),
            "no transaction hangs",
            DEADLINE_S,
        )
        for partition in ends:
            numbers = read_numbers(self._bootstrap, self.SOURCE, partition)
            assert self._results(partition) == numbers, f"partition {partition}"

    def _committed(self) -> dict[int, int]:
        self.workers.restart_ended()
        return self.group.committed()

    def _partitions_with_open_transactions(self) -> list[int]:
        """Returns the partitions of the target with an open transaction."""
        with (
            open_consumer(self._bootstrap, committed=True) as committed,
            open_consumer(self._bootstrap, committed=False) as everything,
        ):
            topic_partitions = [TopicPartition(self.TARGET, index) for index in range(PARTITIONS)]
            return [
                topic_partition.partition
                for topic_partition in topic_partitions
                if committed.get_watermark_offsets(topic_partition, timeout=DEADLINE_S)
                != everything.get_watermark_offsets(topic_partition, timeout=DEADLINE_S)
            ]

    def _results(self, partition: int) -> list[int]:
        """Returns the committed numbers of a partition of the target."""
        numbers: list[int] = []
        deadline = time.monotonic() + DEADLINE_S
        with open_consumer(self._bootstrap, committed=True) as consumer:
            consumer.assign([TopicPartition(self.TARGET, partition, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(1_000, timeout=0.1):
                    if error := message.error():
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        return numbers
                    numbers.append(parse_number(message.value()))
        raise TimeoutError(f"{self.TARGET}-{partition} was not read in {DEADLINE_S} s")


@contextmanager
def open_consumer(bootstrap: str, *, committed: bool) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def wait_until_ready(worker: Worker) -> None:
    wait_until(lambda: worker.lines() == [[READY.strip()]], "it is ready", DEADLINE_S)
