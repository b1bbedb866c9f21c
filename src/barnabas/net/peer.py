"""One peer: requests out in order, answers back in the same order, each within its time.

The first request opens the connection. Before it leaves, the peer tells which versions it speaks
(ApiVersions); what is asked meanwhile waits. When the connection breaks, everybody who waits is
told, and the next request opens a new one: whether to ask again is for those to say who asked.
"""

import asyncio
import errno
import logging
import socket
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

from barnabas.net.dial import Dial
from barnabas.net.formats import API_VERSIONS, Format, Formats
from barnabas.net.link import Link
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.peer import Answered
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.net.peers import SocketPeers

log = logging.getLogger(__name__)

MAX_UNANSWERED = 1000
"""Requests to one peer that may be under way or wait for the connection."""

_SOFTWARE = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
_LARGEST_ID = 2**31 - 1


class SocketPeer:
    """A `barnabas.wire.peer.Peer` over TCP."""

    __slots__ = (
        "_client_id",
        "_dial",
        "_formats",
        "_last_id",
        "_link",
        "_loop",
        "_peers",
        "_sent",
        "_timer",
        "_waiting",
        "host",
        "port",
        "purpose",
    )

    def __init__(
        self, peers: "SocketPeers", host: str, port: int, purpose: str, client_id: str
    ) -> None:
        self.host = host
        self.port = port
        self.purpose = purpose
        self._client_id = client_id.encode()
        self._peers = peers
        self._loop = peers.loop
        self._dial: Dial | None = None  # while connecting
        self._link: Link | None = None  # while connected
        self._formats: Formats | None = None  # once the peer has told what it speaks
        self._waiting: deque[_Asked] = deque()  # until then
        self._sent: deque[_Asked] = deque()
        self._last_id = 0
        self._timer: asyncio.TimerHandle | None = None

    def send(self, request: Message, timeout_ms: int, answered: Answered) -> None:
        asked = _Asked(request, answered, self._loop.time() + timeout_ms / 1000)
        if len(self._sent) + len(self._waiting) >= MAX_UNANSWERED:
            failure = OSError(errno.ENOBUFS, f"{MAX_UNANSWERED} requests are unanswered already")
            self._loop.call_soon(self._tell, asked, self._named(failure))
            return
        self._watch(asked.deadline_s)
        if self._formats is not None:
            self._transmit(asked, self._formats)
            return
        self._waiting.append(asked)
        if self._dial is None and self._link is None:
            self._dial = Dial(self._loop, self.host, self.port, self._connected, self._fail)

    def version(self, key: int) -> int | None:
        """In which version an API is spoken, once connected; None if it is not."""
        return None if self._formats is None else self._formats.version(key)

    def close(self) -> None:
        self._peers.forget(self)
        self._fail(ConnectionAbortedError(errno.ECONNABORTED, "closed by this node"))

    # Connecting

    def _connected(self, sock: socket.socket) -> None:
        self._dial = None
        peers = self._peers
        self._link = Link(
            sock,
            self._loop,
            peers.buffers,
            peers.largest_answer_bytes,
            received=self._greeted,
            broken=self._fail,
        )
        self._link.send(API_VERSIONS.encode(_SOFTWARE, self._next_id(), self._client_id))

    def _greeted(self, frame: memoryview) -> None:
        """The first frame: which versions the peer speaks."""
        spoken: Any = API_VERSIONS.decode(frame, self._last_id)
        if spoken.error_code != ErrorCode.NONE:
            code = ErrorCode.of(spoken.error_code)
            raise ProtocolViolation(f"it answered ApiVersions with {code.name}")
        assert self._link is not None, "frames come by the link"
        self._link.received = self._received
        self._formats = Formats(spoken)
        waiting, self._waiting = self._waiting, deque()
        for asked in waiting:
            self._transmit(asked, self._formats)

    # Asking and being answered

    def _transmit(self, asked: "_Asked", formats: Formats) -> None:
        assert self._link is not None, "versions were told by the link"
        asked.correlation_id = self._next_id()
        try:
            asked.format = formats.of(asked.request.API_KEY)
            frame = asked.format.encode(asked.request, asked.correlation_id, self._client_id)
        except OSError as unspoken:
            self._loop.call_soon(self._tell, asked, self._named(unspoken))
            return
        self._sent.append(asked)
        self._link.send(frame)

    def _received(self, frame: memoryview) -> None:
        if not self._sent:
            raise ProtocolViolation("it answered what nobody asked")
        asked = self._sent[0]
        response = asked.format.decode(frame, asked.correlation_id)
        self._sent.popleft()
        self._tell(asked, response)

    def _tell(self, asked: "_Asked", outcome: Message | OSError) -> None:
        try:
            asked.answered(outcome)
        except Exception:
            # Whoever asked is at fault: the connection and the others who use it are not.
            log.exception("an answer of %s:%d was not handled", self.host, self.port)

    def _fail(self, failure: OSError) -> None:
        """No answer is to be had any more by this connection."""
        if self._dial is not None:
            self._dial.cancel()
        if self._link is not None:
            self._link.close()
        if self._timer is not None:
            self._timer.cancel()
        self._dial = self._link = self._formats = self._timer = None
        unanswered = [*self._sent, *self._waiting]
        self._sent.clear()
        self._waiting.clear()
        named = self._named(failure)
        for asked in unanswered:
            self._tell(asked, named)

    def _named(self, failure: OSError) -> OSError:
        """The same failure, saying whose it is."""
        return type(failure)(
            failure.errno, f"{self.host}:{self.port}: {failure.strerror or failure}"
        )

    def _next_id(self) -> int:
        self._last_id = self._last_id % _LARGEST_ID + 1
        return self._last_id

    # Time

    def _watch(self, deadline_s: float) -> None:
        """Look at the deadlines at that time, if not earlier: one timer serves all requests."""
        if self._timer is not None:
            if self._timer.when() <= deadline_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline_s, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._timer = None
        unanswered = chain(self._sent, self._waiting)
        earliest_s = min((asked.deadline_s for asked in unanswered), default=None)
        if earliest_s is None:
            return
        if earliest_s > self._loop.time():
            self._watch(earliest_s)
        else:
            # Those behind it wait for the same silent peer.
            self._fail(TimeoutError(errno.ETIMEDOUT, "no answer in time"))


class _Asked:
    """One request and who asked it."""

    __slots__ = ("answered", "correlation_id", "deadline_s", "format", "request")

    format: Format
    correlation_id: int

    def __init__(self, request: Message, answered: Answered, deadline_s: float) -> None:
        self.request = request
        self.answered = answered
        self.deadline_s = deadline_s
