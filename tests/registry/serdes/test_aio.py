"""The serializers for asyncio do as the plain ones, and keep off the loop what asks."""

import asyncio
import threading
from typing import Any

import pytest
from tests.registry.messages import Line
from tests.registry.serdes.answering import AnsweringClient

from barnabas.schema_registry import Schema
from barnabas.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from barnabas.schema_registry.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
from barnabas.schema_registry.protobuf import AsyncProtobufDeserializer, AsyncProtobufSerializer
from barnabas.serialization import MessageField, SerializationContext

TOPIC = SerializationContext("orders", MessageField.VALUE)


class Watching(AnsweringClient):
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
def test_what_is_written_is_read_and_asked_for_off_the_loop(format_: str) -> None:
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
    assert client.asked["schema"] == 1
