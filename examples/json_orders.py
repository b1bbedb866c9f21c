"""Custom JSON serializers and deserializers, and how to handle a bad record.

It writes three records to the topic, and reads them. The topic must have no other writers.

    python json_orders.py localhost:9092 json-orders
"""

import json
import sys
from dataclasses import asdict, dataclass

from barnabas import DeserializingConsumer, Producer, SerializingProducer
from barnabas.error import ValueDeserializationError, ValueSerializationError
from barnabas.serialization import SerializationContext, StringDeserializer, StringSerializer


@dataclass
class Order:
    item: str
    count: int


def to_json(order: Order, context: SerializationContext) -> bytes:
    if order.count <= 0:
        raise ValueError(f"an order of {order.count} {order.item} for {context.topic}")
    return json.dumps(asdict(order)).encode()


def from_json(value: bytes, context: SerializationContext) -> Order:
    return Order(**json.loads(value))


def main(servers: str, topic: str) -> None:
    write(servers, topic)
    for order in read(servers, topic):
        print(order)


def write(servers: str, topic: str) -> None:
    producer = SerializingProducer(
        {
            "bootstrap.servers": servers,
            "key.serializer": StringSerializer(),
            "value.serializer": to_json,
        }
    )
    producer.produce(topic, key="ada", value=Order("tea", 2), partition=0)
    try:
        producer.produce(topic, key="bob", value=Order("tea", 0), partition=0)
    except ValueSerializationError as problem:
        print(f"not sent: {problem.exception}")
    producer.flush(30)
    # Another program writes a value that is not JSON.
    plain = Producer({"bootstrap.servers": servers})
    plain.produce(topic, "<order/>", "eve", partition=0)
    plain.flush(30)
    producer.produce(topic, key="cid", value=Order("jam", 1), partition=0)
    producer.flush(30)


def read(servers: str, topic: str) -> list[Order]:
    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-readers",
            "auto.offset.reset": "earliest",
            "key.deserializer": StringDeserializer(),
            "value.deserializer": from_json,
        }
    )
    consumer.subscribe([topic])
    orders: list[Order] = []
    seen = 0
    while seen < 3:
        try:
            message = consumer.poll(10)
        except ValueDeserializationError as problem:
            print(f"skipped what {problem.kafka_message.key().decode()} sent")
            seen += 1
        else:
            if message is None:
                raise TimeoutError("no order came")
            orders.append(message.value())
            seen += 1
    consumer.close()
    return orders


if __name__ == "__main__":
    main(*sys.argv[1:])
