"""DescribeTransactions (key 65): state and partitions of transactions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DescribeTransactionsRequest(
    Message, api_key=65, versions="0", flexible="0+", listeners="broker"
):
    transactional_ids: list[string] = field()


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    transaction_states: list[TransactionState] = field()


class TransactionState(Struct):
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
