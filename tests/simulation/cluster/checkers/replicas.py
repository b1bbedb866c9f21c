"""The promises of replication, seen from where one sees all replicas at once."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

from tests.simulation.cluster.checkers.records import Acknowledgements
from tests.simulation.cluster.happenings import Key
from tests.simulation.cluster.hosts import Host
from tests.simulation.events import Violation

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import Partition


class InSync:
    """Whoever is in sync by the metadata has everything that counts."""

    def __init__(self, hosts: dict[int, Host], acknowledgements: Acknowledgements) -> None:
        self._hosts = hosts
        self._acknowledgements = acknowledgements
        self._committed: dict[Key, int] = defaultdict(int)
        self._newest = -1

    def look(self, _: Host, delta: MetadataDelta, image: MetadataImage) -> None:
        """A change of the metadata; the first who learns of it is enough."""
        if image.offset <= self._newest:
            return
        self._newest = image.offset
        for key, state in delta.partitions_changed.items():
            self._note(key)
            self._check(key, state, image)

    def look_around(self, image: MetadataImage) -> None:
        """All partitions, now and then."""
        for topic in image.topics:
            for index, state in topic.partitions.items():
                self._note((topic.topic_id, index))
                self._check((topic.topic_id, index), state, image)

    def _note(self, key: Key) -> None:
        known = max(self._committed[key], self._acknowledgements.committed[key])
        for host in self._hosts.values():
            partition = host.partition(*key)
            if partition is not None and partition.is_leader:
                known = max(known, partition.high_watermark)
        self._committed[key] = known

    def _check(self, key: Key, state: PartitionRegistration, image: MetadataImage) -> None:
        for broker_id in state.isr:
            host, broker = self._hosts[broker_id], image.brokers.get(broker_id)
            partition = host.partition(*key)
            if partition is None or broker is None or host.broker_epoch != broker.epoch:
                continue  # nobody counts on it before it has fetched
            if partition.log.log_end_offset < self._committed[key]:
                raise Violation(
                    f"{host.name} is in sync in {partition.topic}-{key[1]} and ends at "
                    f"{partition.log.log_end_offset}, but up to {self._committed[key]} it counts"
                )


class EqualLogs:
    """Replicas are the same up to the high watermark, byte for byte."""

    def __init__(self, hosts: dict[int, Host]) -> None:
        self._hosts = hosts

    def look_around(self, image: MetadataImage) -> None:
        for topic in image.topics:
            for index in topic.partitions:
                replicas = [
                    (host.name, partition)
                    for host in self._hosts.values()
                    if (partition := host.partition(topic.topic_id, index)) is not None
                ]
                self._compare(replicas)

    def _compare(self, replicas: list[tuple[str, Partition]]) -> None:
        contents = [
            (content_of(partition, partition.high_watermark), name, partition)
            for name, partition in replicas
        ]
        contents.sort(key=lambda each: len(each[0]))
        for (content, name, partition), (longer, other, _) in pairwise(contents):
            if not longer.startswith(content):
                raise Violation(
                    f"{name} and {other} differ below the high watermark of "
                    f"{partition.topic}-{partition.index}"
                )


def content_of(partition: Partition, upto: int) -> bytes:
    """The bytes of a replica's log below an offset."""
    log: Any = partition.log
    found = b""
    offset = log.log_start_offset
    while offset < upto:
        records = log.read(offset, 1 << 20, upto=upto)
        if records is None:
            break
        found += records.read()
        offset = records.next_offset
    return found
