"""CreatePartitions (key 37): add partitions to topics.

v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class CreatePartitionsRequest(
    Message, api_key=37, versions="0-3", flexible="2+", listeners="broker controller"
):
    topics: list[CreatePartitionsTopic] = field()
    timeout_ms: int32 = field()
    validate_only: bool = field()


class CreatePartitionsTopic(Struct):
    name: string = field()
    count: int32 = field()
    assignments: list[CreatePartitionsAssignment] | None = field()


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int32] = field()


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[CreatePartitionsTopicResult] = field()


class CreatePartitionsTopicResult(Struct):
    name: string = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
