"""Builders create a serializer and its registry client when a producer or consumer is created.

    SerializingProducer({..., "value.serializer.builder": AvroSerializerBuilder(
        schema_registry_config={"url": "http://localhost:8081"}, schema=text)})

Each setting is an argument of the builder, or of a method `set_...` that returns the builder. A
client that the builder created is closed with the serializer. Builders for asyncio have a coroutine
`build`, and await `serializer_init` and `deserializer_init`.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.aio import AsyncSchemaRegistryClient
from barnabas.schema_registry.client.client import SchemaRegistryClient


class SerdeBuilder:
    """Base class: formats add a method for each setting."""

    kind: ClassVar[type]
    """The class of the serializer or deserializer."""
    _init_name: ClassVar[str]
    """The setting of the function that is called with the new serializer."""
    _names: ClassVar[tuple[str, ...]]
    """The other settings besides those of the client."""
    _parameters: ClassVar[Mapping[str, str]] = {
        "schema": "schema_str",
        "serializer_config": "conf",
        "deserializer_config": "conf",
    }
    """The parameters of `kind` that have other names than the settings."""

    def __init__(
        self,
        schema_registry_config: Mapping[str, Any] | None = None,
        schema_registry_client: Any = None,
        **settings: Any,
    ) -> None:
        unknown = settings.keys() - {*self._names, self._init_name}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {min(unknown)}")
        self._client_conf = schema_registry_config
        self._client = schema_registry_client
        self._settings = settings

    def set_schema_registry_config(self, schema_registry_conf: Mapping[str, Any]) -> Self:
        self._client_conf = schema_registry_conf
        return self

    def set_schema_registry_client(self, schema_registry_client: Any) -> Self:
        self._client = schema_registry_client
        return self

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Any, dict[str, Any]]:
        """Returns the serializer or deserializer, and the Kafka client's settings unchanged."""
        self._require_one_client()
        if self._client_conf is None:
            return self._initialize(self._construct(self._client)), dict(conf)
        client = SchemaRegistryClient(self._client_conf)
        try:
            serde = self._construct(client)
            serde.own_schema_registry_client()
            return self._initialize(serde), dict(conf)
        except BaseException:
            client.close()
            raise

    def _require_one_client(self) -> None:
        if self._client is not None and self._client_conf is not None:
            raise ValueError("a registry's client and settings for one are both given: keep one")

    def _construct(self, client: Any) -> Any:
        settings = {"schema": None, **self._settings}
        arguments = {
            self._parameters.get(name, name): settings[name]
            for name in self._names
            if name in settings
        }
        return self.kind(schema_registry_client=client, **arguments)

    def _initialize(self, serde: Any) -> Any:
        init: Callable[[Any], None] | None = self._settings.get(self._init_name)
        if init is not None:
            init(serde)
        return serde

    def _set(self, name: str, value: Any) -> Self:
        self._settings[name] = value
        return self


class RegistrySerializerBuilder(SerdeBuilder):
    """Base class of builders of serializers."""

    _init_name = "serializer_init"

    def set_serializer_config(self, serializer_conf: Mapping[str, Any]) -> Self:
        return self._set("serializer_config", serializer_conf)

    def set_serializer_init(self, serializer_init: Callable[[Any], None]) -> Self:
        """Sets a function that is called with the new serializer."""
        return self._set("serializer_init", serializer_init)


class RegistryDeserializerBuilder(SerdeBuilder):
    """Base class of builders of deserializers."""

    _init_name = "deserializer_init"

    def set_deserializer_config(self, deserializer_conf: Mapping[str, Any]) -> Self:
        return self._set("deserializer_config", deserializer_conf)

    def set_deserializer_init(self, deserializer_init: Callable[[Any], None]) -> Self:
        """Sets a function that is called with the new deserializer."""
        return self._set("deserializer_init", deserializer_init)


class DictSerializerBuilder(RegistrySerializerBuilder):
    """Base class of builders whose serializers accept dicts."""

    def set_schema(self, schema_str: Any) -> Self:
        return self._set("schema", schema_str)

    def set_to_dict(self, to_dict: Callable[..., Any]) -> Self:
        return self._set("to_dict", to_dict)


class DictDeserializerBuilder(RegistryDeserializerBuilder):
    """Base class of builders whose deserializers return dicts."""

    def set_schema(self, schema_str: Any) -> Self:
        return self._set("schema", schema_str)

    def set_from_dict(self, from_dict: Callable[..., Any]) -> Self:
        return self._set("from_dict", from_dict)


class AsyncSerdeBuilder(SerdeBuilder):
    """Base class of builders for asyncio."""

    async def build(  # type: ignore[override]
        self, conf: dict[str, Any], is_key: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the serializer or deserializer, and the Kafka client's settings unchanged."""
        self._require_one_client()
        if self._client_conf is None:
            return await self._initialize(await self._construct(self._client)), dict(conf)
        client = AsyncSchemaRegistryClient(self._client_conf)
        try:
            serde = await self._construct(client)
            serde.own_schema_registry_client()
            return await self._initialize(serde), dict(conf)
        except BaseException:
            await client.aclose()
            raise

    async def _initialize(self, serde: Any) -> Any:
        init = self._settings.get(self._init_name)
        if init is not None:
            await init(serde)
        return serde
