"""The small files of a log directory, and the one in the folder of each partition.

meta.properties        which cluster and node the directory belongs to, and its own id
.lock                  held while a process has the directory open
.kafka_cleanshutdown   written last when a broker stops, removed first when it starts
partition.metadata     in a partition's folder, the id of its topic: two lines of text,
                       `version: 0` and `topic_id: ` with the id in Kafka's text form
"""

import fcntl
import json
import os
from dataclasses import dataclass

from barnabas.log.checkpoint_file import replace_file
from barnabas.wire import uuid

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
_META_VERSION = "1"


class NotFormatted(Exception):  # noqa: N818 - the domain's word for it
    """The directory has no valid `meta.properties`."""


@dataclass(slots=True, frozen=True)
class MetaProperties:
    """What `storage format` writes once."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def write_meta_properties(directory: str, meta: MetaProperties) -> None:
    lines = (
        f"version={_META_VERSION}",
        f"cluster.id={meta.cluster_id}",
        f"node.id={meta.node_id}",
        f"directory.id={uuid.to_text(meta.directory_id)}",
        "",
    )
    replace_file(f"{directory}/{META_PROPERTIES}", "\n".join(lines).encode())


def read_meta_properties(directory: str) -> MetaProperties:
    path = f"{directory}/{META_PROPERTIES}"
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        raise NotFormatted(
            f"{path} is missing: format the directory first (see `barnabas storage format --help`)"
        ) from None
    except UnicodeDecodeError:
        raise NotFormatted(f"{path} is not text; restore it from a copy") from None
    fields = dict(line.split("=", 1) for line in lines if "=" in line and line[0] not in "#!")
    if fields.get("version") != _META_VERSION:
        raise NotFormatted(f"{path} has version {fields.get('version')}, only 1 is supported")
    try:
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=uuid.from_text(fields["directory.id"]),
        )
    except (KeyError, ValueError) as error:
        raise NotFormatted(f"{path} is not complete: {error}") from None


def write_partition_metadata(folder: str, topic_id: bytes) -> None:
    """Writes the file without syncing it: opening the log writes a lost one again."""
    content = f"version: 0\ntopic_id: {uuid.to_text(topic_id)}".encode()
    with open(f"{folder}/{PARTITION_METADATA}", "wb", buffering=0) as file:
        file.write(content)


def read_partition_metadata(folder: str) -> bytes | None:
    """Returns the topic id; None if there is no whole file."""
    try:
        with open(f"{folder}/{PARTITION_METADATA}", encoding="ascii") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return uuid.from_text(fields["topic_id"]) if fields.get("version") == "0" else None
    except (KeyError, ValueError):
        return None


@dataclass(slots=True, frozen=True)
class CleanShutdown:
    """The content of the file; the broker epoch is -1 if the file has none."""

    broker_epoch: int


def write_clean_shutdown(directory: str, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(f"{directory}/{CLEAN_SHUTDOWN}", content.encode())


def take_clean_shutdown(directory: str) -> CleanShutdown | None:
    """Reads the file and removes it. Returns None if the last shutdown was not clean."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    os.unlink(path)
    try:
        epoch = json.loads(content)["brokerEpoch"]
        return CleanShutdown(int(epoch))
    except (ValueError, KeyError, TypeError):
        return CleanShutdown(-1)  # that the file exists is enough


class DirectoryInUse(OSError):  # noqa: N818 - the domain's word for it
    """Another broker has the directory open."""


class DirectoryLock:
    """Held until it is released or the process ends.

    There are two locks on the file: the POSIX lock keeps out a broker in a JVM, and flock keeps out
    a second broker in this process.
    """

    __slots__ = ("_fd",)

    def __init__(self, directory: str) -> None:
        path = f"{directory}/.lock"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise DirectoryInUse(
                error.errno, f"{path} is held: another broker uses {directory}"
            ) from None

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
