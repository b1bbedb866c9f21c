"""`SchemaRegistry`: an instance that answers HTTP, inside whatever process there is.

with SchemaRegistry("localhost:9092", port=0) as registry:
    requests.get(f"{registry.url}/subjects")
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

from barnabas.registry.election import InstanceIdentity
from barnabas.registry.instance import RegistryInstance
from barnabas.registry.settings import RegistrySettings
from barnabas.schemas import extra_required_by


class SchemaRegistry:
    """Runs in a thread with a loop of its own, from `with` (or `start`) until its end."""

    def __init__(self, bootstrap_servers: str, port: int = 0, **more: Any) -> None:
        self.settings = RegistrySettings(bootstrap_servers, port=port, **more)
        self.url = ""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Return when it answers; raise why it cannot."""
        self._thread = threading.Thread(target=self._live, name="schema-registry", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stop is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended by itself
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

    def _live(self) -> None:
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
    """An instance on the running loop, answering at the URL that is given."""
    with extra_required_by("a schema registry"):
        import uvicorn

        from barnabas.registry.api import application

    listener = _listener(settings.host, settings.port)
    port = listener.getsockname()[1]
    identity = InstanceIdentity(settings.reachable_host, port, settings.leader_eligibility)
    instance = RegistryInstance(settings, identity)
    config = uvicorn.Config(
        application(instance),
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
    )
    server = _server_class()(config)
    try:
        await instance.start()
        answering = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield identity.url
        finally:
            server.should_exit = True
            await answering
    finally:
        listener.close()
        await instance.stop()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)
    # An answer leaves in two parts, and the second must not wait for the first to be confirmed.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _server_class() -> type[Any]:
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Signals are for who runs the registry to handle."""
            yield

    return Server
