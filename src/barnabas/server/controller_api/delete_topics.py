"""DeleteTopics (key 20), unless the settings of this controller forbid it."""

from barnabas.server.controller_api import controller_requests
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_WITH_POLICY_ERROR = 3


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    if not context.controller_node.settings["delete.topic.enable"]:
        if context.api_version < FIRST_VERSION_WITH_POLICY_ERROR:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled: set delete.topic.enable=true to allow it.",
        )
    response: DeleteTopicsResponse = await controller_requests.handle(request, context)
    return response
