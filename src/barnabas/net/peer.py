"""One peer: requests out in order, answers back in the same order, each within its time.

The first request opens the connection. Before it leaves, the peer tells which versions it speaks
and is told who we are (see `barnabas.net.greeting`); what is asked meanwhile waits. When the
connection breaks, everybody who waits is told, and the next request opens a new one: whether to
ask again is for those to say who asked.
"""

import asyncio
import errno
import logging
import random
import socket
from collections.abc import Callable
from math import inf

from barnabas.net.counters import Counters
from barnabas.net.dial import Dial
from barnabas.net.formats import Format, Formats
from barnabas.net.gathered import parts_of
from barnabas.net.greeting import Greeted, Proof, Talk, authenticate, greet
from barnabas.net.link import Link, Socket
from barnabas.net.sasl import AuthenticationFailed, Sasl
from barnabas.net.terms import Terms
from barnabas.net.tls import Handshake
from barnabas.net.unanswered import Asked, Unanswered
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.peer import Answered
from barnabas.wire.schema import Message

log = logging.getLogger(__name__)

MAX_UNANSWERED = 1000
"""Requests to one peer that may be under way or wait for the connection."""

_LARGEST_ID = 2**31 - 1
_SESSION_SPENT = (0.85, 0.95)
"""The part of a session after which we prove again who we are, not all at the same time."""


def _ignore(*_: object) -> None:
    pass


