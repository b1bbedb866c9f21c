"""What must be true at the end of a run: each function yields the violations."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.connect.chaos.connectors import LINES, PARTITIONS, ROWS

from barnabas import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from barnabas.admin import (
    AdminClient,
    OffsetSpec,
    TransactionState,
)

EXAMPLES = 8
_REQUEST_TIMEOUT_S = 20.0
_OPEN = [
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
]


class Inspector:
    """Reads topics, offsets and transactions."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._conf = {"bootstrap.servers": bootstrap_servers}

    def numbers(self, topic: str) -> list[list[int]]:
        """Returns the numbers of all committed records by partition, in order."""
        found: list[list[int]] = [[] for _ in range(PARTITIONS)]
        conf = {
            **self._conf,
            "group.id": "inspector",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        with Consumer(conf) as consumer:
            consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
            at_end: set[int] = set()
            while len(at_end) < PARTITIONS:
                message = consumer.poll(_REQUEST_TIMEOUT_S)
                assert message is not None, f"the end of {topic} cannot be read"
                partition = message.partition()
                if message.error() is not None:
                    at_end.add(partition)
                    continue
                found[partition].append(number_of(json.loads(message.value())["payload"]))
        return found

    def lag(self, group: str, topics: Sequence[str]) -> int | None:
        """Returns how many offsets a group is behind; None if it has not committed any."""
        partitions = [TopicPartition(topic, n) for topic in topics for n in range(PARTITIONS)]
        with AdminClient(self._conf) as admin:
            request = [ConsumerGroupTopicPartitions(group, partitions)]
            offsets = admin.list_consumer_group_offsets(
                request, request_timeout=_REQUEST_TIMEOUT_S
            )[group].result()
            ends = admin.list_offsets(
                dict.fromkeys(partitions, OffsetSpec.latest()),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_REQUEST_TIMEOUT_S,
            )
            end = sum(future.result().offset for future in ends.values())
        committed = [each.offset for each in offsets.topic_partitions or ()]
        return None if max(committed, default=-1) < 0 else end - sum(max(0, n) for n in committed)

    def open_transactions(self) -> list[str]:
        with AdminClient(self._conf) as admin:
            listed = admin.list_transactions(
                states=_OPEN, request_timeout=_REQUEST_TIMEOUT_S
            ).result(_REQUEST_TIMEOUT_S)
            return [
                f"{each.transactional_id} is {each.state.name}"
                for listings in listed.all().values()
                for each in listings
            ]


def number_of(payload: Mapping[str, int] | str) -> int:
    """Of a row, or of a line such as `line 7`."""
    if isinstance(payload, str):
        return int(payload.removeprefix("line "))
    return payload["id"]


def find_lost_and_repeated(what: str, numbers: Sequence[int], count: int) -> Iterator[str]:
    """Each number up to `count` is there once."""
    counts = Counter(numbers)
    expected = set(range(count))
    if missing := sorted(expected - counts.keys()):
        yield f"{what}: {len(missing)} of {count} are missing: {missing[:EXAMPLES]}"
    if repeated := sorted(number for number, times in counts.items() if times > 1):
        times = max(counts.values())
        yield f"{what}: {len(repeated)} are there up to {times} times: {repeated[:EXAMPLES]}"
    if unknown := sorted(counts.keys() - expected):
        yield f"{what}: {len(unknown)} were never written: {unknown[:EXAMPLES]}"


def find_wrong_order(topic: str, partitions: Sequence[Sequence[int]]) -> Iterator[str]:
    """The rows of a partition are in the order of the source."""
    for index, numbers in enumerate(partitions):
        if list(numbers) != sorted(numbers):
            at = next(i for i in range(1, len(numbers)) if numbers[i] < numbers[i - 1])
            yield f"{topic}-{index}: {numbers[at]} comes after {numbers[at - 1]}"


def file_numbers(directory: Path) -> dict[str, list[int]]:
    """Returns the numbers in all files of the object store sink, by topic."""
    found: dict[str, list[int]] = {ROWS: [], LINES: []}
    for topic, numbers in found.items():
        for file in (directory / "topics" / topic).rglob("*.json"):
            numbers.extend(number_of(json.loads(line)) for line in file.read_text().splitlines())
    return found


def find_pending_files(directory: Path) -> Iterator[str]:
    """Nothing waits for a decision any more."""
    for file in directory.rglob("_barnabas/pending/**/*.json"):
        yield f"files are still pending: {file.relative_to(directory)}"
