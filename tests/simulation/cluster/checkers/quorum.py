"""The promises of the metadata quorum."""

import os
from collections.abc import Sequence
from typing import Any

from tests.simulation.cluster.events import (
    Appended,
    BecameController,
    Committed,
    SnapshotLoaded,
    Truncated,
)
from tests.simulation.cluster.host import Host
from tests.simulation.world.events import Violation

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import MetadataImage
from barnabas.raft import METADATA_TOPIC, CommittedBatch
from barnabas.wire.records.batch import iterate_batches


class ElectionSafety:
    """An epoch of the quorum has one leader."""

    def __init__(self) -> None:
        self._leaders: dict[int, str] = {}

    def on_event(self, event: Any, _: int) -> None:
        if isinstance(event, Appended) and event.topic == METADATA_TOPIC:
            self._claim(event.epoch, event.host)
        elif isinstance(event, BecameController):
            self._claim(event.epoch, event.host.name)

    def _claim(self, epoch: int, host: str) -> None:
        leader = self._leaders.setdefault(epoch, host)
        if leader != host:
            raise Violation(f"epoch {epoch} has two leaders, {leader} and {host}")


class CommittedMetadata:
    """Committed metadata is the same on all nodes, and every later leader has it."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        """The committed offsets, by the epoch in which a node read them."""
        self._batches: dict[int, tuple[int, list[bytes]]] = {}
        self._reached: dict[tuple[str, int], int] = {}

    def on_event(self, event: Any, _: int) -> None:
        if isinstance(event, Committed):
            self._compare(event)
        elif isinstance(event, SnapshotLoaded):
            self._reach(event.host, event.offset)
        elif isinstance(event, BecameController):
            before = [end for epoch, end in self._ends.items() if epoch < event.epoch]
            if event.offset < max(before, default=-1):
                raise Violation(
                    f"{event.host.name} leads epoch {event.epoch} and has the metadata up to "
                    f"{event.offset}, but it was committed up to {max(before)}"
                )

    def _compare(self, event: Committed) -> None:
        for batch in event.batches:
            first = self._batches.setdefault(batch.last_offset, (batch.epoch, batch.frames))
            if first != (batch.epoch, batch.frames):
                raise Violation(
                    f"{event.host.name} has another committed batch at {batch.last_offset} "
                    f"than the others: of epoch {batch.epoch} and not {first[0]}"
                )
            self._reach(event.host, batch.last_offset)
        assert event.host.node is not None
        epoch = event.host.node.quorum.epoch
        self._ends[epoch] = max(self._ends.get(epoch, -1), event.batches[-1].last_offset)

    def _reach(self, host: Host, offset: int) -> None:
        """The offset of one run of a node never falls."""
        run = (host.name, host.runs)
        if offset < self._reached.get(run, -1):
            raise Violation(f"{host.name} goes back from {self._reached[run]} to {offset}")
        self._reached[run] = offset


class DurableMetadata:
    """Committed metadata is on the disks of a majority of the voters."""

    def __init__(self, voters: Sequence[Host]) -> None:
        self._voters = voters
        self._logs = {voter.name: _DurableLog(voter) for voter in voters}
        self._checked = -1

    def on_event(self, event: Any, _: int) -> None:
        if isinstance(event, Truncated) and event.host in self._logs:
            self._logs[event.host].forget()
        elif isinstance(event, Committed) and event.batches[-1].last_offset > self._checked:
            self._checked = event.batches[-1].last_offset
            self._check(event.host, event.batches[-1])

    def _check(self, host: Host, batch: CommittedBatch) -> None:
        on_disk = [
            name
            for name, log in self._logs.items()
            if log.has_durable(batch.last_offset, batch.epoch)
        ]
        if len(on_disk) <= len(self._voters) // 2:
            raise Violation(
                f"{host.name} has committed metadata up to {batch.last_offset}, which only the "
                f"disks of {on_disk} have"
            )


class _DurableLog:
    """The metadata log of a voter, as far as it would survive a power loss."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._folder = host.folder / f"{METADATA_TOPIC}-0"
        self._epochs: dict[int, int] = {}
        """The epochs of the durable batches, by their last offset."""
        self._read_bytes: dict[str, int] = {}
        self._runs = 0

    def forget(self) -> None:
        """What was read may have been replaced."""
        self._epochs.clear()
        self._read_bytes.clear()

    def has_durable(self, last_offset: int, epoch: int) -> bool:
        """Returns whether a batch is on disk. What precedes the log is in a durable snapshot."""
        if self._runs != self._host.runs:
            self._runs = self._host.runs
            self.forget()
        # Path objects would take half of the time of this checker.
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(".log"))  # noqa: PTH208
        for name in names:
            self._read(name)
        return self._epochs.get(last_offset) == epoch or (
            bool(names) and last_offset < int(names[0].removesuffix(".log"))
        )

    def _read(self, name: str) -> None:
        """Reads what was synced since the last time."""
        path = f"{self._folder}/{name}"
        start = self._read_bytes.get(name, 0)
        end = self._host.disk.synced_bytes(path)
        if end <= start:
            return
        self._read_bytes[name] = end
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            content = file.read(end - start)
        for _, header in iterate_batches(content):
            self._epochs[header.last_offset] = header.leader_epoch


class Images:
    """At the same offset, all nodes have the same image."""

    EVERY = 4
    """One of so many offsets is checked: it costs as much as writing a snapshot."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[str, list[bytes]]] = {}

    def on_image(self, host: Host, _: MetadataDelta, image: MetadataImage) -> None:
        if image.offset % self.EVERY:
            return
        level = image.metadata_level
        content = sorted(
            encode_record(record, record_version(record, level)) for record in image.records()
        )
        name, expected = self._contents.setdefault(image.offset, (host.name, content))
        if content != expected:
            raise Violation(
                f"at {image.offset} {host.name} and {name} have different images: "
                f"{set(content) ^ set(expected)}"
            )
