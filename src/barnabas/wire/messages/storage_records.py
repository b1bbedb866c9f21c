"""Records of producer snapshots, and of the metadata of tiered segments."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uint32,
    uuid,
)


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions="0"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = field()
    start_offset: int64 = field()
    end_offset: int64 = field()
    broker_id: int32 = field()
    max_timestamp_ms: int64 = field()
    event_timestamp_ms: int64 = field()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field()
    segment_size_in_bytes: int32 = field()
    custom_metadata: bytes | None = field(default=None)
    remote_log_segment_state: int8 = field()
    txn_index_empty: bool = field(tag=0)


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = field()
    id: uuid = field()


class TopicIdPartitionEntry(Struct):
    name: string = field()
    id: uuid = field()
    partition: int32 = field()


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int32 = field()
    offset: int64 = field()


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions="0"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = field()
    broker_id: int32 = field()
    event_timestamp_ms: int64 = field()
    custom_metadata: bytes | None = field(default=None)
    remote_log_segment_state: int8 = field()


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions="0"):
    topic_id_partition: TopicIdPartitionEntry = field()
    broker_id: int32 = field()
    event_timestamp_ms: int64 = field()
    remote_partition_delete_state: int8 = field()


class RemoteLogSegmentMetadataSnapshotRecord(Message, api_key=3, versions="0"):
    segment_id: uuid = field()
    start_offset: int64 = field()
    end_offset: int64 = field()
    broker_id: int32 = field()
    max_timestamp_ms: int64 = field()
    event_timestamp_ms: int64 = field()
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field()
    segment_size_in_bytes: int32 = field()
    custom_metadata: bytes | None = field(default=None)
    remote_log_segment_state: int8 = field()
    txn_index_empty: bool = field(tag=0)


class ProducerSnapshot(Message, versions="1", flexible="none"):
    crc: uint32 = field()
    producer_entries: list[ProducerEntry] = field()


class ProducerEntry(Struct):
    producer_id: int64 = field()
    epoch: int16 = field()
    last_sequence: int32 = field()
    last_offset: int64 = field()
    offset_delta: int32 = field()
    timestamp: int64 = field()
    coordinator_epoch: int32 = field()
    current_txn_first_offset: int64 = field()
