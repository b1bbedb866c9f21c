"""The APIs of fetching and acknowledging in share groups.

ShareFetch (key 78): acquire records for a share group, acknowledge others (KIP-932).
v2 renewing acknowledgements, and a strict limit on records.

ShareAcknowledge (key 79): acknowledge records acquired for a share group (KIP-932).
v2 renewing acknowledgements.
"""

from __future__ import annotations

from barnabas.wire.messages.leaders import NodeEndpoint
from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class ShareFetchRequest(Message, api_key=78, versions="1-2", listeners="broker"):
    group_id: string | None = field(default=None)
    member_id: string | None = field()
    share_session_epoch: int32 = field()
    max_wait_ms: int32 = field()
    min_bytes: int32 = field()
    max_bytes: int32 = field(default=0x7FFFFFFF)
    max_records: int32 = field()
    batch_size: int32 = field()
    share_acquire_mode: int8 = field("2+", ignorable=True)
    is_renew_ack: bool = field("2+")
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field()


class FetchTopic(Struct):
    topic_id: uuid = field()
    partitions: list[FetchPartition] = field()


class FetchPartition(Struct):
    partition_index: int32 = field()
    acknowledgement_batches: list[AcknowledgementBatch] = field()


class AcknowledgementBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    acknowledge_types: list[int8] = field()


class ForgottenTopic(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


class ShareFetchResponse(Message, api_key=78, versions="1-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    acquisition_lock_timeout_ms: int32 = field()
    responses: list[ShareFetchableTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field()


class ShareFetchableTopicResponse(Struct):
    topic_id: uuid = field()
    partitions: list[FetchPartitionData] = field()


class FetchPartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    acknowledge_error_code: int16 = field()
    acknowledge_error_message: string | None = field(default=None)
    current_leader: LeaderIdAndEpoch = field()
    records: Records = field()
    acquired_records: list[AcquiredRecords] = field()


class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field()
    leader_epoch: int32 = field()


class AcquiredRecords(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_count: int16 = field()


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", listeners="broker"):
    group_id: string | None = field(default=None)
    member_id: string | None = field()
    share_session_epoch: int32 = field()
    is_renew_ack: bool = field("2+")
    topics: list[AcknowledgeTopic] = field()


class AcknowledgeTopic(Struct):
    topic_id: uuid = field()
    partitions: list[AcknowledgePartition] = field()


class AcknowledgePartition(Struct):
    partition_index: int32 = field()
    acknowledgement_batches: list[AcknowledgementBatch] = field()


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    acquisition_lock_timeout_ms: int32 = field("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field()


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: uuid = field()
    partitions: list[AcknowledgePartitionData] = field()


class AcknowledgePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    current_leader: LeaderIdAndEpoch = field()
