"""The active controller, wherever it is: in this process, or at the leader of the quorum.

Whoever asks need not know. While there is none, or the one that was asked is lost, the question
waits and is asked again, of whoever leads by then, until its time is over.
"""

import asyncio
import errno
import logging
from abc import ABC, abstractmethod
from typing import Any, Final

from barnabas.raft import Quorum, QuorumLeader
from barnabas.server.call import Call
from barnabas.server.controller_api import HANDLERS
from barnabas.server.controller_node import ControllerNode
from barnabas.server.envelopes import open_answer, seal
from barnabas.server.errors import error_response, is_from_a_standby
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.envelope import EnvelopeResponse
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

REQUEST_TIMEOUT_MS: Final = 30_000
"""How long a question may wait that has no time of its own."""

RETRY_S: Final = 0.05
LOOK_S: Final = 0.1
"""How often a question under way looks whether another node leads by now."""

_LIFECYCLE = frozenset({ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT})
_SLOW = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})

log = logging.getLogger(__name__)


class ControllerChannel:
    """What `Broker.controller` is. `local` is this node's own controller, if it has one."""

    def __init__(
        self, node_id: int, quorum: Quorum, local: ControllerNode | None, peers: Peers
    ) -> None:
        self.quorum = quorum
        self._node_id = node_id
        self._local = local
        self._peers = peers

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """The answer to what this node asks; a failure has the shape of the API's answers."""
        return await self._ask(_Own(request, timeout_ms), timeout_ms or REQUEST_TIMEOUT_MS)

    async def forward(self, request: Message, call: Call) -> Any:
        """The answer to what a client asks, by `call`."""
        timeout_ms = max(getattr(request, "timeout_ms", 0), REQUEST_TIMEOUT_MS)
        return await self._ask(_Clients(request, call), timeout_ms)

    async def _ask(self, question: "_Question", timeout_ms: int) -> Message:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while True:
            left_s = deadline_s - loop.time()
            answer = await self._try(question, left_s)
            if answer is not None and not is_from_a_standby(answer):
                return answer
            if loop.time() + RETRY_S >= deadline_s:
                return question.refusal(
                    ErrorCode.REQUEST_TIMED_OUT, "No active controller answered in time."
                )
            await asyncio.sleep(RETRY_S)

    async def _try(self, question: "_Question", left_s: float) -> Message | None:
        """Ask once; None if nobody answered, who might later."""
        local = self._local
        if local is not None and local.controller.is_active:
            return await question.ask_here(local)
        leader = self.quorum.leader
        if leader is None or leader.node_id == self._node_id:
            return None
        outcome = await self._send(question, leader, left_s)
        if not isinstance(outcome, OSError):
            return question.understand(outcome)
        log.debug("the controller did not answer: %s", outcome)
        if outcome.errno == errno.EPROTONOSUPPORT:
            return question.refusal(ErrorCode.UNSUPPORTED_VERSION, str(outcome))
        return None

    def _send(
        self, question: "_Question", leader: QuorumLeader, left_s: float
    ) -> "asyncio.Future[Message | OSError]":
        """The response, or why there is none; also that another node leads by now."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Message | OSError] = loop.create_future()

        def answered(outcome: Message | OSError) -> None:
            if not told.done():
                told.set_result(outcome)

        def look() -> None:
            now = self.quorum.leader
            if told.done():
                return
            if now is not None and now.epoch > leader.epoch:
                answered(ConnectionResetError(errno.ECONNRESET, "another node leads by now"))
            else:
                loop.call_later(LOOK_S, look)

        peer = self._peers.at(leader.host, leader.port, question.purpose)
        peer.send(question.message, max(1, int(left_s * 1000)), answered)
        loop.call_later(LOOK_S, look)
        return told


class _Question(ABC):
    """What is asked, and how its answers are to be understood."""

    def __init__(self, request: Message, version: int, purpose: str) -> None:
        self._request = request
        self._version = version
        self.purpose = purpose
        """The connection it goes by: what is slow must not hold up the rest."""

    @property
    @abstractmethod
    def message(self) -> Message:
        """What goes to another node."""

    @abstractmethod
    async def ask_here(self, local: ControllerNode) -> Message:
        """Ask the controller in this process."""

    @abstractmethod
    def understand(self, response: Any) -> Message | None:
        """The answer in another node's response; None if it is not the active controller."""

    def refusal(self, code: ErrorCode, message: str) -> Message:
        refusal = error_response(self._request, self._version, code, message)
        assert refusal is not None, "only a producer may want no answer"
        return refusal


class _Own(_Question):
    """What this node asks by itself."""

    def __init__(self, request: Message, timeout_ms: int) -> None:
        purpose = "lifecycle" if request.API_KEY in _LIFECYCLE else "controller"
        super().__init__(request, api(request.API_KEY).stable_versions.max, purpose)
        self._timeout_ms = timeout_ms

    @property
    def message(self) -> Message:
        return self._request

    async def ask_here(self, local: ControllerNode) -> Message:
        answer: Message = await local.controller.handle(self._request, timeout_ms=self._timeout_ms)
        return answer

    def understand(self, response: Message) -> Message:
        return response


class _Clients(_Question):
    """What a client asks, which travels in an envelope."""

    def __init__(self, request: Message, call: Call) -> None:
        purpose = "forwarding-voters" if request.API_KEY in _SLOW else "forwarding"
        super().__init__(request, call.api_version, purpose)
        self._call = call

    @property
    def message(self) -> Message:
        return seal(self._request, self._call)

    async def ask_here(self, local: ControllerNode) -> Message:
        handle = HANDLERS[ApiKey(self._request.API_KEY)]
        answer: Message = await handle(self._request, self._call.asked_of(local))
        return answer

    def understand(self, response: EnvelopeResponse) -> Message | None:
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.NOT_CONTROLLER:
            return None
        key = self._request.API_KEY
        if code is not ErrorCode.NONE or response.response_data is None:
            log.error("the controller refused to take %s: %s", api(key).name, code.name)
            return self.refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The controller refused the envelope: {code.name}."
            )
        try:
            return open_answer(response.response_data, key, self._call)
        except ProtocolViolation as violation:
            log.error("the controller's answer to %s cannot be read: %s", api(key).name, violation)
            return self.refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The answer cannot be read.")
