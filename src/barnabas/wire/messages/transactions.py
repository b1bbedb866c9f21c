"""The APIs that add to a transaction and end it.

AddPartitionsToTxn (key 24): add partitions to a transaction.
v2 PRODUCER_FENCED; v3 flexible; v4 several transactions at once, and verification only, between
brokers; v5 retriable transaction errors (KIP-890).

AddOffsetsToTxn (key 25): add a group's offsets to a transaction.
v2 PRODUCER_FENCED; v3 flexible; v4 retriable transaction errors (KIP-890).

EndTxn (key 26): commit or abort a transaction.
v2 PRODUCER_FENCED; v3 flexible; v4 retriable transaction errors; v5 every transaction ends with an
epoch bump, which the response carries (KIP-890).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class AddPartitionsToTxnRequest(
    Message, api_key=24, versions="0-5", flexible="3+", listeners="broker"
):
    transactions: list[AddPartitionsToTxnTransaction] = field("4+")
    v3_and_below_transactional_id: string = field("0-3")
    v3_and_below_producer_id: int64 = field("0-3")
    v3_and_below_producer_epoch: int16 = field("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3")


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    verify_only: bool = field()
    topics: list[AddPartitionsToTxnTopic] = field()


class AddPartitionsToTxnTopic(Struct):
    name: string = field()
    partitions: list[int32] = field()


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3")


class AddPartitionsToTxnResult(Struct):
    transactional_id: string = field()
    topic_results: list[AddPartitionsToTxnTopicResult] = field()


class AddPartitionsToTxnTopicResult(Struct):
    name: string = field()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field()


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int32 = field()
    partition_error_code: int16 = field()


class AddOffsetsToTxnRequest(
    Message, api_key=25, versions="0-4", flexible="3+", listeners="broker"
):
    transactional_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    group_id: string = field()


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+", listeners="broker"):
    transactional_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    committed: bool = field()


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id: int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: int16 = field("5+", default=-1, ignorable=True)
