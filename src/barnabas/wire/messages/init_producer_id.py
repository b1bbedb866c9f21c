"""InitProducerId (key 22)."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions="0-6", flexible="2+", listeners="broker"):
    transactional_id: string | None = field()
    transaction_timeout_ms: int32 = field()
    producer_id: int64 = field("3+", default=-1)
    producer_epoch: int16 = field("3+", default=-1)
    enable2_pc: bool = field("6+")
    keep_prepared_txn: bool = field("6+")


class InitProducerIdResponse(Message, api_key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id: int64 = field(default=-1)
    producer_epoch: int16 = field()
    ongoing_txn_producer_id: int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: int16 = field("6+", default=-1)
