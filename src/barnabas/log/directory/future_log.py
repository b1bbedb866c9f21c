"""A future log: the copy that replaces a log in another directory (AlterReplicaLogDirs).

It grows in a folder whose name ends in `-future`, beside the folders of partitions. It becomes the
partition's log when it has everything that the current log has.
"""

import os

from barnabas.log.config import LogConfig
from barnabas.log.directory.directory_files import write_partition_metadata
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
    """Creates an empty log that begins where the current one does."""
    name = f"{topic}-{partition}"
    folder = f"{directory.path}/{name}.{uuid.random_uuid().hex()}{FUTURE}"
    params = LogLoadParams(
        name=name,
        folder=folder,
        config=config,
        files=directory.files,
        log_start_offset=start_offset,
        recovery_point=start_offset,
        is_clean=True,
        is_flushed=True,
    )
    try:
        os.mkdir(folder)
        write_partition_metadata(folder, topic_id)
        return Log(directory, topic, partition, topic_id, create_empty_log(params))
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error


def promote_future_log(future: Log) -> Log:
    """Makes a future log the log of its partition in its directory, and opens it again."""
    directory = future.directory
    future.close()
    try:
        os.rename(future.path, f"{directory.path}/{future.name}")
    except OSError as error:
        raise LogDirFailure(directory.path, error) from error
    directory.on_log_closed(future)
    return directory.open_log(future.topic, future.partition, future.topic_id, future.config)
