"""The compacted topic of a run, drawn from the seed."""

from dataclasses import dataclass
from random import Random

COMPACTED_SHARE = 0.4
"""How many runs have a compacted topic."""


@dataclass(slots=True, frozen=True)
class CompactedTopic:
    """The settings of the topic: small segments, which are cleaned often."""

    segment_bytes: int
    delete_retention_ms: int
    keys: int
    """Of few keys, most records are soon obsolete; of many, most tombstones expire."""

    @classmethod
    def draw(cls, random: Random) -> "CompactedTopic | None":
        topic = cls(
            random.choice((300, 1_000, 3_000)),
            random.choice((300, 300, 1_500, 60_000)),
            random.choice((5, 5, 40)),
        )
        return topic if random.random() < COMPACTED_SHARE else None

    @property
    def configs(self) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "internal.segment.bytes": str(self.segment_bytes),
            "delete.retention.ms": str(self.delete_retention_ms),
            "min.cleanable.dirty.ratio": "0.01",
            "file.delete.delay.ms": "200",
        }
