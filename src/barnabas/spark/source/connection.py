"""Connections to clusters, one for each set of client settings: a process's first task connects."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from barnabas.client.cluster import ClusterClient
from barnabas.client.errors import KafkaException, error_in
from barnabas.client.loop_thread import LoopThread
from barnabas.client.lru_cache import LruCache
from barnabas.client.settings import ConsumerSettings, consumer_settings
from barnabas.spark.options_parser import CLIENT_PREFIX, OptionError

T = TypeVar("T")

MAX_CONNECTIONS = 8
"""Clusters that a process stays connected to."""


class SourceError(RuntimeError):
    """A topic cannot be read; one line says which, why, and what can be done."""


class ClusterConnection:
    """A cluster, reached through the loop of the clients' thread."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self.thread = LoopThread.shared()
        self.cluster = self.thread.run(_cluster(settings))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for what is asked of the cluster; SourceError if it fails."""
        try:
            return self.thread.run(coroutine)
        except KafkaException as failure:
            raise SourceError(self.reason(failure)) from None

    def reason(self, failure: KafkaException) -> str:
        """In one line, with the addresses that were tried."""
        servers = ",".join(f"{each.host}:{each.port}" for each in self.settings.bootstrap_servers)
        return f"{error_in(failure).str()} (kafka.bootstrap.servers: {servers})"

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
    """The process's connection for these settings."""
    return _connections.get_or_create(
        frozenset(client.items()), lambda: ClusterConnection(_settings(client))
    )


def require_settings(client: Mapping[str, str]) -> None:
    """OptionError if the client would not take them."""
    _settings(client)


def _settings(client: Mapping[str, str]) -> ConsumerSettings:
    try:
        return consumer_settings(client)
    except KafkaException as failure:
        reason = error_in(failure).str()
        raise OptionError(
            f"An option that begins with {CLIENT_PREFIX} is wrong: {reason}"
        ) from None


async def _cluster(settings: ConsumerSettings) -> ClusterClient:
    return ClusterClient(settings)
