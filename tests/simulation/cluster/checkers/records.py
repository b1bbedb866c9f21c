"""The promises to producers and readers."""

from collections import defaultdict
from typing import Any

from tests.simulation.cluster.happenings import Acknowledged, Appended, EndTold, Key, Read
from tests.simulation.events import Violation

from barnabas.raft import METADATA_TOPIC
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records


class PartitionLeaders:
    """In one leader epoch of a partition one broker appends, and never twice at one offset."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[Key, int], tuple[str, int]] = {}

    def see(self, event: Any, _: int) -> None:
        if not isinstance(event, Appended) or event.topic == METADATA_TOPIC:
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
                f"{event.epoch}, in which it was at {end}"
            )
        self._leaders[epoch] = event.host, event.last_offset + 1


class Acknowledgements:
    """What was acknowledged is there in the end, in order; if idempotent, once."""

    def __init__(self) -> None:
        self.committed: dict[Key, int] = defaultdict(int)
        """What clients know to be safe: it was acknowledged, or shown to a reader."""
        self._acknowledged: dict[Key, dict[int, Acknowledged]] = defaultdict(dict)

    def see(self, event: Any, _: int) -> None:
        if isinstance(event, Acknowledged):
            others = self._acknowledged[event.key]
            other = others.setdefault(event.base_offset, event)
            if other is not event:
                raise Violation(
                    f"offset {event.base_offset} of {event.topic}-{event.key[1]} was given to "
                    f"{other.values} and then to {event.values}"
                )
            self._raise(event.key, event.base_offset + len(event.values))
        elif isinstance(event, Read):
            self._raise(event.key, event.next_offset)

    def _raise(self, key: Key, offset: int) -> None:
        self.committed[key] = max(self.committed[key], offset)

    def reckon(self, name: str, key: Key, log: bytes) -> None:
        """Compare with the whole log of a partition as it is in the end."""
        values = dict(all_values(log))
        for event in self._acknowledged[key].values():
            for number, value in enumerate(event.values):
                found = values.get(event.base_offset + number)
                if found != value:
                    raise Violation(
                        f"{value!r} was acknowledged at {event.base_offset + number} of {name}, "
                        f"where {found!r} is"
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


class WhatWasRead:
    """What a reader was shown stays where it is, as it is."""

    def __init__(self) -> None:
        self._batches: dict[Key, dict[int, bytes]] = defaultdict(dict)
        self._readers: dict[tuple[Key, int], Read] = {}

    def see(self, event: Any, _: int) -> None:
        if not isinstance(event, Read):
            return
        known = self._batches[event.key].setdefault(event.base_offset, event.batch)
        first = self._readers.setdefault((event.key, event.base_offset), event)
        if known != event.batch:
            raise Violation(
                f"{event.reader} was shown by {event.host} at {event.base_offset} of "
                f"{event.topic}-{event.key[1]} {list(all_values(event.batch))}, but {first.reader} "
                f"by {first.host} {list(all_values(known))}"
            )

    def reckon(self, name: str, key: Key, log: bytes) -> None:
        batches = {
            header.base_offset: log[position : position + header.size_bytes]
            for position, header in iterate_batches(log)
        }
        for base_offset, batch in self._batches[key].items():
            if batches.get(base_offset) != batch:
                raise Violation(f"what was read at {base_offset} of {name} is gone")


class HighWatermark:
    """Where a partition ends for readers never falls, whoever leads it."""

    def __init__(self) -> None:
        self._told: dict[Key, list[tuple[int, EndTold]]] = defaultdict(list)

    def see(self, event: Any, now_ms: int) -> None:
        if not isinstance(event, EndTold):
            return
        for told_ms, earlier in self._told[event.key]:
            # A leader of the past may not know better; who asks by epoch does not ask it.
            is_later = told_ms <= event.asked_ms and earlier.leader_epoch <= event.leader_epoch
            if is_later and event.offset < earlier.offset:
                raise Violation(
                    f"{event.reader} is told by {event.host} that {event.topic}-{event.key[1]} "
                    f"ends at {event.offset} in epoch {event.leader_epoch}; {earlier.reader} was "
                    f"told {earlier.offset} in epoch {earlier.leader_epoch}"
                )
        self._told[event.key].append((now_ms, event))


def all_values(log: bytes) -> Any:
    """Offsets and values of all records."""
    for position, _ in iterate_batches(log):
        for record in read_records(log, position):
            yield record.offset, record.value or b""
