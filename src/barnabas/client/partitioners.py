"""The hashes by which partitioners choose, for those who want to know where a key goes."""

from zlib import crc32

from barnabas.client.producer import _partitioners


def murmur2(key: bytes, partition_count: int) -> int:
    """The partition that Java's producer, and ours, gives a key."""
    return _in(_partitioners.murmur2(key), partition_count)


def fnv1a(key: bytes, partition_count: int) -> int:
    """The partition that librdkafka's `fnv1a`, and Sarama, gives a key."""
    return _in(_partitioners.fnv1a(key), partition_count)


def consistent(key: bytes, partition_count: int) -> int:
    """The partition that librdkafka's `consistent` gives a key."""
    return _in(crc32(key), partition_count)


def _in(hashed: int, partition_count: int) -> int:
    if partition_count <= 0:
        raise ValueError("partition_count must be > 0")
    return hashed % partition_count
