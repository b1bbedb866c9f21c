"""The folders of partitions in the log directories: opened, created, renamed, measured, listed."""

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.log import Log, LogConfig, LogDirectory, LogDirFailure
from barnabas.log.segments.log_files import LOG
from barnabas.replication.log_dirs import LogDirs
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replication.partitions import Partitions

DELETED = "delete"
STRAY = "stray"
FUTURE = "future"
"""The suffixes of folders that are not, or not yet, the log of a partition."""

_MAX_NAME_BYTES = 255

_logger = logging.getLogger(__name__)


def open_log(
    disks: LogDirs, topic: str, index: int, topic_id: bytes, directory_id: bytes, config: LogConfig
) -> Log:
    """Opens the log of a partition, or creates it. `directory_id` is the metadata's."""
    directory = disks.find(topic, index, directory_id)
    if directory is not None:
        try:
            return directory.open_log(topic, index, topic_id, config)
        except KafkaError as error:
            if error.code is not ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
            # The topic was deleted and created again while this broker was down.
            mark_stray(directory, topic, index)
    return disks.select_for_new(directory_id).create_log(topic, index, topic_id, config)


def mark_stray(directory: LogDirectory, topic: str, index: int) -> None:
    """Renames a folder that belongs to no topic of the cluster, and keeps it."""
    renamed = _rename_away(directory, topic, index, STRAY)
    _logger.warning(
        "%s/%s-%d belongs to no topic of this cluster; renamed to %s, delete it by hand",
        directory.path,
        topic,
        index,
        renamed,
    )


def delete_folder(
    disks: LogDirs, topic: str, index: int, topic_id: bytes, delete_delay_ms: int
) -> LogDirectory | None:
    """Deletes the folder of a partition that was never opened; returns its log directory."""
    for directory in disks.online():
        is_here = Path(directory.path, f"{topic}-{index}").is_dir()
        if is_here and directory.topic_id_of(topic, index) in (topic_id, None):
            directory.schedule_delete(
                [_rename_away(directory, topic, index, DELETED)], delete_delay_ms
            )
            return directory
    return None


def list_names(directory: LogDirectory) -> list[str]:
    """Returns every name in a log directory."""
    with os.scandir(directory.path) as entries:
        return [entry.name for entry in entries]


def size_bytes(directory: LogDirectory, topic: str, index: int) -> int:
    """Returns the size of the segments of a partition that was never opened."""
    with os.scandir(f"{directory.path}/{topic}-{index}") as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(LOG))


def oldest_write_ms(directory: LogDirectory, topic: str, index: int) -> int | None:
    """Returns when the oldest segment with records was last written; None without records."""
    count, written_ms = segments_with_records(directory, topic, index)
    return written_ms if count else None


def segments_with_records(directory: LogDirectory, topic: str, index: int) -> tuple[int, int]:
    """Returns how many segments have records, and when the oldest of them was last written."""
    with os.scandir(f"{directory.path}/{topic}-{index}") as entries:
        files = [entry.stat() for entry in entries if entry.name.endswith(LOG)]
    written_ms = [file.st_mtime_ns // 1_000_000 for file in files if file.st_size]
    return len(written_ms), min(written_ms, default=-1)


def _rename_away(directory: LogDirectory, topic: str, index: int, suffix: str) -> str:
    """Renames a partition's folder by adding a suffix; returns its new path."""
    name = f"{topic}-{index}"
    ending = f".{uuid.random_uuid().hex()}-{suffix}"
    renamed = f"{directory.path}/{name[: _MAX_NAME_BYTES - len(ending)]}{ending}"
    try:
        Path(directory.path, name).rename(renamed)
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error
    directory.checkpoints.remove((topic, index))
    directory.cleaner_offsets.remove((topic, index))
    return renamed


class LogDirReplica(NamedTuple):
    """A log in a log directory; `is_future` while it is the copy of a move."""

    topic: str
    partition: int
    size_bytes: int
    lag: int
    is_future: bool


def list_replicas(
    directory: LogDirectory, partitions: "Partitions", requested: set[tuple[str, int]] | None
) -> Iterator[LogDirReplica]:
    """Yields the logs of `requested` partitions, or of all, for DescribeLogDirs.

    Each step may read a folder.
    """
    for topic, index in directory.partitions():
        if requested is not None and (topic, index) not in requested:
            continue
        partition = partitions.find_opened(topic, index)
        if partition is not None and partition.directory is directory:
            lag = max(partition.high_watermark - partition.log.log_end_offset, 0)
            yield LogDirReplica(topic, index, partition.log.size_bytes, lag, False)
        elif partition is None and partitions.image.topics.by_name(topic) is not None:
            with suppress(FileNotFoundError):  # deleted meanwhile
                yield LogDirReplica(topic, index, size_bytes(directory, topic, index), 0, False)
    for partition, move in list(partitions.replica_moves.in_progress.items()):
        key = (partition.topic, partition.index)
        if move.target is directory and (requested is None or key in requested):
            yield LogDirReplica(*key, move.future.size_bytes, move.lag, True)
