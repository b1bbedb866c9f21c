"""The promises of replication, checked on all replicas at once."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.simulation.cluster.checkers.records import Acknowledgements
from tests.simulation.cluster.events import PartitionKey, Truncated
from tests.simulation.cluster.host import Host
from tests.simulation.world.events import Violation

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import Partition


class InSyncReplicas:
    """Every replica in the ISR has all committed records.

    It is checked when the ISR changes, when a replica truncates its log, and now and then.
    """

    def __init__(
        self,
        hosts: dict[int, Host],
        newest_image: Callable[[], MetadataImage],
        acknowledgements: Acknowledgements,
    ) -> None:
        self._hosts = hosts
        self._newest_image = newest_image
        self._acknowledgements = acknowledgements
        self._committed: dict[PartitionKey, int] = defaultdict(int)
        self._newest = -1

    def on_image(self, _: Host, delta: MetadataDelta, image: MetadataImage) -> None:
        """Checks a change of the metadata once, when the first node has it."""
        if image.offset <= self._newest:
            return
        self._newest = image.offset
        for key, state in delta.partitions_changed.items():
            self._update_committed(key)
            self._check(key, state, image)

    def on_event(self, event: Any, _: int) -> None:
        if not isinstance(event, Truncated):
            return
        image = self._newest_image()
        key = (event.topic_id, event.index)
        topic = image.topics.by_id(event.topic_id)
        if topic is not None and event.index in topic.partitions:
            self._update_committed(key)
            self._check(key, topic.partitions[event.index], image)

    def check_all(self) -> None:
        """Checks all partitions."""
        image = self._newest_image()
        for topic in image.topics:
            for index, state in topic.partitions.items():
                self._update_committed((topic.topic_id, index))
                self._check((topic.topic_id, index), state, image)

    def _update_committed(self, key: PartitionKey) -> None:
        committed = max(self._committed[key], self._acknowledgements.committed[key])
        for host in self._hosts.values():
            partition = host.partition(*key)
            if partition is not None and partition.is_leader:
                committed = max(committed, partition.high_watermark)
        self._committed[key] = committed

    def _check(self, key: PartitionKey, state: PartitionRegistration, image: MetadataImage) -> None:
        for broker_id in state.isr:
            host, broker = self._hosts[broker_id], image.brokers.get(broker_id)
            partition = host.partition(*key)
            if partition is None or broker is None or host.broker_epoch != broker.epoch:
                continue  # it is not caught up before it has fetched
            if partition.log.log_end_offset < self._committed[key]:
                raise Violation(
                    f"{host.name} is in sync in {partition.topic}-{key[1]} and ends at "
                    f"{partition.log.log_end_offset}, but {self._committed[key]} is committed"
                )


class EqualLogs:
    """Replicas are equal up to the high watermark, byte by byte."""

    def __init__(self, hosts: dict[int, Host]) -> None:
        self._hosts = hosts

    def check(self, key: PartitionKey) -> None:
        self._compare(
            [
                (host.name, partition)
                for host in self._hosts.values()
                if (partition := host.partition(*key)) is not None
            ]
        )

    def _compare(self, replicas: list[tuple[str, Partition]]) -> None:
        contents = [
            (content_of(partition, partition.high_watermark), name, partition)
            for name, partition in replicas
        ]
        contents.sort(key=lambda entry: len(entry[0]))
        for (content, name, partition), (longer, other, _) in pairwise(contents):
            if not longer.startswith(content):
                raise Violation(
                    f"{name} and {other} differ below the high watermark of "
                    f"{partition.topic}-{partition.index}"
                )


def content_of(partition: Partition, upto: int, *, start: int | None = None) -> bytes:
    """Returns the bytes of the log of a replica below an offset, from another one on."""
    log: Any = partition.log
    content = b""
    offset = log.log_start_offset if start is None else start
    while offset < upto:
        records = log.read(offset, 1 << 20, upto=upto)
        if records is None:
            break
        content += records.read()
        offset = records.next_offset
    return content
