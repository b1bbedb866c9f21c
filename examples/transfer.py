r"""Read orders and write invoices exactly once, with records and offsets in one transaction.

Every order has exactly one invoice: if a transaction is aborted, consumers see neither its invoices
nor its offsets. It ends when no order came for five seconds.

    printf '{"price": 5, "count": 2}\n{"price": 3, "count": 1}\n' | barnabas produce bookings
    python transfer.py localhost:9092 billing bookings invoices
    barnabas consume invoices --exit --committed
"""

import json
import sys

from barnabas import Consumer, KafkaException, Message, Producer

BATCH = 100
WAIT_S = 1.0


def main(servers: str, group: str, orders: str, invoices: str) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{group}-1"})
    producer.init_transactions(30)
    consumer.subscribe([orders])
    billed = 0
    idle = 0
    try:
        while idle < 5:
            batch = consumer.consume(BATCH, timeout=WAIT_S)
            idle = 0 if batch or not consumer.assignment() else idle + 1
            if batch:
                billed += bill(batch, consumer, producer, invoices)
    finally:
        consumer.close()
    return billed


def bill(batch: list[Message], consumer: Consumer, producer: Producer, invoices: str) -> int:
    for message in batch:
        if message.error():
            raise KafkaException(message.error())
    producer.begin_transaction()
    try:
        for message in batch:
            producer.produce(invoices, key=message.key(), value=invoice(message.value()))
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction(30)
    except KafkaException as exception:
        if not exception.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(30)
        rewind(consumer, batch)
        return 0
    return len(batch)


def rewind(consumer: Consumer, batch: list[Message]) -> None:
    """Rewinds to the first record of an aborted batch in each partition."""
    for position in consumer.committed(consumer.assignment(), timeout=30):
        if position.offset < 0:
            position.offset = min(
                (m.offset() for m in batch if m.partition() == position.partition), default=0
            )
        consumer.seek(position)


def invoice(order: bytes) -> bytes:
    fields = json.loads(order)
    return json.dumps({"total": fields["price"] * fields["count"]}).encode()


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
