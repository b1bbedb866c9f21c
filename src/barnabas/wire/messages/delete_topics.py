"""DeleteTopics (key 20): delete topics.

v4 flexible; v5 error messages, THROTTLING_QUOTA_EXCEEDED; v6 topics by id.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class DeleteTopicsRequest(
    Message, api_key=20, versions="1-6", flexible="4+", listeners="broker controller"
):
    topics: list[DeleteTopicState] = field("6+")
    topic_names: list[string] = field("0-5", ignorable=True)
    timeout_ms: int32 = field()


class DeleteTopicState(Struct):
    name: string | None = field(default=None)
    topic_id: uuid = field()


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int32 = field()
    responses: list[DeletableTopicResult] = field()


class DeletableTopicResult(Struct):
    name: string | None = field(nullable="6+")
    topic_id: uuid = field("6+", ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field("5+", default=None, ignorable=True)
