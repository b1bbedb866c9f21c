"""`SchemaRegistry`: an instance with its HTTP server, embedded in any process.

with SchemaRegistry("localhost:9092", port=0) as registry:
    requests.get(f"{registry.url}/subjects")
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from barnabas.net.listening_sockets import bind_sockets
from barnabas.registry.election import InstanceIdentity
from barnabas.registry.instance import RegistryInstance
from barnabas.registry.settings import RegistrySettings
from barnabas.schemas import extra_required_by


class SchemaRegistry:
    """Runs on its own thread and event loop, from `start` to `stop`, or within a `with` block."""

    def __init__(
        self,
        bootstrap_servers: str,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        topic: str = "_schemas",
        group_id: str = "schema-registry",
        replication_factor: int = 3,
        mode_mutability: bool = True,
        leader_eligibility: bool = True,
        timeout_ms: int = 10_000,
        start_timeout_ms: int = 60_000,
        session_timeout_ms: int = 10_000,
        client: Mapping[str, object] | None = None,
    ) -> None:
        """`RegistrySettings` describes the parameters. Port 0 selects a free port."""
        self.settings = RegistrySettings(
            bootstrap_servers,
            host=host,
            port=port,
            advertised_host=advertised_host,
            topic=topic,
            group_id=group_id,
            replication_factor=replication_factor,
            mode_mutability=mode_mutability,
            leader_eligibility=leader_eligibility,
            timeout_ms=timeout_ms,
            start_timeout_ms=start_timeout_ms,
            session_timeout_ms=session_timeout_ms,
            client=client or {},
        )
        self.url = ""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Returns when the registry accepts requests. Raises the reason if it cannot start."""
        self._thread = threading.Thread(target=self._run, name="schema-registry", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with serve_registry(self.settings) as self.url:
            self._started.set()
            await self._stop.wait()


@contextlib.asynccontextmanager
async def serve_registry(settings: RegistrySettings) -> AsyncIterator[str]:
    """Runs an instance on the running event loop. Yields its URL."""
    with extra_required_by("a schema registry"):
        import uvicorn

        from barnabas.registry.api import create_application

    sockets = _listen(settings.host, settings.port)
    port = sockets[0].getsockname()[1]
    identity = InstanceIdentity(settings.reachable_host, port, settings.leader_eligibility)
    instance = RegistryInstance(settings, identity)
    config = uvicorn.Config(
        create_application(instance),
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
    )
    logging.getLogger("uvicorn.error").addFilter(_OTHER_PROTOCOLS)
    server = _server_class()(config)
    try:
        await instance.start()
        serving = asyncio.create_task(server.serve(sockets=sockets))
        try:
            yield identity.url
        finally:
            server.should_exit = True
            await serving
    finally:
        for sock in sockets:
            sock.close()
        await instance.stop()


def _listen(host: str, port: int) -> list[socket.socket]:
    sockets = bind_sockets(host, port)
    for sock in sockets:
        # A response is sent in two parts, and the second must not wait for an acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sockets


class _OtherProtocolFilter(logging.Filter):
    """Says what an invalid request often is, which uvicorn does not know, once a minute."""

    _last_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg != "Invalid HTTP request received.":
            return True
        if record.created - self._last_s < _OTHER_PROTOCOL_INTERVAL_S:
            return False
        self._last_s = record.created
        record.msg = (
            "A client sent a request that is not HTTP: this port is for clients of the schema "
            "registry. Kafka clients connect to a broker's port"
        )
        return True


_OTHER_PROTOCOL_INTERVAL_S = 60
_OTHER_PROTOCOLS = _OtherProtocolFilter()


def _server_class() -> type[Any]:
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leaves signals to the process that runs the registry."""
            yield

    return Server
