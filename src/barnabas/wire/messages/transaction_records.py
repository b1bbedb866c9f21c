"""Records of `__transaction_state`: the state of each transaction.

v1 flexible, producer ids before and after an epoch bump (KIP-890).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string


class TransactionLogKey(Message, api_key=0, versions="0", flexible="none"):
    transactional_id: string = field()


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible="1+"):
    producer_id: int64 = field()
    previous_producer_id: int64 = field("1+", tag=0, default=-1)
    next_producer_id: int64 = field("1+", tag=1, default=-1)
    producer_epoch: int16 = field()
    next_producer_epoch: int16 = field("1+", tag=3, default=-1)
    transaction_timeout_ms: int32 = field()
    transaction_status: int8 = field()
    transaction_partitions: list[PartitionsSchema] | None = field()
    transaction_last_update_timestamp_ms: int64 = field()
    transaction_start_timestamp_ms: int64 = field()
    client_transaction_version: int16 = field("1+", tag=2)


class PartitionsSchema(Struct):
    topic: string = field()
    partition_ids: list[int32] = field()
