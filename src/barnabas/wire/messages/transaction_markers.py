"""What ends a transaction in a partition: the control record, and its entry in the `.txnindex`."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64


class ControlRecordTypeSchema(Message, versions="0"):
    type: int16 = field()


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int32 = field()


class AbortedTxn(Message, versions="0"):
    producer_id: int64 = field()
    first_offset: int64 = field()
    last_offset: int64 = field()
    last_stable_offset: int64 = field()
