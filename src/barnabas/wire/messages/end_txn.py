"""EndTxn (key 26): commit or abort a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 retriable transaction errors; v5 every transaction ends with an
epoch bump, which the response carries (KIP-890).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64, string


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
