"""The API that ends transactions in partitions, and the records of the end.

WriteTxnMarkers (key 27): a coordinator sends the ends of transactions to partition leaders.
v1 flexible; v2 the transaction's protocol version.

EndTxnMarker is the control record of the end, AbortedTxn its entry in the `.txnindex`.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(
    Message, api_key=27, versions="1-2", flexible="1+", listeners="broker"
):
    markers: list[WritableTxnMarker] = field()


class WritableTxnMarker(Struct):
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    transaction_result: bool = field()
    topics: list[WritableTxnMarkerTopic] = field()
    coordinator_epoch: int32 = field()
    transaction_version: int8 = field("2+", ignorable=True)


class WritableTxnMarkerTopic(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WritableTxnMarkerResult] = field()


class WritableTxnMarkerResult(Struct):
    producer_id: int64 = field()
    topics: list[WritableTxnMarkerTopicResult] = field()


class WritableTxnMarkerTopicResult(Struct):
    name: string = field()
    partitions: list[WritableTxnMarkerPartitionResult] = field()


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


class ControlRecordTypeSchema(Message, versions="0", flexible="none"):
    type: int16 = field()


class EndTxnMarker(Message, versions="0", flexible="none"):
    coordinator_epoch: int32 = field()


class AbortedTxn(Message, versions="0", flexible="none"):
    producer_id: int64 = field()
    first_offset: int64 = field()
    last_offset: int64 = field()
    last_stable_offset: int64 = field()
