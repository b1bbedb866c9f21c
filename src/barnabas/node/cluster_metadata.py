"""What the cluster knows, on every node of it: the image of all that is committed.

The quorum hands over committed batches in their order, or a snapshot in place of all that came
before; whoever subscribes is told of each change once it has happened.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.metadata import features
from barnabas.metadata.delta import Delta
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import Image
from barnabas.metadata.loader import Loader
from barnabas.node.errors import NodeError
from barnabas.raft import CommittedBatch
from barnabas.wire.errors import ProtocolViolation

Condition = Callable[[Image], bool]
Subscriber = Callable[[Delta, Image], None]

log = logging.getLogger(__name__)


class ClusterMetadata:
    """The committed image and those who are told of its changes."""

    def __init__(self) -> None:
        self._loader = Loader(Image())
        self._subscribers: list[Subscriber] = []
        self._awaited: list[tuple[Condition, asyncio.Future[None]]] = []

    @property
    def image(self) -> Image:
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether what a controller began to write has no end yet (KIP-868)."""
        return self._loader.in_transaction

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell `subscriber` of every change from now on."""
        self._subscribers.append(subscriber)

    def until(self, condition: Condition) -> "asyncio.Future[None]":
        """Done once the image is as `condition` wants it."""
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((condition, awaited))
        self._tell_who_waits()
        return awaited

    def take(self, batches: Sequence[CommittedBatch]) -> None:
        """What was committed next."""
        delta = Delta()
        for batch in batches:
            self._load(self._loader, batch, delta)
        self._publish(delta)

    def replace(self, batches: Iterable[CommittedBatch]) -> None:
        """A snapshot: all there is to know, in place of what was known."""
        before = self.image
        loader = Loader(Image())
        for batch in batches:
            self._load(loader, batch, Delta())
        self._loader = loader
        self._publish(Delta.between(before, loader.image))

    def _load(self, loader: Loader, batch: CommittedBatch, delta: Delta) -> None:
        try:
            records = [decode_record(frame) for frame in batch.frames]
        except ProtocolViolation as violation:
            raise NodeError(
                f"The metadata log after offset {loader.image.offset} cannot be read: {violation}. "
                "If a newer version wrote it, start that version."
            ) from violation
        loader.load(records, batch.last_offset, batch.epoch, delta)
        if delta.features_changed or batch.is_snapshot:
            _require_known_features(loader.image)

    def _publish(self, delta: Delta) -> None:
        if delta:
            for subscriber in self._subscribers:
                try:
                    subscriber(delta, self.image)
                except Exception:
                    # What is committed is a fact: one who cannot follow does not stop the others.
                    log.exception("a subscriber failed on the metadata at %d", self.image.offset)
        self._tell_who_waits()

    def _tell_who_waits(self) -> None:
        still = []
        for condition, awaited in self._awaited:
            if awaited.done():
                continue  # given up
            if condition(self.image):
                awaited.set_result(None)
            else:
                still.append((condition, awaited))
        self._awaited = still


def _require_known_features(image: Image) -> None:
    for name, level in image.features.items():
        supported = features.SUPPORTED.get(name)
        if supported is None or level not in supported:
            raise NodeError(
                f"The cluster has finalised {name} at {level}, which this version does not "
                "support: start a newer one."
            )
