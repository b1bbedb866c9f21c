"""Records of a compacted topic: few keys, and tombstones."""

from random import Random

from tests.simulation.cluster.clients.producer import Producer

from barnabas.wire.records.record import Record

KEYS = 5
TOMBSTONE_CHANCE = 0.25


def as_keyed(record: Record, random: Random) -> Record:
    """Returns the record with a key, and sometimes without its value."""
    key = f"key-{random.randrange(KEYS)}".encode()
    value = None if random.random() < TOMBSTONE_CHANCE else record.value
    return record._replace(key=key, value=value)


class KeyedProducer(Producer):
    """A producer of a compacted topic."""

    def next_record(self) -> Record:
        return as_keyed(super().next_record(), self.random)
