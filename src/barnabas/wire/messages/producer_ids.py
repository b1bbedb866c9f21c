"""The APIs that allocate producer ids.

InitProducerId (key 22): a producer id and epoch for an idempotent or transactional producer.
v2 flexible; v3 an epoch bump of an existing id (KIP-360); v4 PRODUCER_FENCED; v5 retriable
transaction errors (KIP-890); v6 two-phase commit (KIP-939), not yet stable.

AllocateProducerIds (key 67): a broker requests a block of producer ids from the controller.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64, string


class InitProducerIdRequest(
    Message, api_key=22, versions="0-6", flexible="2+", latest_unstable=True, listeners="broker"
):
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


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", listeners="controller"):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id_start: int64 = field()
    producer_id_len: int32 = field()
