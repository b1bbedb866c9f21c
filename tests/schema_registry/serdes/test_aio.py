"""Serializers for asyncio: as the synchronous ones, with requests off the event loop."""

import asyncio
import threading
from typing import Any

import pytest
from tests.registry.messages import Line
from tests.schema_registry.serdes.fake_client import FakeRegistryClient

from barnabas.schema_registry import Schema
from barnabas.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializer,
    AsyncAvroSerializerBuilder,
)
from barnabas.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializer,
    AsyncJSONSerializerBuilder,
)
from barnabas.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializer,
    AsyncProtobufSerializerBuilder,
)
from barnabas.serialization import MessageField, SerializationContext

TOPIC = SerializationContext("orders", MessageField.VALUE)


class Watching(FakeRegistryClient):
    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def register_schema_full_response(self, subject: str, schema: Schema, **more: Any) -> Any:
        self.threads.add(threading.get_ident())
        return super().register_schema_full_response(subject, schema, **more)

    def get_schema(self, number: int, subject: str | None = None, fmt: Any = None) -> Schema:
        self.threads.add(threading.get_ident())
        return super().get_schema(number, subject, fmt)


@pytest.mark.parametrize("format_", ["avro", "json", "protobuf"])
def test_values_round_trip_with_registry_requests_off_the_event_loop(format_: str) -> None:
    client = Watching()

    async def exchange() -> None:
        serialize: Any
        deserialize: Any
        it: Any = "text"
        match format_:
            case "avro":
                serialize = await AsyncAvroSerializer(client, '"string"')
                deserialize = await AsyncAvroDeserializer(client)
            case "json":
                serialize = await AsyncJSONSerializer('{"type": "string"}', client)
                deserialize = await AsyncJSONDeserializer(None, schema_registry_client=client)
            case _:
                it = Line(item="i")
                serialize = await AsyncProtobufSerializer(Line, client)
                deserialize = await AsyncProtobufDeserializer(Line, {}, client)
        for _ in range(3):
            assert await deserialize(await serialize(it, TOPIC), TOPIC) == it
        assert await deserialize(await serialize(None, TOPIC), TOPIC) is None
        assert threading.get_ident() not in client.threads

    asyncio.run(exchange())
    assert client.requests["schema"] == 1


@pytest.mark.parametrize(
    ("builders", "schema", "it"),
    [
        ((AsyncAvroSerializerBuilder, AsyncAvroDeserializerBuilder), '"string"', "text"),
        ((AsyncJSONSerializerBuilder, AsyncJSONDeserializerBuilder), "{}", {"a": 1}),
        ((AsyncProtobufSerializerBuilder, AsyncProtobufDeserializerBuilder), Line, Line(item="i")),
    ],
)
def test_builders_create_async_serializers(builders: Any, schema: Any, it: Any) -> None:
    client, initialized = FakeRegistryClient(), []

    async def init(serde: Any) -> None:
        initialized.append(serde)

    async def exchange() -> None:
        made = [builder(schema_registry_client=client) for builder in builders]
        for builder in made:
            setter = "set_message_type" if schema is Line else "set_schema"
            getattr(builder, setter)(schema)
        (serialize, conf), (deserialize, _) = (
            await made[0].set_serializer_init(init).build({"a": "b"}, is_key=False),
            await made[1].set_deserializer_init(init).build({}, is_key=False),
        )
        assert conf == {"a": "b"}
        assert initialized == [serialize, deserialize]
        assert await deserialize(await serialize(it, TOPIC), TOPIC) == it
        await serialize.aclose()
        assert client.requests["close"] == 0
        serialize.own_schema_registry_client()
        await serialize.aclose()
        assert client.requests["close"] == 1

    asyncio.run(exchange())


def test_a_builder_with_two_clients_is_rejected() -> None:
    builder = AsyncAvroSerializerBuilder({"url": "http://localhost:1"}, FakeRegistryClient())
    with pytest.raises(ValueError, match="keep one"):
        asyncio.run(builder.build({}, is_key=False))


def test_the_clusters_id_is_awaited_once_on_the_loop() -> None:
    namespaces: list[str] = []

    class Associating(FakeRegistryClient):
        def get_associations_by_resource_name(self, **asked: Any) -> list[Any]:
            namespaces.append(asked["resource_namespace"])
            return super().get_associations_by_resource_name(**asked)

    resolved: list[int] = []

    async def cluster_id() -> str:
        resolved.append(threading.get_ident())
        return "the-cluster"

    async def exchange() -> None:
        serialize = await AsyncAvroSerializer(Associating(), '"string"')
        serialize.set_async_cluster_id_resolver(cluster_id)
        for topic in ("orders", "others"):
            await serialize("text", SerializationContext(topic, MessageField.VALUE))

    asyncio.run(exchange())
    assert namespaces == ["the-cluster"] * 2
    assert resolved == [threading.get_ident()]
