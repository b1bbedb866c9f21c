"""The replicas in a log directory, for DescribeLogDirs."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from barnabas.log import LogDirectory
from barnabas.replication import partition_folders
from barnabas.replication.partitions import Partitions


class LogDirReplica(NamedTuple):
    """A log in a log directory; `is_future` while it is the copy of a move."""

    topic: str
    partition: int
    size_bytes: int
    lag: int
    is_future: bool


def list_replicas(
    directory: LogDirectory, partitions: Partitions, requested: set[tuple[str, int]] | None
) -> Iterator[LogDirReplica]:
    """Yields the logs of `requested` partitions, or of all. Each step may read a folder."""
    for topic, index in directory.partitions():
        if requested is not None and (topic, index) not in requested:
            continue
        partition = partitions.find_opened(topic, index)
        if partition is not None and partition.directory is directory:
            lag = max(partition.high_watermark - partition.log.log_end_offset, 0)
            yield LogDirReplica(topic, index, partition.log.size_bytes, lag, False)
        elif partition is None and partitions.image.topics.by_name(topic) is not None:
            with suppress(FileNotFoundError):  # deleted meanwhile
                yield LogDirReplica(
                    topic, index, partition_folders.size_bytes(directory, topic, index), 0, False
                )
    for partition, move in list(partitions.replica_moves.in_progress.items()):
        key = (partition.topic, partition.index)
        if move.target is directory and (requested is None or key in requested):
            yield LogDirReplica(*key, move.future.size_bytes, move.lag, True)
