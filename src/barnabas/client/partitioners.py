"""The partition of a key by each partitioner's hash, for users."""

from zlib import crc32

from barnabas.client.producer import _partitioners


def murmur2(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key in Java's producer, and in ours."""
    return _partition(_partitioners.murmur2(key), partition_count)


def fnv1a(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key with librdkafka's `fnv1a`, and in Sarama."""
    return _partition(_partitioners.fnv1a(key), partition_count)


def consistent(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key with librdkafka's `consistent`."""
    return _partition(crc32(key), partition_count)


def _partition(key_hash: int, partition_count: int) -> int:
    if partition_count <= 0:
        raise ValueError("partition_count must be > 0")
    return key_hash % partition_count