class SocketPeer:
    """A `barnabas.wire.peer.Peer` over TCP.

    `changed` is called with None when a connection is ready, and with the reason when one broke
    or could not be made; `closed` when it was closed from here.
    """

    __slots__ = (
        "_changed",
        "_client_id",
        "_closed",
        "_counters",
        "_formats",
        "_last_id",
        "_link",
        "_loop",
        "_opening",
        "_proving",
        "_talk",
        "_terms",
        "_timer",
        "_timers",
        "_unanswered",
        "_used_s",
        "host",
        "port",
    )

    def __init__(
        self,
        terms: Terms,
        host: str,
        port: int,
        client_id: str,
        *,
        counters: Counters | None = None,
        changed: Callable[[OSError | None], None] = _ignore,
        closed: Callable[[], None] = _ignore,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id.encode()
        self._terms = terms
        self._loop = terms.loop
        self._counters = counters or Counters()
        self._changed = changed
        self._closed = closed
        self._opening: Dial | Handshake | None = None
        self._link: Link | None = None  # while connected
        self._proving: asyncio.Task[None] | None = None  # while who we are is being found out
        self._talk: Talk | None = None  # while greeting, or proving once more who we are
        self._formats: Formats | None = None  # once the peer has told what it speaks
        self._unanswered = Unanswered()
        self._last_id = 0
        self._used_s = 0.0
        self._timer: asyncio.TimerHandle | None = None  # of the requests
        self._timers: list[asyncio.TimerHandle] = []  # of the connection

    def send(
        self,
        request: Message,
        timeout_ms: int,
        answered: Answered | None,
        *,
        newest_version: int | None = None,
    ) -> None:
        """Ask it, in no later version than `newest_version`.

        A Produce request without acknowledgement has no answer: `answered`, if there is one, is
        then given None when the request has left.
        """
        deadline_s = self._loop.time() + timeout_ms / 1000
        asked = Asked(request, answered, deadline_s, newest_version)
        if len(self._unanswered) >= MAX_UNANSWERED:
            failure = OSError(errno.ENOBUFS, f"{MAX_UNANSWERED} requests are unanswered already")
            self._loop.call_soon(self._tell, asked, self._named(failure))
            return
        self._watch(deadline_s)
        if self._formats is not None and self._talk is None:
            self._transmit(asked, self._formats)
            return
        self._unanswered.waiting.append(asked)
        self.open()

    def open(self) -> None:
        """Connect, if that is not done or under way."""
        if self._opening is not None or self._link is not None:
            return
        terms = self._terms
        self._opening = Dial(
            self._loop, self.host, self.port, terms.prepare, self._connected, self._fail
        )
        if terms.connect_timeout_ms is not None:
            self._after(terms.connect_timeout_ms, self._not_connected_in_time)

    @property
    def is_open(self) -> bool:
        """Whether a request would leave at once."""
        return self._formats is not None

    @property
    def is_opening(self) -> bool:
        return self._formats is None and (self._opening is not None or self._link is not None)

    def version(self, key: int) -> int | None:
        """In which version an API is spoken, once connected; None if it is not."""
        return None if self._formats is None else self._formats.version(key)

    def close(self) -> None:
        self._closed()
        self._hang_up(ConnectionAbortedError(errno.ECONNABORTED, "closed by this node"))

    # Connecting

    def _connected(self, sock: socket.socket) -> None:
        tls = self._terms.tls
        if tls is None:
            self._secured(sock)
            return
        try:
            self._opening = Handshake(self._loop, sock, tls, self.host, self._secured, self._fail)
        except OSError as failure:  # the other side has hung up already
            sock.close()
            self._fail(failure)

    def _secured(self, sock: Socket) -> None:
        self._opening = None
        terms = self._terms
        self._link = Link(
            sock,
            self._loop,
            terms.buffers,
            terms.largest_answer_bytes,
            received=self._received,
            broken=self._broke,
        )
        self._counters.connections += 1
        self._counters.connects += 1
        if terms.sasl is None:
            self._converse(greet(None))
        else:
            self._prove(terms.sasl, greet)

    def _prove(self, sasl: Sasl, talk: Callable[[Proof], Talk]) -> None:
        """Find out who we are (a token may have to be fetched), then tell it."""

        async def prove() -> None:
            try:
                proof = Proof(sasl.mechanism, await sasl.exchange())
            except AuthenticationFailed as failure:
                self._fail(failure)
            else:
                self._converse(talk(proof))

        self._proving = self._loop.create_task(prove())

    def _converse(self, talk: Talk) -> None:
        self._proving = None
        self._talk = talk
        self._say_next(None)

    def _say_next(self, heard: object) -> None:
        if self._talk is None or isinstance(heard, OSError):
            return  # the connection broke, which others are told too
        try:
            request, spoken = self._talk.send(heard)
        except StopIteration as done:
            self._greeted(done.value)
        except OSError as failure:
            self._fail(failure)
        except ProtocolViolation as violation:
            self._fail(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        else:
            self._write(Asked(request, self._say_next, inf), spoken)

    def _greeted(self, greeted: Greeted) -> None:
        is_new = self._formats is None
        self._talk = None
        self._cancel_timers()
        formats = self._formats = greeted.formats
        if self._terms.max_idle_ms:
            self._used_s = self._loop.time()
            self._after(self._terms.max_idle_ms, self._look_whether_idle)
        if greeted.session_lifetime_ms and self._terms.sasl is not None:
            spent = random.uniform(*_SESSION_SPENT)
            self._after(greeted.session_lifetime_ms * spent, self._prove_again)
        if is_new:
            self._changed(None)
        for asked in self._unanswered.take_waiting():
            self._transmit(asked, formats)

    def _prove_again(self) -> None:
        """What is asked from here on waits, until the peer believes us once more."""
        sasl, formats = self._terms.sasl, self._formats
        assert sasl is not None
        assert formats is not None
        self._prove(sasl, lambda proof: authenticate(formats, proof))

    # Asking and being answered

    def _transmit(self, asked: Asked, formats: Formats) -> None:
        try:
            spoken = formats.of(asked.request.API_KEY, asked.newest_version)
            self._write(asked, spoken)
        except OSError as unspoken:
            self._loop.call_soon(self._tell, asked, self._named(unspoken))

    def _write(self, asked: Asked, spoken: Format) -> None:
        if self._link is None:
            return  # somebody who was answered has closed it; nobody waits any more
        asked.format = spoken
        asked.correlation_id = self._last_id = self._last_id % _LARGEST_ID + 1
        frame = spoken.encode(asked.request, asked.correlation_id, self._client_id)
        self._used_s = asked.sent_s = self._loop.time()
        counters = self._counters
        counters.requests += 1
        counters.bytes_out += frame.size_bytes
        by_api = counters.requests_by_api
        by_api[spoken.key] = by_api.get(spoken.key, 0) + 1
        if spoken.key == ApiKey.PRODUCE and not asked.request.acks:  # type: ignore[attr-defined]
            self._unanswered.leaving.append(asked)
            self._link.send(parts_of(frame), lambda: self._left(asked))
            return
        counters.unanswered += 1
        self._unanswered.sent.append(asked)
        self._link.send(parts_of(frame))

    def _left(self, asked: Asked) -> None:
        leaving = self._unanswered.leaving
        if leaving and leaving[0] is asked:
            leaving.popleft()
            self._tell(asked, None)

    def _received(self, frame: memoryview) -> None:
        sent = self._unanswered.sent
        if not sent:
            raise ProtocolViolation("it answered what nobody asked")
        asked = sent[0]
        response = asked.format.decode(frame, asked.correlation_id)
        sent.popleft()
        self._used_s = self._loop.time()
        self._count(asked, response, len(frame))
        self._tell(asked, response)

    def _count(self, asked: Asked, response: Message, size_bytes: int) -> None:
        counters = self._counters
        latency_s = self._used_s - asked.sent_s
        counters.responses += 1
        counters.unanswered -= 1
        counters.bytes_in += size_bytes + 4
        counters.latency_s += latency_s
        counters.latency_max_s = max(counters.latency_max_s, latency_s)
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms:
            counters.throttled += 1
            counters.throttle_ms = throttle_ms

    def _tell(self, asked: Asked, outcome: Message | OSError | None) -> None:
        if asked.answered is None:
            return
        try:
            asked.answered(outcome)
        except Exception:
            # Whoever asked is at fault: the connection and the others who use it are not.
            log.exception("an answer of %s:%d was not handled", self.host, self.port)

    # Ending

    def _broke(self, failure: OSError) -> None:
        if self._formats is None and isinstance(failure, ConnectionResetError):
            reason = "it hung up on the first request (is security.protocol what it expects?)"
            failure = ConnectionResetError(errno.ECONNRESET, reason)
        self._fail(failure)

    def _fail(self, failure: OSError) -> None:
        """The connection broke, or cannot be made."""
        named = self._named(failure)
        if self._formats is None:
            self._counters.failed_connects += 1
        if isinstance(failure, AuthenticationFailed):
            self._counters.failed_authentications += 1
        self._changed(named)
        self._hang_up(failure)

    def _hang_up(self, reason: OSError) -> None:
        """No answer is to be had any more by this connection."""
        if self._opening is not None:
            self._opening.cancel()
        if self._proving is not None:
            self._proving.cancel()
        if self._link is not None:
            self._link.close()
            self._counters.connections -= 1
            self._counters.disconnects += 1
        if self._timer is not None:
            self._timer.cancel()
        self._cancel_timers()
        self._opening = self._link = self._formats = None
        self._proving = self._talk = self._timer = None
        self._counters.unanswered -= len(self._unanswered.sent)
        named = self._named(reason)
        for asked in self._unanswered.take_all():
            self._tell(asked, named)

    def _named(self, failure: OSError) -> OSError:
        """The same failure, saying whose it is."""
        reason = f"{self.host}:{self.port}: {failure.strerror or failure}"
        return type(failure)(failure.errno, reason)

    # Time

    def _after(self, pause_ms: float, then: Callable[[], None]) -> None:
        now_s = self._loop.time()
        self._timers = [timer for timer in self._timers if timer.when() > now_s]
        self._timers.append(self._loop.call_at(now_s + pause_ms / 1000, then))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _not_connected_in_time(self) -> None:
        timeout_ms = self._terms.connect_timeout_ms
        self._fail(OSError(errno.EHOSTUNREACH, f"no connection within {timeout_ms} ms"))

    def _look_whether_idle(self) -> None:
        max_idle_ms = self._terms.max_idle_ms
        idle_ms = (self._loop.time() - self._used_s) * 1000
        if self._unanswered or idle_ms < max_idle_ms:
            self._after(max(1, max_idle_ms - idle_ms), self._look_whether_idle)
        else:
            self._hang_up(ConnectionAbortedError(errno.ECONNABORTED, "idle for too long"))

    def _watch(self, deadline_s: float) -> None:
        """Look at the deadlines at that time, if not earlier: one timer serves all requests."""
        if self._timer is not None:
            if self._timer.when() <= deadline_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline_s, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        if self._terms.connect_timeout_ms is not None:
            # Making the connection has its own time, however little a request has.
            named = self._named(TimeoutError(errno.ETIMEDOUT, "not connected in time"))
            for asked in self._unanswered.take_late(now_s):
                self._tell(asked, named)
        earliest_s = self._unanswered.earliest_s()
        if earliest_s == inf:
            return
        if earliest_s > now_s:
            self._watch(earliest_s)
        else:
            # Those behind it wait for the same silent peer.
            self._counters.timeouts += 1
            self._fail(TimeoutError(errno.ETIMEDOUT, "no answer in time"))
