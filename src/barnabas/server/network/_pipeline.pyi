import asyncio
from typing import Any

from barnabas.server.network._clock import ServerClock
from barnabas.server.network._response_queue import ResponseQueue
from barnabas.server.network._route import Route
from barnabas.server.network.routes import RouteTable
from barnabas.server.nodes import BrokerNode, ControllerNode
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

class RequestSource:
    responses: ResponseQueue | Any
    received_ms: int
    received_ns: int
    @property
    def last_client_id(self) -> str: ...

class RequestPipeline:
    clock: ServerClock
    quotas: RequestQuotas
    def __init__(
        self,
        node: BrokerNode | ControllerNode,
        loop: asyncio.AbstractEventLoop,
        routes: RouteTable | None = None,
    ) -> None: ...
    def handle(self, source: RequestSource, frame: memoryview) -> None: ...
    def encode(
        self,
        route: Route,
        request: Message,
        context: RequestContext,
        response: Message,
        out: Outgoing,
    ) -> None: ...
    def build_error_response(
        self, route: Route, request: Message, context: RequestContext, failure: BaseException
    ) -> Message | None: ...
