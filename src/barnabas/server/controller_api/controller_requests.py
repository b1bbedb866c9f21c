"""The APIs that are one request to the controller and nothing else."""

from typing import Any

from barnabas.server.request_context import RequestContext
from barnabas.wire.schema import Message


async def handle(request: Message, context: RequestContext) -> Any:
    timeout_ms = getattr(request, "timeout_ms", 0)
    return await context.controller_node.controller.handle(request, timeout_ms=timeout_ms)
