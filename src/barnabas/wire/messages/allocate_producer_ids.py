"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64


class AllocateProducerIdsRequest(
    Message, api_key=67, versions="0", flexible="0+", listeners="controller"
):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id_start: int64 = field()
    producer_id_len: int32 = field()
