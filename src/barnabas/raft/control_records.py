"""The control records that raft writes, as batches."""

from collections.abc import Sequence

from barnabas.raft.voters import MAX_KRAFT_VERSION, VoterSet
from barnabas.wire.messages.raft_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.control import ControlType, control_key

ControlRecord = tuple[ControlType, bytes]

_VERSION = 0  # of every control record that Kafka 4.3 writes


def control_batch(
    records: Sequence[ControlRecord], now_ms: int, *, base_offset: int = 0, epoch: int = -1
) -> bytearray:
    return build_batch(
        [Record(0, now_ms, control_key(kind), value, []) for kind, value in records],
        base_offset=base_offset,
        leader_epoch=epoch,
        control=True,
    )


def leader_change(
    leader_id: int, voters: Sequence[int], granting_voters: Sequence[int]
) -> ControlRecord:
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderChangeVoter(voter_id=node_id) for node_id in voters],
        granting_voters=[LeaderChangeVoter(voter_id=node_id) for node_id in granting_voters],
    )
    return ControlType.LEADER_CHANGE, message.write(_VERSION)


def voter_records(voters: VoterSet) -> list[ControlRecord]:
    """Returns the records that put voters into the log: kraft.version and the voters."""
    version = KRaftVersionRecord(k_raft_version=MAX_KRAFT_VERSION)
    return [(ControlType.KRAFT_VERSION, version.write(_VERSION)), voters_record(voters)]


def voters_record(voters: VoterSet) -> ControlRecord:
    return ControlType.KRAFT_VOTERS, voters.to_record().write(_VERSION)


def snapshot_header(voters: VoterSet | None, last_timestamp_ms: int) -> list[ControlRecord]:
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)
    records = [(ControlType.SNAPSHOT_HEADER, header.write(_VERSION))]
    return records + voter_records(voters) if voters is not None else records


def snapshot_footer() -> list[ControlRecord]:
    return [(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord().write(_VERSION))]
