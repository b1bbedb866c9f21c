"""DeleteTopics (key 20): topics go at once, their files a little later; decided by the controller.

v1 throttles; v5 error messages; v6 by topic id too.
"""

from barnabas.server.call import Call
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_WITH_POLICY_ERROR = 3


async def handle(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    if not call.broker.settings["delete.topic.enable"]:
        if call.api_version < FIRST_VERSION_WITH_POLICY_ERROR:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled: set delete.topic.enable=true to allow it.",
        )
    response: DeleteTopicsResponse = await call.broker.controller.handle(
        request, timeout_ms=request.timeout_ms
    )
    return response
