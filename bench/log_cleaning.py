"""Makes a broker clean one log, and measures that from outside.

A cleaning begins when the broker reads from the disk or the page cache, and ends when
`cleaner-offset-checkpoint` has the offset where the active segment begins.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench import raw_client
from bench.brokers import BrokerUnderTest
from bench.page_cache import flush

NODE_ID = "1"
BACKOFF_MS = "100"
MIN_SEGMENT_BYTES = 1 << 20
MAX_SEGMENT_BYTES = 128 << 20
NEVER_DIRTY, ALWAYS_DIRTY = "1.0", "0.01"
"""Values of min.cleanable.dirty.ratio: a log is cleaned if it is dirtier."""

IN_FLIGHT = 8
POLL_S = 0.005
IDLE_S = 3
DEADLINE_S = 300
BEGUN_BYTES = 64 << 10
"""A cleaning has begun once so much was read."""


@dataclass(slots=True, frozen=True)
class DirtyTopic:
    """A topic of one partition that is cleaned once `begin_cleaning` was called."""

    name: str
    folder: Path
    closed_bytes: int
    """All but the active segment, which is never cleaned."""
    end_offset: int
    """Where the active segment begins."""


@dataclass(slots=True, frozen=True)
class CleaningFigures:
    seconds: float
    cpu_s: float
    peak_mb: float
    """By how much the resident memory rose meanwhile."""


@contextlib.contextmanager
def quick_cleaner(broker: BrokerUnderTest) -> Iterator[None]:
    """A broker whose cleaner looks for dirty logs all the time, in its one thread."""
    alter(broker, ResourceType.BROKER, NODE_ID, {"log.cleaner.backoff.ms": BACKOFF_MS})
    yield
    alter(broker, ResourceType.BROKER, NODE_ID, {"log.cleaner.backoff.ms": None})


@contextlib.contextmanager
def dirty_topic(broker: BrokerUnderTest, batches: Sequence[bytearray]) -> Iterator[DirtyTopic]:
    """A topic with these batches, flushed and in the page cache."""
    stored_bytes = sum(map(len, batches))
    name = f"dirty-{time.monotonic_ns()}"
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(min(MAX_SEGMENT_BYTES, max(stored_bytes // 8, MIN_SEGMENT_BYTES))),
        "min.cleanable.dirty.ratio": NEVER_DIRTY,
        "file.delete.delay.ms": "1000",
    }
    admin = broker.admin()
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result()
    raw_client.wait_until_led(broker.address, name)
    connection = raw_client.RawConnection(broker.address)
    connection.send_pipelined(raw_client.batch_frames(name, batches), in_flight=IN_FLIGHT)
    connection.close()
    folder = broker.data / f"{name}-0"
    flush(folder)
    *closed, active = sorted(folder.glob("*.log"))
    sizes = [path.stat().st_size for path in closed]
    if sum(sizes) + active.stat().st_size != stored_bytes:
        raise RuntimeError(f"{broker.name} has not stored every batch of {name}")
    for path in closed:
        path.read_bytes()
    yield DirtyTopic(name, folder, sum(sizes), int(active.stem))
    broker.delete([name])


def begin_cleaning(broker: BrokerUnderTest, topic: DirtyTopic) -> None:
    """Has the topic cleaned, and waits until that has begun."""
    before_bytes = broker.read_bytes()
    alter(broker, ResourceType.TOPIC, topic.name, {"min.cleanable.dirty.ratio": ALWAYS_DIRTY})
    while broker.read_bytes() - before_bytes < BEGUN_BYTES:
        time.sleep(POLL_S)


def clean(broker: BrokerUnderTest, topic: DirtyTopic) -> CleaningFigures:
    """Cleans the topic; returns what that took beyond what the idle broker takes."""
    idle_cpu_s = broker.process.cpu_s()
    time.sleep(IDLE_S)
    idle_cores = (broker.process.cpu_s() - idle_cpu_s) / IDLE_S
    broker.reset_peak_rss()
    before_mb, cpu_s = broker.process.rss_mb(), broker.process.cpu_s()
    begin_cleaning(broker, topic)
    began_s = time.perf_counter()
    wait_until_clean(broker, topic.name, 0, topic.end_offset)
    seconds = time.perf_counter() - began_s
    cpu_s = broker.process.cpu_s() - cpu_s - seconds * idle_cores
    return CleaningFigures(seconds, cpu_s, broker.peak_rss_mb() - before_mb)


def wait_until_clean(broker: BrokerUnderTest, topic: str, partition: int, offset: int) -> None:
    deadline_s = time.perf_counter() + DEADLINE_S
    while cleaned_offsets(broker).get((topic, partition), -1) < offset:
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"{broker.name} has not cleaned {topic} in {DEADLINE_S} s")
        time.sleep(POLL_S)


def cleaned_offsets(broker: BrokerUnderTest) -> dict[tuple[str, int], int]:
    """Returns up to which offset each log is clean."""
    try:
        lines = (broker.data / "cleaner-offset-checkpoint").read_text().splitlines()
    except FileNotFoundError:
        return {}
    entries = (line.rsplit(" ", 2) for line in lines[2:])
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def alter(
    broker: BrokerUnderTest, kind: ResourceType, name: str, values: dict[str, str | None]
) -> None:
    """Sets these values, and removes those that are None."""
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = broker.admin()
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()
