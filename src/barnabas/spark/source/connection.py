"""Connections to clusters, one for each set of client settings, shared by tasks of a process."""

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from barnabas.client.cluster import ClusterClient
from barnabas.client.errors import KafkaException, error_in, log_unhandled_error
from barnabas.client.loop_thread import LoopThread
from barnabas.client.lru_cache import LruCache
from barnabas.client.settings import ConsumerSettings, consumer_settings
from barnabas.spark.options_parser import CLIENT_PREFIX, OptionError

T = TypeVar("T")

MAX_CONNECTIONS = 8
"""The number of clusters that a process stays connected to."""


class SourceError(RuntimeError):
    """A topic cannot be read. The message says which, why, and what the user can do."""


class ClusterConnection:
    """A connection to a cluster on the event loop of the clients' thread."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self.thread = LoopThread.shared()
        self.cluster = self.thread.run(_cluster(settings))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a request and wait for the response. Raises SourceError if it fails."""
        try:
            return self.thread.run(coroutine)
        except KafkaException as error:
            raise SourceError(self.reason(error)) from None

    def reason(self, error: KafkaException) -> str:
        """Returns one line with the error and the bootstrap addresses."""
        servers = ",".join(
            f"{server.host}:{server.port}" for server in self.settings.bootstrap_servers
        )
        return f"{error_in(error).str()} (kafka.bootstrap.servers: {servers})"

    def close(self) -> None:
        if not self.thread.is_in_forked_child:
            self.thread.run(self.cluster.close())
            self.thread.release()


_connections: LruCache[frozenset[tuple[str, str]], ClusterConnection] = LruCache(
    MAX_CONNECTIONS,
    on_evict=ClusterConnection.close,
    is_valid=lambda connection: not connection.thread.is_in_forked_child,
)


def connect(client: Mapping[str, str]) -> ClusterConnection:
    """Returns this process's connection for these settings."""
    return _connections.get_or_create(
        frozenset(client.items()), lambda: ClusterConnection(_settings(client))
    )


def require_settings(client: Mapping[str, str]) -> None:
    """Raises OptionError if the client rejects the settings."""
    _settings(client)


def _settings(client: Mapping[str, str]) -> ConsumerSettings:
    try:
        return consumer_settings(client)
    except KafkaException as error:
        reason = error_in(error).str()
        raise OptionError(
            f"An option that starts with {CLIENT_PREFIX} is invalid: {reason}"
        ) from None


async def _cluster(settings: ConsumerSettings) -> ClusterClient:
    return ClusterClient(settings, partial(log_unhandled_error, settings))
