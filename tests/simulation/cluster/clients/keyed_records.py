"""Records of a compacted topic: few keys, and tombstones."""

from random import Random
from typing import Any

from tests.simulation.cluster.clients.producer import Producer
from tests.simulation.cluster.events import PartitionKey

from barnabas.wire.records.record import Record

TOMBSTONE_CHANCE = 0.25


def as_keyed(record: Record, random: Random, keys: int) -> Record:
    """Returns the record with one of so many keys, and sometimes without its value."""
    key = f"key-{random.randrange(keys)}".encode()
    value = None if random.random() < TOMBSTONE_CHANCE else record.value
    return record._replace(key=key, value=value)


class KeyedProducer(Producer):
    """A producer of a compacted topic."""

    def __init__(self, world: Any, name: str, key: PartitionKey, keys: int) -> None:
        super().__init__(world, name, key, idempotent=True)
        self._keys = keys

    def next_record(self) -> Record:
        return as_keyed(super().next_record(), self.random, self._keys)
