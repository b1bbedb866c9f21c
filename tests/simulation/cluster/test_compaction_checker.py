"""What the checker of compaction takes for a lost sequence, and what it does not."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.simulation.cluster.checkers.compaction import Compaction
from tests.simulation.cluster.events import Appended
from tests.simulation.cluster.layout import COMPACTED_TOPIC
from tests.simulation.world.events import Violation

from barnabas.wire.records.build import build_batch
from barnabas.wire.records.record import Record

KEY = (b"topic-id", 0)
PRODUCER, OTHER = 1, 2


def _batch(producer_id: int, *offsets: int, epoch: int, key: bytes) -> bytes:
    """Records with the same key."""
    return bytes(
        build_batch(
            [Record(offset, 0, key, b"value", []) for offset in offsets],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=offsets[0],
            base_offset=offsets[0],
            leader_epoch=epoch,
        )
    )


class _ReplicaUnderCheck:
    """A host with one replica, whose committed log a test sets."""

    def __init__(self) -> None:
        self.name = "node-1"
        self.content = b""
        self.end_offset = 0
        host: Any = self
        self.compaction = Compaction({1: host}, delete_retention_ms=0)

    def append(self, offset: int, batch: bytes, *, epoch: int, last_offset: int) -> None:
        """A leader appends, and this replica may have the batch or not."""
        event = Appended("node-2", COMPACTED_TOPIC, 0, KEY[0], epoch, offset, last_offset, batch)
        self.compaction.on_event(event, 0)

    def commit(self, *batches: bytes, end_offset: int) -> None:
        """The committed log of the replica has just these batches."""
        self.content, self.end_offset = b"".join(batches), end_offset
        host: Any = self
        self.compaction.check_replica(host, KEY, 0)

    def partition(self, *_: object) -> Any:
        def read(offset: int, *_: object, **__: object) -> Any:
            content = self.content if offset == 0 else b""
            return SimpleNamespace(read=lambda: content, next_offset=self.end_offset)

        return SimpleNamespace(
            topic=COMPACTED_TOPIC,
            index=0,
            high_watermark=self.end_offset,
            state=None,
            log=SimpleNamespace(log_start_offset=0, read=read),
        )


def test_a_batch_that_was_never_committed_is_no_lost_sequence() -> None:
    replica = _ReplicaUnderCheck()
    uncommitted = _batch(PRODUCER, 0, 1, 2, epoch=0, key=b"k")
    replica.append(0, uncommitted, epoch=0, last_offset=2)
    first = _batch(PRODUCER, 0, epoch=1, key=b"k")
    rest = _batch(OTHER, 1, 2, 3, epoch=1, key=b"o")
    replica.append(0, first, epoch=1, last_offset=0)
    replica.append(1, rest, epoch=1, last_offset=3)
    replica.commit(first, rest, end_offset=4)


def test_the_last_batch_of_a_producer_that_is_gone_is_a_lost_sequence() -> None:
    replica = _ReplicaUnderCheck()
    first = _batch(PRODUCER, 0, epoch=0, key=b"k")
    rest = _batch(OTHER, 1, epoch=0, key=b"k")
    replica.append(0, first, epoch=0, last_offset=0)
    replica.append(1, rest, epoch=0, last_offset=1)
    replica.commit(first, rest, end_offset=2)
    with pytest.raises(Violation, match="lost the sequence of producer 1"):
        replica.commit(rest, end_offset=2)
