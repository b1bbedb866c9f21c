"""What compaction may remove, and what it must keep.

Leaders have appended what a compacted log once had: the history. The log of a replica, at any time,
is a part of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.cluster.checkers.replicas import content_of
from tests.simulation.cluster.events import (
    Acknowledged,
    Appended,
    PartitionKey,
    Replicated,
    Scanned,
    ScannedRecord,
    SegmentsReplaced,
    TransactionEnded,
)
from tests.simulation.cluster.host import Host
from tests.simulation.cluster.layout import COMPACTED_TOPIC
from tests.simulation.world.events import Violation

from barnabas.replication import Partition
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_records


@dataclass(slots=True, frozen=True)
class Entry:
    """A record, or the marker of a transaction, as it was appended."""

    offset: int
    epoch: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    is_transactional: bool
    commits: bool | None
    """Whether it is a marker that commits, or one that aborts."""
    appended_ms: int

    @property
    def is_marker(self) -> bool:
        return self.commits is not None

    @property
    def is_tombstone(self) -> bool:
        return not self.is_marker and self.value is None


@dataclass(slots=True)
class CommittedHistory:
    """What was appended below an offset and is committed, and which of it counts."""

    entries: list[Entry]
    """One for each offset."""
    aborted: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    """The offsets of records of aborted transactions, and of transactions that are not decided."""
    last: dict[bytes | None, Entry] = field(default_factory=dict)
    """The last record of each key that is neither aborted nor open."""

    @classmethod
    def of(cls, entries: list[Entry], decisions: Iterable[Entry]) -> "CommittedHistory":
        """Returns the history with the markers that were appended and are not committed yet.

        A transaction is decided before its markers are sent: one that is lost is sent again. So a
        replica that restarts may take the transaction for ended (as in Kafka).
        """
        history = cls(entries)
        pending: dict[int, list[int]] = defaultdict(list)
        for entry in entries:
            if entry.is_marker:
                ended = pending.pop(entry.producer_id, [])
                history.aborted.update(() if entry.commits else ended)
            elif entry.is_transactional:
                pending[entry.producer_id].append(entry.offset)
        for marker in decisions:
            offsets = pending.get(marker.producer_id)
            if offsets and marker.appended_ms >= entries[offsets[-1]].appended_ms:
                history.aborted.update(() if marker.commits else offsets)
                del pending[marker.producer_id]
        history.open.update(offset for offsets in pending.values() for offset in offsets)
        history.last = {entry.key: entry for entry in entries if history.counts(entry)}
        return history

    def counts(self, entry: Entry) -> bool:
        """Returns whether a reader of committed records would see it."""
        is_visible = entry.offset not in self.aborted and entry.offset not in self.open
        return not entry.is_marker and is_visible

    def may_be_removed(self, entry: Entry, now_ms: int, delete_retention_ms: int) -> bool:
        """Returns whether the log may be without it by now."""
        if entry.is_marker or entry.offset in self.aborted:
            return True
        if entry.offset in self.open:
            return False
        is_expired = entry.is_tombstone and now_ms >= entry.appended_ms + delete_retention_ms
        return is_expired or self.last[entry.key].offset > entry.offset


class Compaction:
    """The last value of a key stays, what was deleted stays deleted, an offset keeps its record.

    As in Kafka, this is not promised of a replica that was behind for longer than
    `delete.retention.ms`. It may have missed a tombstone, and then keeps what that deleted. It may
    have missed the end of a transaction, and then takes the next marker of the producer for it.
    """

    def __init__(self, hosts: dict[int, Host], delete_retention_ms: int) -> None:
        self._hosts = {host.name: host for host in hosts.values()}
        self._delete_retention_ms = delete_retention_ms
        self._appended: dict[PartitionKey, dict[tuple[int, int], Entry]] = defaultdict(dict)
        """By offset and leader epoch."""
        self._epochs: dict[PartitionKey, list[int]] = defaultdict(list)
        """The leader epoch of every offset that was seen to be committed."""
        self._last_batches: dict[PartitionKey, dict[int, tuple[int, int]]] = defaultdict(dict)
        """The last offset and its leader epoch of each idempotent producer without transactions."""
        self._received: dict[tuple[str, PartitionKey], set[int]] = defaultdict(set)
        """The offsets of the records that a replica has got from its leader, or has appended."""
        self._confused: set[tuple[str, PartitionKey]] = set()
        """The replicas that have missed the end of a transaction."""
        self._histories: dict[PartitionKey, tuple[int, int, CommittedHistory]] = {}
        """The last history of each partition, and how much was committed and appended then."""
        self._acknowledged: list[Acknowledged] = []
        self._transactions: list[TransactionEnded] = []

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case Appended(topic=topic) if topic == COMPACTED_TOPIC:
                self._append(event, now_ms)
            case Replicated():
                self._receive(event.host, event.key, event.log_end_offset, event.batches)
                self._check_missed(event)
            case Acknowledged(topic=topic) if topic == COMPACTED_TOPIC:
                self._acknowledged.append(event)
            case TransactionEnded():
                self._transactions.append(event)
            case SegmentsReplaced(topic=topic) if topic == COMPACTED_TOPIC:
                self._on_replaced(event, now_ms)
            case Scanned():
                self._check_scan(event, now_ms)

    def _append(self, event: Appended, now_ms: int) -> None:
        key = (event.topic_id, event.index)
        for position, header in iterate_batches(event.batch):
            if not header.is_transactional and not header.is_control:
                last, batch = self._last_batches[key], (header.last_offset, event.epoch)
                last[header.producer_id] = max(last.get(header.producer_id, batch), batch)
            for record in read_records(event.batch, position):
                marker = read_marker(record) if header.is_control else None
                self._appended[key][record.offset, event.epoch] = Entry(
                    record.offset,
                    event.epoch,
                    record.key,
                    record.value,
                    header.producer_id,
                    header.is_transactional,
                    marker.committed if marker is not None else None,
                    now_ms,
                )
        self._receive(event.host, key, event.first_offset, event.batch)

    def _receive(self, host: str, key: PartitionKey, end_offset: int, batches: bytes) -> None:
        """What was above the end of the log is gone, by a truncation or by a power loss."""
        received = self._received[host, key]
        received.difference_update([offset for offset in received if offset >= end_offset])
        for position, _ in iterate_batches(batches):
            received.update(record.offset for record in read_records(batches, position))

    def _check_missed(self, event: Replicated) -> None:
        """Notes a replica that has missed the end of a transaction, which its leader removed."""
        replica, received = (event.host, event.key), self._received[event.host, event.key]
        end_offset = max(header.next_offset for _, header in iterate_batches(event.batches))
        missed = [o for o in range(event.log_end_offset, end_offset) if o not in received]
        if event.log_end_offset == 0:
            self._confused.discard(replica)
        if not missed:
            return
        entries, known = self._appended[event.key], self._epochs[event.key]
        leader = self._leader_of(*replica)
        if (leader, event.key) in self._confused or any(
            self._has_open(received, entries[offset, known[offset]], event.key)
            for offset in missed
            if offset < len(known)
        ):
            self._confused.add(replica)

    def _has_open(self, received: set[int], marker: Entry, key: PartitionKey) -> bool:
        """Returns whether the replica has records of the transaction that a marker ends."""
        if not marker.is_marker:
            return False
        for offset in range(marker.offset - 1, -1, -1):
            entry = self._appended[key][offset, self._epochs[key][offset]]
            if entry.producer_id == marker.producer_id:
                if entry.is_marker:
                    return False
                if offset in received:
                    return True
        return False

    def _leader_of(self, host: str, key: PartitionKey) -> str:
        """Returns the leader that a replica follows."""
        partition = self._hosts[host].partition(*key)
        state = partition.state if partition is not None else None
        return f"node-{state.leader}" if state is not None else ""

    def _update_epochs(self, key: PartitionKey, partition: Partition) -> None:
        """Reads the leader epochs of what is committed by now, before it is cleaned."""
        epochs, upto = self._epochs[key], partition.high_watermark
        if len(epochs) < upto:
            content = content_of(partition, upto, start=len(epochs))
            for _, header in iterate_batches(content):
                epochs += [header.leader_epoch] * (header.next_offset - len(epochs))

    def _history(self, key: PartitionKey) -> CommittedHistory:
        """Returns everything that was appended and committed, also what a replica has not yet."""
        appended, epochs = self._appended[key], self._epochs[key]
        committed, total, history = self._histories.get(key, (0, 0, CommittedHistory([])))
        if (committed, total) == (len(epochs), len(appended)):
            return history
        entries = []
        for offset, epoch in enumerate(epochs):
            if (offset, epoch) not in appended:
                raise Violation(f"offset {offset} was never appended in epoch {epoch}")
            entries.append(appended[offset, epoch])
        uncommitted = (entry for entry in appended.values() if entry.offset >= len(entries))
        decisions = sorted(
            (entry for entry in uncommitted if entry.is_marker), key=lambda entry: entry.appended_ms
        )
        history = CommittedHistory.of(entries, decisions)
        self._histories[key] = len(epochs), len(appended), history
        return history

    # A replica

    def _on_replaced(self, event: SegmentsReplaced, now_ms: int) -> None:
        host = self._hosts[event.host]
        partition = host.partition(*event.key)
        if event.is_done:
            self.check_replica(host, event.key, now_ms)
        elif partition is not None:
            self._update_epochs(event.key, partition)

    def check_replica(self, host: Host, key: PartitionKey, now_ms: int) -> None:
        """Checks the log of a replica up to its high watermark."""
        partition = host.partition(*key)
        if partition is None or (host.name, key) in self._confused:
            return
        self._update_epochs(key, partition)
        where = f"{partition.topic}-{partition.index} of {host.name}"
        history, upto = self._history(key), partition.high_watermark
        content = content_of(partition, upto)
        present = self._check_records(where, history, list(_records_of(content)))
        self._check_removed(where, history, history.entries[:upto], present, now_ms)
        self._check_sequences(where, key, history, content)
        received = {offset for offset in self._received[host.name, key] if offset < upto}
        self._check_deleted(where, history, present, received)

    def _check_records(
        self, where: str, history: CommittedHistory, records: Sequence[ScannedRecord]
    ) -> set[int]:
        """Every record is at its offset, in order. Returns the offsets."""
        last_offset = -1
        for record in records:
            entry = history.entries[record.offset]
            if record.offset <= last_offset:
                raise Violation(f"{where} has offset {record.offset} after {last_offset}")
            if record != (entry.offset, entry.epoch, entry.key, entry.value):
                raise Violation(f"{where} has {record}, where {entry} was appended")
            last_offset = record.offset
        return {record.offset for record in records}

    def _check_removed(
        self,
        where: str,
        history: CommittedHistory,
        expected: Iterable[Entry],
        present: set[int],
        now_ms: int,
    ) -> None:
        for entry in expected:
            if entry.offset not in present and not history.may_be_removed(
                entry, now_ms, self._delete_retention_ms
            ):
                raise Violation(f"{where} has lost {entry}")

    def _check_sequences(
        self, where: str, key: PartitionKey, history: CommittedHistory, content: bytes
    ) -> None:
        """The last batch of an idempotent producer stays, even without records.

        A replica that has only the log, and no snapshot of producers, knows its sequence by it. A
        transaction has a new producer epoch afterwards, and so no sequence that must be known. A
        batch that was never committed may be gone, but it may have been the last one of its
        producer when a log was cleaned.
        """
        headers = [header for _, header in iterate_batches(content)]
        end_offset = headers[-1].next_offset if headers else 0
        present = {header.last_offset for header in headers}
        for producer_id, (offset, epoch) in self._last_batches[key].items():
            if offset >= min(end_offset, len(history.entries)) or offset in present:
                continue
            if history.entries[offset].epoch == epoch:
                raise Violation(
                    f"{where} has lost the sequence of producer {producer_id}, whose last batch "
                    f"ended at {offset}"
                )

    def _check_deleted(
        self, where: str, history: CommittedHistory, present: set[int], received: set[int]
    ) -> None:
        for last in history.last.values():
            if not last.is_tombstone or last.offset in present or last.offset not in received:
                continue
            for entry in history.entries[: last.offset]:
                if entry.key == last.key and entry.offset in present and history.counts(entry):
                    raise Violation(f"{where} has {entry}, but no longer {last}")

    # A reader

    def _check_scan(self, event: Scanned, now_ms: int) -> None:
        partition = self._hosts[event.host].partition(*event.key)
        if partition is not None:
            self._update_epochs(event.key, partition)
        if len(self._epochs[event.key]) < event.end_offset:
            return  # the host has failed meanwhile
        if (event.host, event.key) in self._confused:
            return
        where = f"the scan of {event.topic}-{event.key[1]} on {event.host} by {event.reader}"
        history = self._history(event.key)
        records = [record for record in event.records if record.offset < event.end_offset]
        present = self._check_records(where, history, records)
        if event.is_committed_only:
            for offset in present & (history.aborted | history.open):
                raise Violation(f"{where} has {history.entries[offset]}, which is not committed")
        expected = [
            entry
            for entry in history.last.values()
            if event.start_offset <= entry.offset < event.end_offset
        ]
        self._check_removed(where, history, expected, present, now_ms)

    # The end of a run

    def check_clients(self, key: PartitionKey, leader: Partition) -> None:
        """What was acknowledged is in the history, and transactions ended as they should."""
        self._update_epochs(key, leader)
        history = self._history(key)
        for event in self._acknowledged:
            for number, value in enumerate(event.values):
                entry = history.entries[event.base_offset + number]
                if entry.value != value:
                    raise Violation(
                        f"{event.producer} has {value!r} acknowledged at {entry.offset}: {entry}"
                    )
        for ended in self._transactions:
            for offset in ended.offsets:
                if history.counts(history.entries[offset]) != ended.is_committed:
                    raise Violation(f"{ended}: {history.entries[offset]}")


def _records_of(content: bytes) -> Iterable[ScannedRecord]:
    for position, header in iterate_batches(content):
        for record in read_records(content, position):
            yield ScannedRecord(record.offset, header.leader_epoch, record.key, record.value)
