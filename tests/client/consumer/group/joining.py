"""Consumers that are members of a group and read nothing, on the test's loop."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from barnabas.client.cluster import ClusterClient
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.config.addresses import Endpoint

DEADLINE_S = 60.0


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs an async test on a loop of its own, with a deadline."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*arguments, **fixtures), DEADLINE_S)

        asyncio.run(bounded())

    return run


class Joined:
    """A consumer that accepts every assignment, and records what happened."""

    def __init__(self, bootstrap_servers: str, group_id: str = "g", **settings: Any) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        settings = {"retry_backoff_ms": 20, "heartbeat_interval_ms": 50} | settings
        self.settings = ConsumerSettings(
            bootstrap_servers=(Endpoint(host, int(port)),), group_id=group_id, **settings
        )
        self.cluster = ClusterClient(self.settings)
        self.group = ConsumerCoordinator(self.cluster, self.settings, self)
        self.partitions: frozenset[PartitionKey] = frozenset()
        self.events: list[tuple[str, frozenset[PartitionKey]]] = []
        self.errors: list[KafkaError] = []
        self.during: Callable[[str], Awaitable[None]] | None = None

    async def on_partitions_assigned(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        await self._record("assigned", partitions)
        self.partitions = frozenset(partitions) | (self.partitions if incremental else frozenset())

    async def on_partitions_revoked(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        await self._record("revoked", partitions)
        self.partitions -= frozenset(partitions)
        assert incremental or not self.partitions

    async def on_partitions_lost(self, partitions: Collection[PartitionKey]) -> None:
        await self._record("lost", partitions)
        self.partitions -= frozenset(partitions)

    def on_error(self, error: KafkaError, topic: str | None = None) -> None:
        self.errors.append(error)

    async def _record(self, what: str, partitions: Collection[PartitionKey]) -> None:
        if self.during is not None:
            await self.during(what)
        self.events.append((what, frozenset(partitions)))

    async def close(self) -> None:
        await self.group.close()
        await self.cluster.close()


def all_of(topic: str, count: int) -> frozenset[PartitionKey]:
    return frozenset((topic, index) for index in range(count))
