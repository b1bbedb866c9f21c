"""Both libraries read each other's messages, and ours accepts clients of theirs."""

from types import ModuleType
from typing import Any

import pytest
from tests.registry.messages import Address, Customer, Line, Order

from barnabas.registry.service import SchemaRegistry

FORMATS = ("avro", "json", "protobuf", "nested protobuf", "avro in headers")


def serde(side: Any, format_: str, client: Any) -> tuple[Any, Any, Any]:
    """Returns a serializer, a deserializer, and a value."""
    match format_:
        case "avro":
            value = {"id": 1, "note": "ü"}
            return side.AvroSerializer(client, side.ORDER), side.AvroDeserializer(client), value
        case "avro in headers":
            value = {"id": 1, "note": "long enough"}
            conf = {"schema.id.serializer": side.header_schema_id_serializer}
            writer = side.AvroSerializer(client, side.ORDER, conf=conf)
            return writer, side.AvroDeserializer(client), value
        case "json":
            writer = side.JSONSerializer(side.ORDER_JSON, client)
            reader = side.JSONDeserializer(None, schema_registry_client=client)
            return writer, reader, {"id": 1, "note": "ü"}
        case "protobuf":
            writer = side.ProtobufSerializer(Order, client)
            reader = side.ProtobufDeserializer(Order, {}, client)
            return (
                writer,
                reader,
                Order(id=3, customer=Customer(name="a", address=Address(city="b"))),
            )
        case _:
            writer = side.ProtobufSerializer(Line, client)
            return writer, side.ProtobufDeserializer(Line, {}, client), Line(item="i")


def connect(side: Any, registry: SchemaRegistry) -> Any:
    return side.SchemaRegistryClient({"url": registry.url, "max.retries": 0})


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("direction", ["ours to theirs", "theirs to ours"])
def test_each_library_reads_messages_of_the_other(
    direction: str, format_: str, ours: ModuleType, theirs: ModuleType, registry: SchemaRegistry
) -> None:
    writing, reading = (ours, theirs) if direction == "ours to theirs" else (theirs, ours)
    topic = f"exchange-{format_}".replace(" ", "-")
    headers: list[tuple[str, bytes]] = []
    with connect(writing, registry) as there, connect(reading, registry) as here:
        serialize, _, value = serde(writing, format_, there)
        _, deserialize, _ = serde(reading, format_, here)
        written = serialize(value, writing.value_of(topic, headers))
        assert deserialize(written, reading.value_of(topic, headers)) == value


@pytest.mark.parametrize("format_", FORMATS)
def test_our_serializers_accept_their_client_and_context(
    format_: str, ours: ModuleType, theirs: ModuleType, registry: SchemaRegistry
) -> None:
    context = theirs.value_of(f"mixed-{format_}".replace(" ", "-"), [])
    with connect(theirs, registry) as client:
        serialize, deserialize, value = serde(ours, format_, client)
        assert deserialize(serialize(value, context), context) == value


def test_both_register_under_the_same_ids(
    ours: ModuleType, theirs: ModuleType, registry: SchemaRegistry
) -> None:
    written: list[list[bytes]] = []
    for side in (ours, theirs):
        with connect(side, registry) as client:
            serdes = [serde(side, format_, client) for format_ in FORMATS]
            written.append(
                [
                    serialize(value, side.value_of(f"same-{number}", []))
                    for number, (serialize, _, value) in enumerate(serdes)
                ]
            )
    assert written[0] == written[1]
