"""Serializers inside producers and consumers, of either library, on our broker and registry."""

import json
import socket
import uuid
from types import ModuleType
from typing import Any
from urllib.request import Request, urlopen

import confluent_kafka
import pytest

import barnabas
from barnabas.error import ValueSerializationError
from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import SchemaRegistryError
from barnabas.schema_registry.avro import AvroDeserializerBuilder, AvroSerializerBuilder
from barnabas.testing import Broker

ORDERS = [{"id": number, "note": None} for number in range(5)]


@pytest.mark.parametrize("clients", ["our clients", "their clients"])
@pytest.mark.parametrize("serializers", ["our serializers", "their serializers"])
def test_serializers_work_in_clients_of_both_libraries(
    clients: str,
    serializers: str,
    ours: ModuleType,
    theirs: ModuleType,
    broker_in_process: Broker,
    registry: SchemaRegistry,
) -> None:
    library: Any = barnabas if clients == "our clients" else confluent_kafka
    side: Any = ours if serializers == "our serializers" else theirs
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    with side.SchemaRegistryClient({"url": registry.url}) as client:
        producer = library.SerializingProducer(
            {
                "bootstrap.servers": broker_in_process.bootstrap_servers,
                "value.serializer": side.AvroSerializer(client, side.ORDER),
            }
        )
        for order in ORDERS:
            producer.produce(topic, value=order)
        assert producer.flush(30) == 0
        producer.close()
        consumer = library.DeserializingConsumer(
            consumer_settings(broker_in_process)
            | {"value.deserializer": side.AvroDeserializer(client)}
        )
        assert [record.value() for record in consume(consumer, topic, len(ORDERS))] == ORDERS


def test_builders_create_the_client_and_close_it(
    broker_in_process: Broker, registry: SchemaRegistry
) -> None:
    topic = f"built-{uuid.uuid4().hex[:8]}"
    conf = {"url": registry.url}
    schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}'
    made: list[Any] = []
    builder = AvroSerializerBuilder(schema_registry_config=conf, schema=schema)
    producer: Any = barnabas.SerializingProducer(
        {
            "bootstrap.servers": broker_in_process.bootstrap_servers,
            "value.serializer.builder": builder.set_serializer_init(made.append),
        }
    )
    producer.produce(topic, value={"id": 1})
    producer.close()
    assert len(made) == 1
    consumer: Any = barnabas.DeserializingConsumer(
        consumer_settings(broker_in_process)
        | {
            "value.deserializer.builder": AvroDeserializerBuilder()
            .set_schema_registry_config(conf)
            .set_from_dict(lambda it, _: it["id"])
        }
    )
    assert [record.value() for record in consume(consumer, topic, 1)] == [1]


def test_the_schema_id_of_a_message_is_in_its_prefix(
    ours: ModuleType, broker_in_process: Broker, registry: SchemaRegistry
) -> None:
    """A message is 0x00, the id of the registered schema in four bytes, and Avro."""
    schema = '{"type":"record","name":"Sale","fields":[{"name":"id","type":"long"}]}'
    request = Request(
        f"{registry.url}/subjects/books-value/versions",
        json.dumps({"schema": schema}).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urlopen(request) as response:
        number = json.load(response)["id"]

    with ours.SchemaRegistryClient({"url": registry.url}) as client:
        producer: Any = barnabas.SerializingProducer(
            {
                "bootstrap.servers": broker_in_process.bootstrap_servers,
                "value.serializer": ours.AvroSerializer(client, schema),
            }
        )
        producer.produce("books", value={"id": 64})
        producer.close()

    (message,) = consume(barnabas.Consumer(consumer_settings(broker_in_process)), "books", 1)
    value = message.value()
    assert value == b"\0" + number.to_bytes(4, "big") + b"\x80\x01"
    schema_id = int.from_bytes(value[1:5], "big")
    with urlopen(f"{registry.url}/schemas/ids/{schema_id}") as response:
        assert json.load(response)["schema"] == schema


def test_an_incompatible_schema_fails_a_record_with_the_reason(
    ours: ModuleType, broker_in_process: Broker, registry: SchemaRegistry
) -> None:
    with ours.SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema("changing-value", ours.Schema(ours.ORDER))
        producer: Any = barnabas.SerializingProducer(
            {
                "bootstrap.servers": broker_in_process.bootstrap_servers,
                "value.serializer": ours.AvroSerializer(client, ours.ORDER_OF_TEXT),
            }
        )
        with pytest.raises(ValueSerializationError) as raised:
            producer.produce("changing", value={"id": "one"})
        producer.close()
    cause = raised.value.__cause__
    assert isinstance(cause, SchemaRegistryError)
    assert (cause.http_status_code, cause.error_code) == (409, 409)
    assert "TYPE_MISMATCH" in cause.error_message
    assert "/fields/0/type" in cause.error_message


def test_a_registry_that_is_down_fails_a_record_not_a_producer(
    ours: ModuleType, theirs: ModuleType, broker_in_process: Broker
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
    errors = []
    for side, library in ((ours, barnabas), (theirs, confluent_kafka)):
        client = side.SchemaRegistryClient({"url": nobody, "max.retries": 0})
        producer: Any = library.SerializingProducer(
            {
                "bootstrap.servers": broker_in_process.bootstrap_servers,
                "value.serializer": side.AvroSerializer(client, side.ORDER),
            }
        )
        try:
            producer.produce("down", value={"id": 1})
        except Exception as problem:
            errors.append((type(problem).__name__, "refused" in str(problem)))
        producer.close()
    assert errors == [("ValueSerializationError", True)] * 2


def consumer_settings(broker: Broker) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
    }


def consume(consumer: Any, topic: str, count: int) -> list[Any]:
    consumer.subscribe([topic])
    messages: list[Any] = []
    while len(messages) < count:  # pytest's own timeout is the deadline
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            messages.append(message)
    consumer.close()
    return messages
