"""The TLS handshakes of a server's connections, before anything is known of the clients.

Their computations run in a few threads: OpenSSL releases the GIL. A client that sends nothing
costs a socket and no thread. Handshakes are bounded in number, in time and in bytes.
"""

import asyncio
import logging
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from barnabas.net.failure_log import FailureLog
from barnabas.net.tls_errors import explain_to_server
from barnabas.net.tls_socket import Step, TlsHandshake, TlsSocket
from barnabas.security.tls.principal_mapping import NoMatchingRuleError
from barnabas.server.metrics.registry import Gauge

if TYPE_CHECKING:
    from barnabas.security.tls.listener_tls import ListenerTls
    from barnabas.server.network._connection import ClientConnection

log = logging.getLogger(__name__)

MAX_HANDSHAKES: Final = 1024
"""Handshakes in progress. Beyond that the oldest is closed: honest clients need milliseconds."""

TIMEOUT_MS: Final = 10_000
THREADS: Final = 2


class TlsHandshakes:
    """Starts the handshakes of connections, and counts how they end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads: ThreadPoolExecutor | None = None  # made by the first handshake
        self._in_progress: OrderedDict[ClientConnection, TlsHandshake] = OrderedDict()
        self._failures = FailureLog(log, loop.time)
        self.succeeded: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        """By listener."""

    def start(
        self, connection: "ClientConnection", sock: socket.socket, tls: "ListenerTls"
    ) -> None:
        """Calls `on_secured` or `on_handshake_failed` of the connection, unless it is closed."""
        if len(self._in_progress) >= MAX_HANDSHAKES:
            oldest, handshake = next(iter(self._in_progress.items()))
            handshake.stop()
            self._fail(oldest, f"more than {MAX_HANDSHAKES} TLS handshakes are in progress")
        self._in_progress[connection] = TlsHandshake(
            self._loop,
            sock,
            tls.server_context,
            None,
            lambda secured: self._on_done(connection, tls, secured),
            lambda failure: self._on_failed(connection, failure),
            run=self._run,
            timeout_ms=TIMEOUT_MS,
        )

    def cancel(self, connection: "ClientConnection") -> None:
        """Called when a connection is closed."""
        handshake = self._in_progress.pop(connection, None)
        if handshake is not None:
            handshake.cancel()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def gauges(self) -> Iterator[Gauge]:
        for name, counts in (("successful", self.succeeded), ("failed", self.failed)):
            for listener, count in counts.items():
                labels = {"listener": listener, "networkProcessor": "0"}
                prefix = "kafka_server_socket_server_metrics"
                yield Gauge(f"{prefix}_{name}_authentication_total", count, labels)

    def __len__(self) -> int:
        return len(self._in_progress)

    def _run(self, step: Step, on_done: Callable[[BaseException | None], None]) -> None:
        """Runs a step of a handshake in a thread."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tls-handshake")
        running = self._loop.run_in_executor(self._threads, step)
        running.add_done_callback(lambda future: on_done(future.exception()))

    def _on_done(
        self, connection: "ClientConnection", tls: "ListenerTls", secured: TlsSocket
    ) -> None:
        try:
            principal = tls.principal_of(secured.tls_object)
        except NoMatchingRuleError as failure:
            self._fail(connection, str(failure))
            return
        except ValueError as failure:
            self._fail(connection, f"the subject of its certificate cannot be read: {failure}")
            return
        del self._in_progress[connection]
        if tls.authenticates_clients:
            self.succeeded[connection.listener] += 1
        connection.on_secured(secured, principal)

    def _on_failed(self, connection: "ClientConnection", failure: OSError) -> None:
        reason = explain_to_server(failure)
        if reason is None:
            self._in_progress.pop(connection, None)
            connection.close()
            return
        self._fail(connection, reason)

    def _fail(self, connection: "ClientConnection", reason: str) -> None:
        """Closes a connection, with a line in the log."""
        self._in_progress.pop(connection, None)
        self.failed[connection.listener] += 1
        line = "Closed the connection of %s to listener %s: %s"
        self._failures.warn(line, connection.host, connection.listener, reason)
        connection.on_handshake_failed()
