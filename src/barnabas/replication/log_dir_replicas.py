"""What lies in a log directory, as DescribeLogDirs tells it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from barnabas.log import LogDirectory
from barnabas.replication import partition_folders
from barnabas.replication.partitions import Partitions


class Holding(NamedTuple):
    """A log in a directory; a future one is on its way to being the partition's."""

    topic: str
    partition: int
    size_bytes: int
    lag: int
    is_future: bool


def holdings_of(
    directory: LogDirectory, partitions: Partitions, wanted: set[tuple[str, int]] | None
) -> Iterator[Holding]:
    """The logs of `wanted` partitions, or of all; one a step, as each may cost a look at disk."""
    for topic, index in directory.partitions():
        if wanted is not None and (topic, index) not in wanted:
            continue
        partition = partitions.find_live(topic, index)
        if partition is not None and partition.directory is directory:
            lag = max(partition.high_watermark - partition.log.end_offset, 0)
            yield Holding(topic, index, partition.log.size_bytes, lag, False)
        elif partition is None and partitions.image.topics.by_name(topic) is not None:
            with suppress(FileNotFoundError):  # deleted meanwhile
                yield Holding(topic, index, partition_folders.size_bytes(directory, topic, index), 0, False)
    for partition, move in list(partitions.moves.under_way.items()):
        key = (partition.topic, partition.index)
        if move.target is directory and (wanted is None or key in wanted):
            yield Holding(*key, move.future.size_bytes, move.lag, True)
