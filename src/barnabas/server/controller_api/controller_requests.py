"""The APIs that a controller decides."""

from typing import Any

from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.schema import Message

FIRST_VERSION_WITH_POLICY_ERROR = 3


async def handle(request: Message, context: RequestContext) -> Any:
    """The APIs that are one request to the controller and nothing else."""
    timeout_ms = getattr(request, "timeout_ms", 0)
    return await context.controller_node.controller.handle(request, timeout_ms=timeout_ms)


async def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse:
    """DeleteTopics (key 20), unless the settings of this controller forbid it."""
    if not context.controller_node.settings["delete.topic.enable"]:
        if context.api_version < FIRST_VERSION_WITH_POLICY_ERROR:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled: set delete.topic.enable=true to allow it.",
        )
    response: DeleteTopicsResponse = await handle(request, context)
    return response
