"""librdkafka's own list of its settings, as the installed library prints it."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import confluent_kafka


class Property(NamedTuple):
    name: str
    kind: str
    allowed: str
    default: str
    alias_of: str | None


@cache
def properties() -> list[Property]:
    """Each property, global ones before those of topics; some are in both lists."""
    c = ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    with NamedTemporaryFile(mode="r", suffix=".md") as file:
        stream = ctypes.c_void_p(c.fopen(file.name.encode(), b"w"))
        _library().rd_kafka_conf_properties_show(stream)
        c.fclose(stream)
        return [row for line in file.read().splitlines() if (row := _property(line))]


def takes(name: str, value: str) -> bool:
    """Whether it lets this be set, as confluent_kafka sets what is in a dictionary."""
    library = _library()
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    problem = ctypes.create_string_buffer(512)
    result = library.rd_kafka_conf_set(conf, name.encode(), value.encode(), problem, 512)
    library.rd_kafka_conf_destroy(conf)
    return bool(result == 0)


@cache
def _library() -> ctypes.CDLL:
    libraries = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(libraries.glob("librdkafka*"))))
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    return library


def _property(line: str) -> Property | None:
    cells = [cell.strip() for cell in line.split("|")]
    kind = re.search(r"\*Type: (.*?)\*", line)
    if len(cells) < 6 or kind is None:
        return None
    alias = re.search(r"Alias for `(.*?)`", line)
    return Property(cells[0], kind[1], cells[2], cells[3], alias[1] if alias else None)
