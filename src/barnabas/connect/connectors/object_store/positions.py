"""Positions that are kept beside the files, in objects of JSON below `_barnabas`.

    positions/NAME.json         the next offset of each topic partition: what was committed
    pending/NAME/ID.json        the names of files that a task is about to upload

A micro-batch is committed when its positions are stored. A task that fails before that, or whose
driver does, leaves its list of files: they are removed before the records are written again, unless
their positions were stored after all. So each record is in one file that stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.connect.connector import TopicPartition, path_segment
from barnabas.connect.connectors.object_store.stores import ObjectStore

DIRECTORY = "_barnabas"


@dataclass(slots=True, frozen=True)
class PendingFiles:
    """The files of one task of one micro-batch."""

    id: str
    starts: Mapping[TopicPartition, int]
    """Where the records begin that the files have."""
    names: tuple[str, ...]


class PositionStore:
    """The positions of one connector."""

    def __init__(self, store: ObjectStore, topics_directory: str, connector: str) -> None:
        self._store = store
        root = f"{topics_directory}/{DIRECTORY}" if topics_directory else DIRECTORY
        name = path_segment(connector)
        self._name = f"{root}/positions/{name}.json"
        self._pending = f"{root}/pending/{name}"

    def read(self) -> dict[TopicPartition, int] | None:
        """Returns None before the first commit."""
        content = self._store.get(self._name)
        if content is None:
            return None
        return {
            (topic, int(partition)): offset
            for topic, offsets in json.loads(content).items()
            for partition, offset in offsets.items()
        }

    def write(self, positions: Mapping[TopicPartition, int]) -> None:
        document: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(positions.items()):
            document.setdefault(topic, {})[str(partition)] = offset
        self._store.put(self._name, json.dumps(document).encode())

    def update(self, changes: Mapping[TopicPartition, int | None]) -> None:
        """Changes some positions; None removes one."""
        merged = {**(self.read() or {}), **changes}
        self.write({key: offset for key, offset in merged.items() if offset is not None})

    def add_pending(self, pending: PendingFiles) -> None:
        document = {
            "starts": [[*key, start] for key, start in pending.starts.items()],
            "files": pending.names,
        }
        self._store.put(f"{self._pending}/{pending.id}.json", json.dumps(document).encode())

    def remove_pending(self, pending: Iterable[PendingFiles]) -> None:
        for each in pending:
            self._store.delete(f"{self._pending}/{each.id}.json")

    def remove_uncommitted(self) -> list[str]:
        """Removes the files of tasks that were not committed; returns their names.

        The positions of a micro-batch are stored at once, so one position tells about all of them.
        """
        committed = self.read() or {}
        removed = []
        for name in self._store.names(self._pending):
            content = self._store.get(name)
            if content is None:
                continue
            document = json.loads(content)
            is_committed = any(
                committed.get((topic, partition), -1) > start
                for topic, partition, start in document["starts"]
            )
            if not is_committed:
                for file in document["files"]:
                    self._store.delete(file)
                    removed.append(file)
            self._store.delete(name)
        return removed
