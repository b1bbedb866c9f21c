"""Read, process, write under kills: each input comes out exactly once, and zombies are fenced.

BARNABAS_KILL_ROUNDS asks for more rounds than the few of `make test`; BARNABAS_SEED repeats or
varies the moments.
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
from tests.cluster.numbered import NumberedWriter, number_in, read_numbers
from tests.cluster.processor_process import FENCED_STATUS, READY
from tests.cluster.test_groups_under_kills import SETTINGS, stall
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
def mortal_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker: Broker = request.param(tmp_path / "broker", settings=SETTINGS)
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(300 + 30 * ROUNDS)
@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_each_input_comes_out_once_while_processors_are_killed(
    mortal_broker: Broker, protocol: str, tmp_path: Path
) -> None:
    moments = random.Random(f"{SEED} {protocol}")
    with Pipeline(mortal_broker.bootstrap, protocol, tmp_path) as pipeline:
        for happening in shuffled(("kill", "supersede", "stall"), ROUNDS, moments):
            pipeline.move_on(moments)
            slot = moments.randrange(PROCESSORS)
            match happening:
                case "kill":
                    pipeline.workers.replace(slot)
                case "supersede":
                    pipeline.supersede(slot)
                case "stall":
                    stall(pipeline.workers.slots[slot], slot, pipeline.group)
        pipeline.finish()
        ended = {worker.end() for worker in pipeline.workers.all()}
        assert ended <= {-signal.SIGKILL, FENCED_STATUS}, pipeline.workers.said()


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_each_input_comes_out_once_while_the_broker_is_killed(
    mortal_broker: Broker, tmp_path: Path
) -> None:
    """A processor whose transaction does not survive that may end; another takes its place."""
    moments = random.Random(f"{SEED} broker")
    with Pipeline(mortal_broker.bootstrap, "cooperative-sticky", tmp_path) as pipeline:
        for _ in range(ROUNDS):
            pipeline.move_on(moments)
            mortal_broker.kill()
            if moments.random() < 0.3:
                pipeline.workers.replace(moments.randrange(PROCESSORS))
            mortal_broker.start()
        pipeline.finish()


class Pipeline:
    """A writer of numbers, a topic, processors in a group, and the topic they write to."""

    SOURCE = "numbers"
    TARGET = "results"

    def __init__(self, bootstrap: str, protocol: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        new = [NewTopic(name, PARTITIONS, 1) for name in (self.SOURCE, self.TARGET)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in admin.create_topics(new).values():
            created.result(DEADLINE_S)
        self.group = Group(bootstrap, self.SOURCE, self.SOURCE, PARTITIONS)
        self.group.commit_beginnings()
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
            print(self.workers.said())
        self.workers.end()
        self.group.close()
        self._writer.stop()

    def move_on(self, moments: random.Random) -> None:
        """Let some more numbers come out, and then a moment pass."""
        goal = sum(self._committed().values()) + moments.randrange(1, 1_000)
        wait_until(
            lambda: sum(self._committed().values()) >= goal,
            f"{goal} numbers have come out",
            DEADLINE_S,
            poll_s=moments.uniform(0.01, 0.1),
        )

    def supersede(self, slot: int) -> None:
        """Stop a processor before it commits, let another take its name, and see it fenced."""
        zombie = self.workers.slots[slot]
        is_ready(zombie)
        zombie.stop()
        is_ready(self.workers.supersede(slot))
        zombie.go_on()
        assert zombie.wait(DEADLINE_S) == FENCED_STATUS, zombie.said()

    def finish(self) -> None:
        """Process what is left, and check what came out."""
        self._writer.stop()
        with reading(self._bootstrap, committed=False) as consumer:
            ends = {
                each: consumer.get_watermark_offsets(
                    TopicPartition(self.SOURCE, each), timeout=DEADLINE_S
                )[1]
                for each in range(PARTITIONS)
            }
        wait_until(lambda: self._committed() == ends, "all is processed", DEADLINE_S)
        wait_until(lambda: not self._open(), "no transaction hangs", DEADLINE_S)
        for partition in ends:
            given = read_numbers(self._bootstrap, self.SOURCE, partition)
            assert self._results(partition) == given, f"partition {partition}"

    def _committed(self) -> dict[int, int]:
        self.workers.revive()
        return self.group.committed()

    def _open(self) -> list[int]:
        """The partitions of the target where a transaction has not ended."""
        with (
            reading(self._bootstrap, committed=True) as committed,
            reading(self._bootstrap, committed=False) as everything,
        ):
            places = [TopicPartition(self.TARGET, each) for each in range(PARTITIONS)]
            return [
                place.partition
                for place in places
                if committed.get_watermark_offsets(place, timeout=DEADLINE_S)
                != everything.get_watermark_offsets(place, timeout=DEADLINE_S)
            ]

    def _results(self, partition: int) -> list[int]:
        """The numbers that were committed to a partition of the target."""
        numbers: list[int] = []
        deadline = time.monotonic() + DEADLINE_S
        with reading(self._bootstrap, committed=True) as consumer:
            consumer.assign([TopicPartition(self.TARGET, partition, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(1_000, timeout=0.1):
                    if error := message.error():
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        return numbers
                    numbers.append(number_in(message.value()))
        raise TimeoutError(f"{self.TARGET}-{partition} was not read in {DEADLINE_S} s")


@contextmanager
def reading(bootstrap: str, *, committed: bool) -> Iterator[Consumer]:
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


def is_ready(worker: Worker) -> None:
    wait_until(lambda: worker.lines() == [[READY.strip()]], "it is ready", DEADLINE_S)
