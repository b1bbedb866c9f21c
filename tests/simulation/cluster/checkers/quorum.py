"""The promises of the metadata quorum."""

from typing import Any

from tests.simulation.cluster.happenings import Appended, Committed, Led, Replaced
from tests.simulation.cluster.hosts import Host
from tests.simulation.events import Violation

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import MetadataImage
from barnabas.raft import METADATA_TOPIC


class ElectionSafety:
    """An epoch of the quorum has one leader."""

    def __init__(self) -> None:
        self._leaders: dict[int, str] = {}

    def see(self, event: Any, _: int) -> None:
        if isinstance(event, Appended) and event.topic == METADATA_TOPIC:
            self._claim(event.epoch, event.host)
        elif isinstance(event, Led):
            self._claim(event.epoch, event.host.name)

    def _claim(self, epoch: int, host: str) -> None:
        leader = self._leaders.setdefault(epoch, host)
        if leader != host:
            raise Violation(f"epoch {epoch} has two leaders, {leader} and {host}")


class CommittedMetadata:
    """What is committed is the same on all nodes, and every later leader has it."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        """By the epoch in which it was learnt, up to where the metadata was committed."""
        self._batches: dict[int, tuple[int, list[bytes]]] = {}
        self._reached: dict[tuple[str, int], int] = {}

    def see(self, event: Any, _: int) -> None:
        if isinstance(event, Committed):
            self._compare(event)
        elif isinstance(event, Replaced):
            self._reach(event.host, event.offset)
        elif isinstance(event, Led):
            before = [end for epoch, end in self._ends.items() if epoch < event.epoch]
            if event.offset < max(before, default=-1):
                raise Violation(
                    f"{event.host.name} leads epoch {event.epoch} and has the metadata up to "
                    f"{event.offset}, but up to {max(before)} it was committed before"
                )

    def _compare(self, event: Committed) -> None:
        for batch in event.batches:
            known = self._batches.setdefault(batch.last_offset, (batch.epoch, batch.frames))
            if known != (batch.epoch, batch.frames):
                raise Violation(
                    f"{event.host.name} takes another batch for committed at {batch.last_offset} "
                    f"than others did: epoch {batch.epoch} and not {known[0]}"
                )
            self._reach(event.host, batch.last_offset)
        assert event.host.node is not None
        epoch = event.host.node.quorum.epoch
        self._ends[epoch] = max(self._ends.get(epoch, -1), event.batches[-1].last_offset)

    def _reach(self, host: Host, offset: int) -> None:
        """A life never goes back."""
        life = (host.name, host.lives)
        if offset < self._reached.get(life, -1):
            raise Violation(f"{host.name} goes back from {self._reached[life]} to {offset}")
        self._reached[life] = offset


class Images:
    """At the same offset every node knows the same."""

    EVERY = 4
    """Of so many offsets one is looked at: it costs as much as writing a snapshot."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, list[bytes]]] = {}

    def look(self, host: Host, _: MetadataDelta, image: MetadataImage) -> None:
        if image.offset % self.EVERY:
            return
        level = image.metadata_level
        content = sorted(
            encode_record(record, record_version(record, level)) for record in image.records()
        )
        name, known = self._known.setdefault(image.offset, (host.name, content))
        if content != known:
            raise Violation(
                f"at {image.offset} {host.name} and {name} know different things: "
                f"{set(content) ^ set(known)}"
            )
