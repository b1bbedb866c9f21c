"""Serializers and deserializers for asyncio: the synchronous ones, on a thread if they do I/O.

    serializer = await AsyncAvroSerializer(client, text)
    payload = await serializer(order, context)

Once the schemas of a topic are cached, there is no I/O and no thread is used.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable
from functools import cache
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.aio import AsyncSchemaRegistryClient
from barnabas.serialization import SerializationContext

_MAX_KEYS = 1000


class _AsyncSerde:
    kind: ClassVar[type]
    """The synchronous class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args = [_sync_client(arg) for arg in args]
        self._kwargs = {name: _sync_client(kwarg) for name, kwarg in kwargs.items()}
        self._cached_keys: set[Hashable] = set()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._create().__await__()

    async def _create(self) -> Self:
        # On a thread: creating it fetches the references of its schema.
        self._sync = await asyncio.to_thread(self.kind, *self._args, **self._kwargs)
        self._loop = asyncio.get_running_loop()
        return self

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Awaitable[str]]) -> None:
        """The resolver is awaited once, on the event loop, for a caller on a thread."""

        async def resolve() -> str:
            return await resolver()

        @cache
        def cluster_id() -> str:
            return asyncio.run_coroutine_threadsafe(resolve(), self._loop).result()

        self._sync.set_cluster_id_resolver(cluster_id)

    def own_schema_registry_client(self) -> None:
        """Makes `aclose` close the client as well."""
        self._sync.own_schema_registry_client()

    async def aclose(self) -> None:
        await asyncio.to_thread(self._sync.close)

    async def __call__(self, value: Any, ctx: SerializationContext | None = None) -> Any:
        if value is None:
            return None
        key = self._key(value, ctx)
        if key in self._cached_keys:
            return self._sync(value, ctx)
        result = await asyncio.to_thread(self._sync, value, ctx)
        if not self._sync.follows_latest:
            if len(self._cached_keys) >= _MAX_KEYS:
                self._cached_keys.clear()
            self._cached_keys.add(key)
        return result

    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        """Calls with the same key make the same requests to the registry."""
        raise NotImplementedError


class AsyncSerializer(_AsyncSerde):
    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        return ctx and (ctx.topic, ctx.field)


class AsyncDeserializer(_AsyncSerde):
    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        schema = self._sync.unframe(value, ctx).schema
        return (ctx.topic, ctx.field, schema) if ctx is not None else schema


def _sync_client(argument: Any) -> Any:
    return argument.sync_client if isinstance(argument, AsyncSchemaRegistryClient) else argument
