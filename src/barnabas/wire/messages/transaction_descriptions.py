"""The APIs that describe transactions and producers.

DescribeTransactions (key 65): state and partitions of transactions.

ListTransactions (key 66): the transactions a broker coordinates.
v1 filter by duration; v2 filter by a pattern of the id (KIP-1152).

DescribeProducers (key 61): the active producers of partitions.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=65, versions="0", listeners="broker"):
    transactional_ids: list[string] = field()


class DescribeTransactionsResponse(Message, api_key=65, versions="0"):
    throttle_time_ms: int32 = field()
    transaction_states: list[DescribedTransactionState] = field()


class DescribedTransactionState(Struct):
    error_code: int16 = field()
    transactional_id: string = field()
    transaction_state: string = field()
    transaction_timeout_ms: int32 = field()
    transaction_start_time_ms: int64 = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    topics: list[TopicData] = field()


class TopicData(Struct):
    topic: string = field()
    partitions: list[int32] = field()


class ListTransactionsRequest(Message, api_key=66, versions="0-2", listeners="broker"):
    state_filters: list[string] = field()
    producer_id_filters: list[int64] = field()
    duration_filter: int64 = field("1+", default=-1)
    transactional_id_pattern: string | None = field("2+", default=None)


class ListTransactionsResponse(Message, api_key=66, versions="0-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    unknown_state_filters: list[string] = field()
    transaction_states: list[ListedTransactionState] = field()


class ListedTransactionState(Struct):
    transactional_id: string = field()
    producer_id: int64 = field()
    transaction_state: string = field()


class DescribeProducersRequest(Message, api_key=61, versions="0", listeners="broker"):
    topics: list[TopicRequest] = field()


class TopicRequest(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class DescribeProducersResponse(Message, api_key=61, versions="0"):
    throttle_time_ms: int32 = field()
    topics: list[TopicResponse] = field()


class TopicResponse(Struct):
    name: string = field()
    partitions: list[PartitionResponse] = field()


class PartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    active_producers: list[ProducerState] = field()


class ProducerState(Struct):
    producer_id: int64 = field()
    producer_epoch: int32 = field()
    last_sequence: int32 = field(default=-1)
    last_timestamp: int64 = field(default=-1)
    coordinator_epoch: int32 = field()
    current_txn_start_offset: int64 = field(default=-1)
