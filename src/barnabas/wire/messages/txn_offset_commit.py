"""TxnOffsetCommit (key 28): store a group's offsets as part of a transaction.

v2 leader epochs; v3 flexible, member id and generation (KIP-447); v4 retriable transaction errors;
v5 the group joins the transaction by being committed to (KIP-890); v6 topics by id.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class TxnOffsetCommitRequest(
    Message, api_key=28, versions="0-6", flexible="3+", listeners="broker"
):
    transactional_id: string = field()
    group_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    generation_id_or_member_epoch: int32 = field("3+", default=-1)
    member_id: string = field("3+")
    group_instance_id: string | None = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field()


class TxnOffsetCommitRequestTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = field()


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: string | None = field()


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-6", flexible="3+"):
    throttle_time_ms: int32 = field()
    topics: list[TxnOffsetCommitResponseTopic] = field()


class TxnOffsetCommitResponseTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = field()


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
