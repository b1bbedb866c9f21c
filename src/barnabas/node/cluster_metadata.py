"""The committed metadata of the cluster, as an image on every node.

The quorum passes committed batches in order, or a snapshot that replaces everything before it.
Subscribers are called with the delta after each change.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.metadata import features
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import MetadataImage, MetadataLoader
from barnabas.node.errors import NodeError
from barnabas.raft import CommittedBatch
from barnabas.wire.errors import ProtocolViolation

Condition = Callable[[MetadataImage], bool]
Subscriber = Callable[[MetadataDelta, MetadataImage], None]

log = logging.getLogger(__name__)


class ClusterMetadata:
    """The committed image and the subscribers to its changes."""

    def __init__(self) -> None:
        self._loader = MetadataLoader(MetadataImage())
        self._subscribers: list[Subscriber] = []
        self._awaited: list[tuple[Condition, asyncio.Future[None]]] = []

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction (KIP-868) is open."""
        return self._loader.in_transaction

    def subscribe(self, subscriber: Subscriber) -> None:
        """Calls `subscriber` at every change from now on."""
        self._subscribers.append(subscriber)

    def wait_for(self, condition: Condition) -> "asyncio.Future[None]":
        """Returns a future that is done once `condition` holds for the image."""
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((condition, awaited))
        self._complete_waiters()
        return awaited

    def apply(self, batches: Sequence[CommittedBatch]) -> None:
        """Applies the batches that were committed next."""
        delta = MetadataDelta()
        for batch in batches:
            self._load(self._loader, batch, delta)
        self._publish(delta)

    def load_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        """Replaces the image by that of a snapshot."""
        before = self.image
        loader = MetadataLoader(MetadataImage())
        for batch in batches:
            self._load(loader, batch, MetadataDelta())
        self._loader = loader
        self._publish(MetadataDelta.between(before, loader.image))

    def _load(self, loader: MetadataLoader, batch: CommittedBatch, delta: MetadataDelta) -> None:
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

    def _publish(self, delta: MetadataDelta) -> None:
        if delta:
            for subscriber in self._subscribers:
                try:
                    subscriber(delta, self.image)
                except Exception:
                    # The record is committed: a subscriber that fails must not stop the others.
                    log.exception(
                        "a subscriber failed on the metadata at offset %d", self.image.offset
                    )
        self._complete_waiters()

    def _complete_waiters(self) -> None:
        remaining = []
        for condition, awaited in self._awaited:
            if awaited.done():
                continue  # cancelled
            if condition(self.image):
                awaited.set_result(None)
            else:
                remaining.append((condition, awaited))
        self._awaited = remaining


def _require_known_features(image: MetadataImage) -> None:
    for name, level in image.features.items():
        supported = features.SUPPORTED.get(name)
        if supported is None or level not in supported:
            raise NodeError(
                f"The cluster has finalized feature {name} at level {level}, which this version "
                "does not support: start a newer version."
            )
