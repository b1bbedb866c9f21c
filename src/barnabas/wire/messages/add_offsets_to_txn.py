"""AddOffsetsToTxn (key 25): add a group's offsets to a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 retriable transaction errors (KIP-890).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64, string


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
