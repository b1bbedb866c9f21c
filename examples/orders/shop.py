"""Produces orders of a shop, and knows the expected totals."""

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass

from barnabas import Producer
from barnabas.admin import AdminClient, NewTopic
from barnabas.schema_registry import SchemaRegistryClient
from barnabas.schema_registry.avro import AvroSerializer
from barnabas.serialization import MessageField, SerializationContext

WINDOW_MS = 5_000
LATE_MS = 1_000
"""How late an order can be produced: orders are out of order."""
CLOSING_MS = 60_000
"""The last order is this much later, so that the last windows close."""

COUNTRIES = ("AT", "BR", "DE", "FR", "IN", "JP", "KE", "US")
CUSTOMERS = 200

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": "string"},
        {"name": "country", "type": "string"},
    ],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "customer", "type": "int"},
        {"name": "cents", "type": "long"},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
TOPICS = (
    NewTopic("customers", 2, 1, config={"cleanup.policy": "compact"}),
    NewTopic("orders", 4, 1),
    NewTopic("totals", 2, 1),
)

Window = tuple[int, str]
"""Start in ms since the epoch, and country."""


@dataclass(slots=True, frozen=True)
class Total:
    orders: int
    cents: int


class Shop:
    """Creates topics and customers, and produces orders on a thread."""

    def __init__(self, servers: str, registry: str, *, seed: int = 7) -> None:
        self.sold = 0
        self._servers = servers
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
        client = SchemaRegistryClient({"url": registry})
        self._customer = AvroSerializer(client, json.dumps(CUSTOMER))
        self._order = AvroSerializer(client, json.dumps(ORDER))
        self._random = random.Random(seed)
        self._countries: dict[int, str] = {}
        self._orders: Counter[Window] = Counter()
        self._cents: Counter[Window] = Counter()

    def open(self) -> None:
        """Creates the topics, and produces customers, each twice with another country."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        for created in admin.create_topics(list(TOPICS)).values():
            created.result(30)
        context = SerializationContext("customers", MessageField.VALUE)
        for number in [*range(CUSTOMERS), *range(CUSTOMERS)]:
            country = self._countries[number] = self._random.choice(COUNTRIES)
            customer = {"id": number, "name": f"Customer {number}", "country": country}
            value = self._customer(customer, context)
            self._producer.produce("customers", value, key=str(number))
        self._sell_one(
            -1, time.time_ns() // 1_000_000
        )  # of an unknown customer, to register the schema
        self._producer.flush(30)

    def sell(self, seconds: float, rate: float, stopped: threading.Event) -> None:
        """Produces `rate` orders per second, and one at the end that advances the watermark."""
        started = time.monotonic()
        while not stopped.is_set() and (elapsed_s := time.monotonic() - started) < seconds:
            now_ms = time.time_ns() // 1_000_000
            while self.sold < elapsed_s * rate:
                customer = self._random.randrange(CUSTOMERS)
                placed_ms = now_ms - self._random.randrange(LATE_MS)
                cents = self._sell_one(customer, placed_ms)
                window = placed_ms - placed_ms % WINDOW_MS, self._countries[customer]
                self._orders[window] += 1
                self._cents[window] += cents
                self.sold += 1
            self._producer.poll(0)
            stopped.wait(0.01)
        self._sell_one(-1, time.time_ns() // 1_000_000 + CLOSING_MS)
        self._producer.flush(30)

    def expected(self) -> dict[Window, Total]:
        """Returns the total of each window and country, after `sell` has ended."""
        return {window: Total(self._orders[window], self._cents[window]) for window in self._orders}

    def _sell_one(self, customer: int, placed_ms: int) -> int:
        cents = self._random.randrange(100, 20_000)
        order = {"number": self.sold, "customer": customer, "cents": cents, "placed": placed_ms}
        value = self._order(order, SerializationContext("orders", MessageField.VALUE))
        self._producer.produce("orders", value, key=str(customer))
        return cents
