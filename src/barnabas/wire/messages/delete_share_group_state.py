"""DeleteShareGroupState (key 86): delete the stored state of share partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class DeleteShareGroupStateRequest(
    Message, api_key=86, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[DeleteStateData] = field()


class DeleteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition: int32 = field()


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    results: list[DeleteStateResult] = field()


class DeleteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
