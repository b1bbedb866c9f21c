"""Builders create a serializer and its registry client when a producer or consumer is created.

    SerializingProducer({..., "value.serializer.builder": AvroSerializerBuilder(
        schema_registry_config={"url": "http://localhost:8081"}, schema=text)})

Each setting is an argument of the builder, or of a method `set_...` that returns the builder. A
client that the builder created is closed with the serializer. Builders for asyncio have a coroutine
`build`, and await `serializer_init` and `deserializer_init`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.aio import AsyncSchemaRegistryClient
from barnabas.schema_registry.client.client import SchemaRegistryClient


class SerdeBuilder:
    """Base class: formats add a method for each setting."""

    _names: ClassVar[tuple[str, ...]]
    """The settings besides those of the client."""
    _prefix = ""

    def __init__(
        self,
        schema_registry_config: Mapping[str, Any] | None = None,
        schema_registry_client: Any = None,
        **settings: Any,
    ) -> None:
        unknown = settings.keys() - set(self._names)
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
        raise NotImplementedError

    def _serde(self, module: str, name: str) -> Any:
        """Returns the class. Its module is imported on demand."""
        return getattr(
            import_module(f"barnabas.schema_registry.serdes.{module}"), self._prefix + name
        )

    def _initialize(self, serde: Any) -> Any:
        for name in ("serializer_init", "deserializer_init"):
            init: Callable[[Any], None] | None = self._settings.get(name)
            if init is not None:
                init(serde)
        return serde

    def _set(self, name: str, value: Any) -> Self:
        self._settings[name] = value
        return self


class RegistrySerializerBuilder(SerdeBuilder):
    """Base class of builders of serializers."""

    def set_serializer_config(self, serializer_conf: Mapping[str, Any]) -> Self:
        return self._set("serializer_config", serializer_conf)

    def set_serializer_init(self, serializer_init: Callable[[Any], None]) -> Self:
        """Sets a function that is called with the new serializer."""
        return self._set("serializer_init", serializer_init)


class RegistryDeserializerBuilder(SerdeBuilder):
    """Base class of builders of deserializers."""

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


class AvroSerializerBuilder(DictSerializerBuilder):
    _names = ("schema", "to_dict", "serializer_config", "serializer_init")

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("avro", "AvroSerializer")(
            client, setting("schema"), setting("to_dict"), setting("serializer_config")
        )


class AvroDeserializerBuilder(DictDeserializerBuilder):
    _names = (
        "schema",
        "from_dict",
        "return_record_name",
        "deserializer_config",
        "deserializer_init",
    )

    def set_return_record_name(self, return_record_name: bool) -> Self:
        return self._set("return_record_name", return_record_name)

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("avro", "AvroDeserializer")(
            client,
            setting("schema"),
            setting("from_dict"),
            setting("return_record_name", False),
            setting("deserializer_config"),
        )


class JSONSerializerBuilder(DictSerializerBuilder):
    _names = ("schema", "to_dict", "serializer_config", "json_encode", "serializer_init")

    def set_json_encode(self, json_encode: Callable[..., Any]) -> Self:
        return self._set("json_encode", json_encode)

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("json_schema", "JSONSerializer")(
            setting("schema"),
            client,
            setting("to_dict"),
            setting("serializer_config"),
            json_encode=setting("json_encode"),
        )


class JSONDeserializerBuilder(DictDeserializerBuilder):
    _names = ("schema", "from_dict", "deserializer_config", "json_decode", "deserializer_init")

    def set_json_decode(self, json_decode: Callable[..., Any]) -> Self:
        return self._set("json_decode", json_decode)

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("json_schema", "JSONDeserializer")(
            setting("schema"),
            setting("from_dict"),
            client,
            setting("deserializer_config"),
            json_decode=setting("json_decode"),
        )


class ProtobufSerializerBuilder(RegistrySerializerBuilder):
    _names = ("message_type", "serializer_config", "serializer_init")

    def set_message_type(self, msg_type: Any) -> Self:
        return self._set("message_type", msg_type)

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("protobuf", "ProtobufSerializer")(
            _message_type(setting), client, setting("serializer_config")
        )


class ProtobufDeserializerBuilder(RegistryDeserializerBuilder):
    _names = ("message_type", "deserializer_config", "deserializer_init")

    def set_message_type(self, msg_type: Any) -> Self:
        return self._set("message_type", msg_type)

    def _construct(self, client: Any) -> Any:
        setting = self._settings.get
        return self._serde("protobuf", "ProtobufDeserializer")(
            _message_type(setting), setting("deserializer_config"), client
        )


def _message_type(setting: Callable[[str], Any]) -> Any:
    message_type = setting("message_type")
    if message_type is None:
        raise ValueError("message_type is missing: the class of the messages")
    return message_type


class _AsyncSerdeBuilder(SerdeBuilder):
    _prefix = "Async"

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
        for name in ("serializer_init", "deserializer_init"):
            init = self._settings.get(name)
            if init is not None:
                await init(serde)
        return serde


class AsyncAvroSerializerBuilder(_AsyncSerdeBuilder, AvroSerializerBuilder): ...


class AsyncAvroDeserializerBuilder(_AsyncSerdeBuilder, AvroDeserializerBuilder): ...


class AsyncJSONSerializerBuilder(_AsyncSerdeBuilder, JSONSerializerBuilder): ...


class AsyncJSONDeserializerBuilder(_AsyncSerdeBuilder, JSONDeserializerBuilder): ...


class AsyncProtobufSerializerBuilder(_AsyncSerdeBuilder, ProtobufSerializerBuilder): ...


class AsyncProtobufDeserializerBuilder(_AsyncSerdeBuilder, ProtobufDeserializerBuilder): ...
