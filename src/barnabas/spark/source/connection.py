"""Connections to clusters, one for each set of client settings: a process's first task connects."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.errors import KafkaException, error_in
from barnabas.client.loop_thread import LoopThread
from barnabas.client.settings import ConsumerSettings, consumer_settings
from barnabas.spark.kept import Kept
from barnabas.spark.naming import PASSED_ON, OptionError

T = TypeVar("T")

MOST_KEPT = 8
"""Clusters that a process stays connected to."""


class SourceError(RuntimeError):
    """A topic cannot be read; one line says which, why, and what can be done."""


class Connection:
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


_connections: Kept[frozenset[tuple[str, str]], Connection] = Kept(
    MOST_KEPT,
    let_go=Connection.close,
    is_of_use=lambda connection: not connection.thread.is_in_forked_child,
)


def connect(client: Mapping[str, str]) -> Connection:
    """The process's connection for these settings."""
    return _connections.get(frozenset(client.items()), lambda: Connection(_settings(client)))


def require_settings(client: Mapping[str, str]) -> None:
    """OptionError if the client would not take them."""
    _settings(client)


def _settings(client: Mapping[str, str]) -> ConsumerSettings:
    try:
        return consumer_settings(client)
    except KafkaException as failure:
        reason = error_in(failure).str()
        raise OptionError(f"An option that begins with {PASSED_ON} is wrong: {reason}") from None


async def _cluster(settings: ConsumerSettings) -> Cluster:
    return Cluster(settings)
