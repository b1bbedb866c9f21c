"""Builders of the serializers for asyncio: the plain builders, whose `build` is a coroutine.

    builder = AsyncAvroSerializerBuilder({"url": "http://localhost:8081"}, schema=text)
    serializer, _ = await builder.build({}, is_key=False)

`serializer_init` and `deserializer_init` are awaited.
"""

from typing import Any

from barnabas.schema_registry.client.aio import AsyncSchemaRegistryClient
from barnabas.schema_registry.serdes.builders import (
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
    JSONDeserializerBuilder,
    JSONSerializerBuilder,
    ProtobufDeserializerBuilder,
    ProtobufSerializerBuilder,
    SerdeBuilder,
)


class _Awaited(SerdeBuilder):
    _prefix = "Async"

    async def build(  # type: ignore[override]
        self, conf: dict[str, Any], is_key: bool
    ) -> tuple[Any, dict[str, Any]]:
        """What it makes, and the client's settings, none of which it takes."""
        self._refuse_two_clients()
        if self._client_conf is None:
            return await self._initialized(await self._construct(self._client)), dict(conf)
        client = AsyncSchemaRegistryClient(self._client_conf)
        try:
            serde = await self._construct(client)
            serde.own_schema_registry_client()
            return await self._initialized(serde), dict(conf)
        except BaseException:
            await client.aclose()
            raise

    async def _initialized(self, serde: Any) -> Any:
        for name in ("serializer_init", "deserializer_init"):
            init = self._settings.get(name)
            if init is not None:
                await init(serde)
        return serde


class AsyncAvroSerializerBuilder(_Awaited, AvroSerializerBuilder): ...


class AsyncAvroDeserializerBuilder(_Awaited, AvroDeserializerBuilder): ...


class AsyncJSONSerializerBuilder(_Awaited, JSONSerializerBuilder): ...


class AsyncJSONDeserializerBuilder(_Awaited, JSONDeserializerBuilder): ...


class AsyncProtobufSerializerBuilder(_Awaited, ProtobufSerializerBuilder): ...


class AsyncProtobufDeserializerBuilder(_Awaited, ProtobufDeserializerBuilder): ...
