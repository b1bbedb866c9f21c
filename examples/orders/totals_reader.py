"""Reads the totals that the job has committed, and its lag."""

import threading
from collections import Counter
from datetime import datetime

from barnabas import Consumer, TopicPartition
from barnabas.schema_registry import SchemaRegistryClient
from barnabas.schema_registry.avro import AvroDeserializer
from barnabas.serialization import MessageField, SerializationContext

from .shop import Total, Window

JOB_GROUP = "orders-totals"
"""The consumer group whose offsets job.py commits."""


class TotalsReader:
    """Consumes the totals on a thread until it is closed."""

    def __init__(self, servers: str, registry: str) -> None:
        self.totals: dict[Window, Total] = {}
        self.written: Counter[Window] = Counter()
        """How often each total was written: once, with exactly-once delivery."""
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "totals-reader",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._deserialize = AvroDeserializer(SchemaRegistryClient({"url": registry}))
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, name="totals-reader")

    def open(self) -> None:
        self._consumer.subscribe(["totals"])
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        context = SerializationContext("totals", MessageField.VALUE)
        while not self._closing.is_set():
            message = self._consumer.poll(0.2)
            if message is None or message.error():
                continue
            row = self._deserialize(message.value(), context)
            began: datetime = row["began"]
            window = round(began.timestamp() * 1000), row["country"]
            self.totals[window] = Total(row["orders"], row["cents"])
            self.written[window] += 1


class Lag:
    """The lag of the consumer group of the job."""

    def __init__(self, servers: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": JOB_GROUP})
        topic = self._consumer.list_topics("orders", timeout=30).topics["orders"]
        self._partitions = [TopicPartition("orders", number) for number in topic.partitions]

    def measure(self) -> tuple[int, int]:
        """Returns the number of processed orders, and the lag."""
        processed = lag = 0
        for partition in self._consumer.committed(self._partitions, timeout=10):
            _, end = self._consumer.get_watermark_offsets(partition, timeout=10)
            committed = max(partition.offset, 0)
            processed += committed
            lag += end - committed
        return processed, lag

    def close(self) -> None:
        self._consumer.close()
