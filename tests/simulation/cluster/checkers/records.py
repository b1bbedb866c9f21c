"""The promises to producers and readers."""

from collections import defaultdict
from typing import Any

from tests.simulation.cluster.events import Acknowledged, Appended, LatestOffset, PartitionKey, Read
from tests.simulation.world.events import Violation

from barnabas.raft import METADATA_TOPIC
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records


class PartitionLeaders:
    """In a leader epoch of a partition, one broker appends, and never twice at an offset."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[PartitionKey, int], tuple[str, int]] = {}

    def on_event(self, event: Any, _: int) -> None:
        if not isinstance(event, Appended) or event.topic == METADATA_TOPIC:
            return
        if event.is_interrupted:
            return
        epoch = ((event.topic_id, event.index), event.epoch)
        leader, end = self._leaders.get(epoch, (event.host, 0))
        if leader != event.host:
            raise Violation(
                f"{leader} and {event.host} both lead {event.topic}-{event.index} in "
                f"epoch {event.epoch}"
            )
        if event.first_offset < end:
            raise Violation(
                f"{leader} appends {event.topic}-{event.index} at {event.first_offset} in epoch "
                f"{event.epoch}, in which it had {end}"
            )
        self._leaders[epoch] = event.host, event.last_offset + 1


class Acknowledgements:
    """Acknowledged records are in the log, in order; those of idempotent producers once."""

    def __init__(self) -> None:
        self.committed: dict[PartitionKey, int] = defaultdict(int)
        """The end offsets of records that were acknowledged or fetched."""
        self._acknowledged: dict[PartitionKey, dict[int, Acknowledged]] = defaultdict(dict)

    def on_event(self, event: Any, _: int) -> None:
        if isinstance(event, Acknowledged):
            others = self._acknowledged[event.key]
            other = others.setdefault(event.base_offset, event)
            if other is not event:
                raise Violation(
                    f"offset {event.base_offset} of {event.topic}-{event.key[1]} was assigned to "
                    f"{other.values} and then to {event.values}"
                )
            self._raise(event.key, event.base_offset + len(event.values))
        elif isinstance(event, Read):
            self._raise(event.key, event.next_offset)

    def _raise(self, key: PartitionKey, offset: int) -> None:
        self.committed[key] = max(self.committed[key], offset)

    def check_log(self, name: str, key: PartitionKey, log: bytes) -> None:
        """Checks the whole log of a partition at the end of the run."""
        values = dict(all_values(log))
        for event in self._acknowledged[key].values():
            for number, value in enumerate(event.values):
                actual = values.get(event.base_offset + number)
                if actual != value:
                    raise Violation(
                        f"{value!r} was acknowledged at {event.base_offset + number} of {name}, "
                        f"where {actual!r} is"
                    )
        last: dict[bytes, int] = {}
        seen: set[bytes] = set()
        for offset, value in values.items():
            producer, _, number = value.partition(b"/")
            is_new = value not in seen
            if producer.startswith(b"once") and not is_new:
                raise Violation(f"{value!r} is in {name} twice, at {offset} again")
            if is_new and int(number) < last.get(producer, -1):
                raise Violation(f"{value!r} is in {name} at {offset}, after {last[producer]}")
            seen.add(value)
            last[producer] = max(last.get(producer, -1), int(number))


class ReadRecords:
    """A record that was fetched stays at its offset, unchanged."""

    def __init__(self) -> None:
        self._batches: dict[PartitionKey, dict[int, bytes]] = defaultdict(dict)
        self._readers: dict[tuple[PartitionKey, int], Read] = {}

    def on_event(self, event: Any, _: int) -> None:
        if not isinstance(event, Read):
            return
        batch = self._batches[event.key].setdefault(event.base_offset, event.batch)
        first = self._readers.setdefault((event.key, event.base_offset), event)
        if batch != event.batch:
            raise Violation(
                f"{event.reader} fetched from {event.host} at {event.base_offset} of "
                f"{event.topic}-{event.key[1]} {list(all_values(event.batch))}, but {first.reader} "
                f"from {first.host} {list(all_values(batch))}"
            )

    def check_log(self, name: str, key: PartitionKey, log: bytes) -> None:
        batches = {
            header.base_offset: log[position : position + header.size_bytes]
            for position, header in iterate_batches(log)
        }
        for base_offset, batch in self._batches[key].items():
            if batches.get(base_offset) != batch:
                raise Violation(f"the batch that was fetched at {base_offset} of {name} is gone")


class HighWatermark:
    """The high watermark of a partition never falls, also if the leader changes."""

    def __init__(self) -> None:
        self._offsets: dict[PartitionKey, list[tuple[int, LatestOffset]]] = defaultdict(list)

    def on_event(self, event: Any, now_ms: int) -> None:
        if not isinstance(event, LatestOffset):
            return
        for received_ms, earlier in self._offsets[event.key]:
            # A former leader may return an older offset, but only in an older epoch.
            is_later = (
                received_ms <= event.requested_ms and earlier.leader_epoch <= event.leader_epoch
            )
            if is_later and event.offset < earlier.offset:
                raise Violation(
                    f"{event.reader} gets from {event.host} the latest offset {event.offset} of "
                    f"{event.topic}-{event.key[1]} in epoch {event.leader_epoch}; {earlier.reader} "
                    f"got {earlier.offset} in epoch {earlier.leader_epoch}"
                )
        self._offsets[event.key].append((now_ms, event))


def all_values(log: bytes) -> Any:
    """Yields the offset and the value of every record."""
    for position, _ in iterate_batches(log):
        for record in read_records(log, position):
            yield record.offset, record.value or b""
