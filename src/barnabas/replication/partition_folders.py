"""The folders of partitions: opened, made, renamed away."""

import logging
import os
from pathlib import Path

from barnabas.log import Log, LogConfig, LogDirectory, LogDirFailure
from barnabas.log.segments.log_files import LOG
from barnabas.replication.log_dirs import Disks
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode, KafkaError

DELETED = "delete"
STRAY = "stray"
FUTURE = "future"
"""What a folder's name ends in when it is not, or not yet, a partition that is served."""

_MAX_NAME_BYTES = 255

_logger = logging.getLogger(__name__)


def open_log(
    disks: Disks, topic: str, index: int, topic_id: bytes, directory_id: bytes, config: LogConfig
) -> Log:
    """The log of a partition, made if there is none; `directory_id` is the metadata's word."""
    directory = disks.holding(topic, index, directory_id)
    if directory is not None:
        try:
            return directory.open_log(topic, index, topic_id, config)
        except KafkaError as refusal:
            if refusal.code is not ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
            # The topic was deleted and made again while this broker was away.
            disown(directory, topic, index)
    return disks.place(directory_id).create_log(topic, index, topic_id, config)


def disown(directory: LogDirectory, topic: str, index: int) -> None:
    """Keep a folder that belongs to no topic of the cluster, out of the way."""
    renamed = _set_aside(directory, topic, index, STRAY)
    _logger.warning(
        "%s/%s-%d belongs to no topic of this cluster; renamed to %s, to be deleted by hand",
        directory.path,
        topic,
        index,
        renamed,
    )


def delete(
    disks: Disks, topic: str, index: int, topic_id: bytes, delete_delay_ms: int
) -> LogDirectory | None:
    """Remove a partition that nobody has opened; the directory it was in."""
    for directory in disks.working():
        is_here = Path(directory.path, f"{topic}-{index}").is_dir()
        if is_here and directory.topic_id_of(topic, index) in (topic_id, None):
            directory.doom([_set_aside(directory, topic, index, DELETED)], delete_delay_ms)
            return directory
    return None


def names_in(directory: LogDirectory) -> list[str]:
    """Everything in a log directory, partition or not."""
    with os.scandir(directory.path) as entries:
        return [entry.name for entry in entries]


def size_bytes(directory: LogDirectory, topic: str, index: int) -> int:
    """What a partition that nobody has opened takes in its segments."""
    with os.scandir(f"{directory.path}/{topic}-{index}") as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(LOG))


def oldest_write_ms(directory: LogDirectory, topic: str, index: int) -> int | None:
    """When the oldest segment with records was last written to; None if there are no records."""
    with os.scandir(f"{directory.path}/{topic}-{index}") as entries:
        found = [entry.stat() for entry in entries if entry.name.endswith(LOG)]
    return min((file.st_mtime_ns // 1_000_000 for file in found if file.st_size), default=None)


def _set_aside(directory: LogDirectory, topic: str, index: int, why: str) -> str:
    """Rename a partition's folder so that it is not one any more; its new path."""
    name = f"{topic}-{index}"
    suffix = f".{uuid.random_uuid().hex()}-{why}"
    renamed = f"{directory.path}/{name[: _MAX_NAME_BYTES - len(suffix)]}{suffix}"
    try:
        Path(directory.path, name).rename(renamed)
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error
    directory.offsets.leave_out((topic, index))
    return renamed
