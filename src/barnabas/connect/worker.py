"""A worker: an instance of the group with its REST API and Spark.

    async with serve_worker(config) as worker:
        await worker.failed()

The REST API listens at once. Brokers are reached, and Spark starts, in the background.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from barnabas.connect.herder.herder import ConnectHerder
from barnabas.connect.herder.instance import CreateEngine
from barnabas.connect.model import ConnectorEngine, StatusListener
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.worker_config import WorkerConfig, WorkerConfigError
from barnabas.net.listener_config import TlsConfigError
from barnabas.net.listening_sockets import bind_sockets
from barnabas.schemas import extra_required_by

if TYPE_CHECKING:
    from barnabas.net.http_tls import HttpTls
    from barnabas.spark.runtime.session import ServiceSession

_SERVICE = "Connect"
_PRELOADED = (
    "barnabas.connect.execution.sink_item",
    "barnabas.connect.execution.source_item",
    "barnabas.spark.runtime.work_execution",
)
"""What tasks use: imported once, before Python workers are forked."""


@dataclass(slots=True, frozen=True)
class RunningWorker:
    """A worker whose REST API can be reached."""

    url: str
    herder: ConnectHerder
    starting: "asyncio.Task[None]"
    """Ends when the topics have been read."""

    async def failed(self) -> None:
        """Raises the reason if the worker cannot start. Otherwise it never returns."""
        await asyncio.shield(self.starting)
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def serve_worker(
    config: WorkerConfig, create_engine: CreateEngine | None = None
) -> AsyncIterator[RunningWorker]:
    """Runs a worker on the running event loop, until the block ends.

    Then it accepts no more requests, ends the micro-batches that run, and leaves the group. Raises
    OSError if it cannot listen, and WorkerConfigError if TLS cannot be used.
    """
    with extra_required_by("a Connect worker", extra="connect"):
        import_module("uvicorn")
        from barnabas.connect.rest.app import create_app
        from barnabas.net.http_server import build_server

    tls = _load_tls(config) if config.listener.scheme == "https" else None
    sockets = bind_sockets(config.listener.host, config.listener.port)
    host, port = config.advertised_address(sockets[0].getsockname()[1])
    url = f"{config.listener.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    spark = None if create_engine is not None else _create_session(config)
    if spark is not None:
        create_engine = partial(_create_engine, config, spark)
    assert create_engine is not None
    herder = ConnectHerder(config, url, create_engine)
    client_tls: Callable[[], ssl.SSLContext] | None = None
    server_tls: Callable[[], ssl.SSLContext] | None = None
    if tls is not None:
        client_tls, server_tls = partial(getattr, tls, "client"), partial(getattr, tls, "server")
    app = create_app(herder, config.originals, client_tls=client_tls)
    server = build_server(app, sockets, server_tls, _SERVICE)
    serving = asyncio.create_task(server.serve())
    starting = asyncio.create_task(herder.start())
    try:
        yield RunningWorker(url, herder, starting)
    finally:
        server.should_exit = True
        await serving
        for sock in sockets:
            sock.close()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await herder.stop()
        if spark is not None:
            await asyncio.to_thread(spark.close)


def _create_session(config: WorkerConfig) -> "ServiceSession":
    with extra_required_by("a Connect worker", extra="connect"):
        import_module("pyspark")
    from barnabas.spark.runtime.errors import QueryError
    from barnabas.spark.runtime.session import ServiceSession

    try:
        return ServiceSession(
            config.spark, app_name=f"Connect {config.group_id}", preload=_PRELOADED
        )
    except QueryError as error:
        raise WorkerConfigError([str(error)]) from None


def _create_engine(
    config: WorkerConfig,
    spark: "ServiceSession",
    positions: OffsetTopic,
    listener: StatusListener,
) -> ConnectorEngine:
    from barnabas.connect.execution.engine import SparkConnectorEngine

    return SparkConnectorEngine(config, positions, listener, spark)


def _load_tls(config: WorkerConfig) -> "HttpTls":
    from barnabas.config.errors import InvalidConfig
    from barnabas.net.http_listener import tls_listener_config
    from barnabas.net.http_tls import HttpTls  # slow to import

    try:
        return HttpTls(tls_listener_config("connect", config.tls_properties), _SERVICE)
    except (InvalidConfig, TlsConfigError) as error:
        raise WorkerConfigError([str(error)]) from None
