"""Small text files that are replaced as a whole: the old one or the new one, never a mixture.

A checkpoint of offsets is lines of text: the version 0, the number of entries, then an entry a
line, `topic partition offset` for a log directory and `epoch offset` for leader epochs.
"""

import os
from collections.abc import Iterable, Mapping

_VERSION = "0"


class MalformedCheckpoint(ValueError):  # noqa: N818 - the domain's word for it
    """The file is damaged: no whole checkpoint was written."""


def replace_file(path: str, content: bytes, *, sync: bool = True) -> None:
    """Writes a temporary file and renames it; with `sync`, the result survives a power failure."""
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if sync:
        sync_path(os.path.dirname(path))


def sync_path(path: str) -> None:
    """Syncs a file to disk; for a folder, the names in it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def encode_lines(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "\n".join((_VERSION, str(len(body)), *body, "")).encode()


def read_lines(path: str) -> list[str]:
    """Returns the entries of the file; none if it is missing, or empty as Kafka creates it."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise MalformedCheckpoint(f"{path} is not text") from None
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise MalformedCheckpoint(f"{path} has version {lines[0]!r}, only 0 is supported")
    if len(lines) < 2 or not lines[1].isdecimal() or int(lines[1]) != len(lines) - 2:
        raise MalformedCheckpoint(f"{path} does not have the number of entries that it states")
    return lines[2:]


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return encode_lines(
        f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()
    )


def read_offsets(path: str) -> dict[tuple[str, int], int]:
    """Returns offsets by topic and partition."""
    offsets = {}
    try:
        for line in read_lines(path):
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
    except MalformedCheckpoint:
        raise
    except ValueError:
        raise MalformedCheckpoint(
            f"{path} has a line that is not `topic partition offset`"
        ) from None
    return offsets
