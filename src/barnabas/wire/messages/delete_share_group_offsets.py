"""DeleteShareGroupOffsets (key 92): delete the offsets of a share group by topic."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(
    Message, api_key=92, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field()


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field()


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
