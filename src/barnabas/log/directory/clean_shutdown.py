"""`.kafka_cleanshutdown`: written last when a broker stops, removed first when it starts."""

import json
import os
from dataclasses import dataclass

from barnabas.log.checkpoint_file import replace_file

FILE_NAME = ".kafka_cleanshutdown"
_VERSION = 0


@dataclass(slots=True, frozen=True)
class CleanShutdown:
    """The content of the file; the broker epoch is -1 if the file has none."""

    broker_epoch: int


def write_clean_shutdown(directory: str, broker_epoch: int) -> None:
    content = json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(f"{directory}/{FILE_NAME}", content.encode())


def take_clean_shutdown(directory: str) -> CleanShutdown | None:
    """Reads the file and removes it. Returns None if the last shutdown was not clean."""
    path = f"{directory}/{FILE_NAME}"
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
