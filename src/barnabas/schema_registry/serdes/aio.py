"""Serializers and deserializers for asyncio: the plain ones, on a thread where they have to ask.

    serializer = await AsyncAvroSerializer(client, text)
    payload = await serializer(order, context)

Once a topic's schemas are known nothing is asked any more, and no thread is involved.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable
from functools import cache
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.aio import AsyncSchemaRegistryClient
from barnabas.serialization import SerializationContext

_MOST_KNOWN = 1000


class _AsyncSerde:
    kind: ClassVar[type]
    """The plain one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args = [_plain_client(arg) for arg in args]
        self._kwargs = {name: _plain_client(kwarg) for name, kwarg in kwargs.items()}
        self._known: set[Hashable] = set()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._made().__await__()

    async def _made(self) -> Self:
        # A schema with references is asked for when the serializer is made.
        self._plain = await asyncio.to_thread(self.kind, *self._args, **self._kwargs)
        self._loop = asyncio.get_running_loop()
        return self

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Awaitable[str]]) -> None:
        """Awaited once, on the loop; whoever asks for the cluster's id is on a thread."""

        async def resolved() -> str:
            return await resolver()

        @cache
        def cluster_id() -> str:
            return asyncio.run_coroutine_threadsafe(resolved(), self._loop).result()

        self._plain.set_cluster_id_resolver(cluster_id)

    def own_schema_registry_client(self) -> None:
        """Close the client with this."""
        self._plain.own_schema_registry_client()

    async def aclose(self) -> None:
        await asyncio.to_thread(self._plain.close)

    async def __call__(self, value: Any, ctx: SerializationContext | None = None) -> Any:
        if value is None:
            return None
        key = self._key(value, ctx)
        if key in self._known:
            return self._plain(value, ctx)
        done = await asyncio.to_thread(self._plain, value, ctx)
        if not self._plain.follows_latest:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known.add(key)
        return done

    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        """Calls with the same key ask the registry for the same."""
        raise NotImplementedError


class AsyncSerializer(_AsyncSerde):
    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        return ctx and (ctx.topic, ctx.field)


class AsyncDeserializer(_AsyncSerde):
    def _key(self, value: Any, ctx: SerializationContext | None) -> Hashable:
        schema = self._plain.frame_of(value, ctx).schema
        return (ctx.topic, ctx.field, schema) if ctx is not None else schema


def _plain_client(given: Any) -> Any:
    return given.sync_client if isinstance(given, AsyncSchemaRegistryClient) else given
