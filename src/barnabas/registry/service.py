"""`SchemaRegistry`: an instance with its HTTP server, embedded in any process.

with SchemaRegistry("localhost:9092", port=0) as registry:
    requests.get(f"{registry.url}/subjects")
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Self

from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.listening_sockets import bind_sockets
from barnabas.registry.client_sessions import ClientSessions
from barnabas.registry.election import InstanceIdentity
from barnabas.registry.instance import RegistryInstance
from barnabas.registry.listener_settings import RegistryConfigError, RegistryListener
from barnabas.registry.settings import RegistrySettings
from barnabas.schemas import extra_required_by

if TYPE_CHECKING:
    from barnabas.net.http_tls import HttpTls

_SERVICE = "the schema registry"


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
        listener: Mapping[str, str] | None = None,
    ) -> None:
        """`RegistrySettings` describes the parameters. Port 0 selects a free port.

        `listener` has settings of TLS and authentication, by Confluent's names.
        """
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
            listener=RegistryListener.from_properties(listener or {}),
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
        import_module("uvicorn")
        from barnabas.net.http_server import build_server
        from barnabas.registry.api import create_application

    listener = settings.listener
    tls = _load_tls(listener.tls) if listener.tls is not None else None
    sessions = _client_sessions(settings)
    sockets = bind_sockets(settings.host, settings.port)
    port = sockets[0].getsockname()[1]
    identity = InstanceIdentity(
        settings.reachable_host, port, settings.leader_eligibility, listener.scheme
    )
    instance = RegistryInstance(settings, identity, tls)
    server = build_server(
        create_application(instance, sessions),
        sockets,
        None if tls is None else lambda: tls.server,
        _SERVICE,
    )
    try:
        await instance.start()
        serving = asyncio.create_task(server.serve())
        try:
            yield identity.url
        finally:
            server.should_exit = True
            await serving
    finally:
        for sock in sockets:
            sock.close()
        if sessions is not None:
            await sessions.close()
        await instance.stop()


def _load_tls(config: ListenerConfig) -> "HttpTls":
    from barnabas.net.http_tls import HttpTls  # slow to import

    try:
        return HttpTls(config, _SERVICE)
    except TlsConfigError as error:
        raise RegistryConfigError(str(error)) from None


def _client_sessions(settings: RegistrySettings) -> ClientSessions | None:
    """Returns the logins of clients; None if they need none."""
    if not settings.listener.methods:
        return None
    return ClientSessions(settings.listener, settings.kafka_client_config, settings.timeout_ms)
