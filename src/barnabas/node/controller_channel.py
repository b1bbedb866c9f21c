"""Requests to the active controller, in this process or at the leader of the quorum.

While there is no active controller, or its connection breaks, a request waits and is sent again
to the node that leads by then, until the request times out.
"""

import asyncio
import errno
import logging
from abc import ABC, abstractmethod
from typing import Any, Final

from barnabas.raft import Quorum, QuorumLeader
from barnabas.server.controller_api import HANDLERS
from barnabas.server.envelopes import unwrap_response, wrap_request
from barnabas.server.nodes import ControllerNode
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_response, is_not_controller
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.envelope import EnvelopeResponse
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

REQUEST_TIMEOUT_MS: Final = 30_000
"""The timeout of a request that does not bring its own."""

RETRY_S: Final = 0.05
LEADER_CHECK_S: Final = 0.1
"""How often a request in flight checks whether another node leads by now."""

_LIFECYCLE = frozenset({ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT})
_SLOW = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})

log = logging.getLogger(__name__)


class ControllerChannel:
    """Sends requests to the active controller. `local` is this node's own controller, if any."""

    def __init__(
        self, node_id: int, quorum: Quorum, local: ControllerNode | None, peers: Peers
    ) -> None:
        self.quorum = quorum
        self._node_id = node_id
        self._local = local
        self._peers = peers

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """Returns the response to a request of this node; errors have the API's response type."""
        timeout_ms = timeout_ms or REQUEST_TIMEOUT_MS
        return await self._send_until_handled(_BrokerRequest(request, timeout_ms), timeout_ms)

    async def forward(self, request: Message, call: RequestContext) -> Any:
        """Returns the response to a client's request."""
        timeout_ms = max(getattr(request, "timeout_ms", 0), REQUEST_TIMEOUT_MS)
        return await self._send_until_handled(_ForwardedRequest(request, call), timeout_ms)

    async def _send_until_handled(self, request: "_ControllerRequest", timeout_ms: int) -> Message:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while True:
            remaining_s = deadline_s - loop.time()
            response = await self._try(request, remaining_s)
            if response is not None and not is_not_controller(response):
                return response
            if loop.time() + RETRY_S >= deadline_s:
                return request.error(
                    ErrorCode.REQUEST_TIMED_OUT, "No active controller responded in time."
                )
            await asyncio.sleep(RETRY_S)

    async def _try(self, request: "_ControllerRequest", remaining_s: float) -> Message | None:
        """Sends the request once. Returns None if it should be sent again."""
        local = self._local
        if local is not None and local.controller.is_active:
            try:
                return await request.handle_locally(local)
            except KafkaError as error:
                if error.code is ErrorCode.NOT_CONTROLLER:
                    return None
                return request.error(error.code, error.message)
        leader = self.quorum.leader
        if leader is None or leader.node_id == self._node_id:
            return None
        outcome = await self._send(request, leader, remaining_s)
        if not isinstance(outcome, OSError):
            return request.parse(outcome)
        log.debug("no response from the controller: %s", outcome)
        if outcome.errno == errno.EPROTONOSUPPORT:
            return request.error(ErrorCode.UNSUPPORTED_VERSION, str(outcome))
        return None

    def _send(
        self, request: "_ControllerRequest", leader: QuorumLeader, remaining_s: float
    ) -> "asyncio.Future[Message | OSError]":
        """Returns a future of the response, or of the error. A new leader ends the wait too."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message | OSError] = loop.create_future()

        def on_response(outcome: Message | OSError) -> None:
            if not future.done():
                future.set_result(outcome)

        def check_leader() -> None:
            current = self.quorum.leader
            if future.done():
                return
            if current is not None and current.epoch > leader.epoch:
                on_response(ConnectionResetError(errno.ECONNRESET, "another node leads by now"))
            else:
                loop.call_later(LEADER_CHECK_S, check_leader)

        peer = self._peers.at(leader.host, leader.port, request.purpose)
        peer.send(request.message, max(1, int(remaining_s * 1000)), on_response)
        loop.call_later(LEADER_CHECK_S, check_leader)
        return future


class _ControllerRequest(ABC):
    """A request, how it is sent to a controller and how the response is read."""

    def __init__(self, request: Message, version: int, purpose: str) -> None:
        self._request = request
        self._version = version
        self.purpose = purpose
        """Names the connection to use: slow requests must not delay the others."""

    @property
    @abstractmethod
    def message(self) -> Message:
        """The message that is sent to another node."""

    @abstractmethod
    async def handle_locally(self, local: ControllerNode) -> Message:
        """Has the controller in this process handle the request."""

    @abstractmethod
    def parse(self, response: Any) -> Message | None:
        """Returns the response in a node's message, or None if it is not the active controller."""

    def error(self, code: ErrorCode, message: str) -> Message:
        response = error_response(self._request, self._version, code, message)
        assert response is not None, "only Produce with acks=0 has no response"
        return response


class _BrokerRequest(_ControllerRequest):
    """A request of this node itself."""

    def __init__(self, request: Message, timeout_ms: int) -> None:
        purpose = "lifecycle" if request.API_KEY in _LIFECYCLE else "controller"
        super().__init__(request, api(request.API_KEY).stable_versions.max, purpose)
        self._timeout_ms = timeout_ms

    @property
    def message(self) -> Message:
        return self._request

    async def handle_locally(self, local: ControllerNode) -> Message:
        response: Message = await local.controller.handle(
            self._request, timeout_ms=self._timeout_ms
        )
        return response

    def parse(self, response: Message) -> Message:
        return response


class _ForwardedRequest(_ControllerRequest):
    """A client's request, which is forwarded in an Envelope."""

    def __init__(self, request: Message, call: RequestContext) -> None:
        purpose = "forwarding-voters" if request.API_KEY in _SLOW else "forwarding"
        super().__init__(request, call.api_version, purpose)
        self._call = call

    @property
    def message(self) -> Message:
        return wrap_request(self._request, self._call)

    async def handle_locally(self, local: ControllerNode) -> Message:
        handle = HANDLERS[ApiKey(self._request.API_KEY)]
        response: Message = await handle(self._request, self._call.for_controller(local))
        return response

    def parse(self, response: EnvelopeResponse) -> Message | None:
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.NOT_CONTROLLER:
            return None
        key = self._request.API_KEY
        if code is not ErrorCode.NONE or response.response_data is None:
            is_denied = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            log.error(
                "the controller rejected the envelope of %s: %s%s",
                api(key).name,
                code.name,
                "; add the principal of this node to super.users on all nodes" if is_denied else "",
            )
            return self.error(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"The controller rejected the envelope: {code.name}.",
            )
        try:
            return unwrap_response(response.response_data, key, self._call)
        except ProtocolViolation as violation:
            log.error("the response to %s cannot be parsed: %s", api(key).name, violation)
            return self.error(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The controller's response cannot be parsed."
            )
