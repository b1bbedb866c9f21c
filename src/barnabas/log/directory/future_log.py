"""A log that is to take the place of one in another directory (AlterReplicaLogDirs).

It grows in a folder whose name ends in `-future`, beside the partitions of its directory but not
one of them, and becomes one when it has all that the present log has.
"""

import os

from barnabas.log.directory import partition_metadata
from barnabas.log.config import LogConfig
from barnabas.log.directory.log_directory import LogDirectory
from barnabas.log.errors import LogDirFailure
from barnabas.log.log import Log
from barnabas.log.recovery import LogLoadParams, create_empty_log
from barnabas.wire import uuid

FUTURE = "-future"


def create_future_log(
    directory: LogDirectory,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    *,
    start_offset: int,
) -> Log:
    """An empty log that begins where the present one does."""
    name = f"{topic}-{partition}"
    folder = f"{directory.path}/{name}.{uuid.random_uuid().hex()}{FUTURE}"
    opening = LogLoadParams(
        name=name,
        folder=folder,
        config=config,
        files=directory.files,
        log_start_offset=start_offset,
        recovery_point=start_offset,
        is_clean=True,
    )
    try:
        os.mkdir(folder)
        partition_metadata.write(folder, topic_id)
        return Log(directory, topic, partition, topic_id, create_empty_log(opening))
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error


def promote_future_log(future: Log) -> Log:
    """Make a future log the one of its partition in its directory; it is opened anew."""
    directory = future.directory
    future.close()
    try:
        os.rename(future.path, f"{directory.path}/{future.name}")
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error
    directory.on_log_closed(future)
    return directory.open_log(future.topic, future.partition, future.topic_id, future.config)
