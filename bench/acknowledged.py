"""A producer that never stops, and when each of its records was acknowledged."""

import threading
import time
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer
from tests.conformance.brokers import wait_until

PACE_S = 0.01
"""Between two records of one partition."""

_SETTINGS = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "delivery.timeout.ms": 120_000,
    "log_level": 2,
}
"""One that looks for a new leader as often as it may: what it waits for is the cluster."""


class Acknowledged:
    """One record every 10 ms to each partition, while it is entered."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap} | _SETTINGS)
        self._topic = topic
        self._times_s: list[list[float]] = [[] for _ in range(partitions)]
        self._newest_s = [0.0] * partitions  # when the newest acknowledged record was sent
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        self.until_all_after(time.perf_counter(), deadline_s=30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(10)

    def until_all_after(self, since_s: float, deadline_s: float) -> None:
        """Until every partition has acknowledged a record that was sent after that time."""
        wait_until(
            lambda: min(self._newest_s) > since_s, "every partition acknowledges", deadline_s
        )

    def gaps_s(self, since_s: float) -> list[float]:
        """The longest time without an acknowledgement, for each partition, since a time."""
        gaps_s = []
        for times_s in self._times_s:
            late_s = [since_s, *(each for each in times_s if each >= since_s)]
            gaps_s.append(max(b - a for a, b in pairwise(late_s)))
        return gaps_s

    def _run(self) -> None:
        due_s = time.perf_counter()
        while not self._is_over.is_set():
            for index in range(len(self._times_s)):
                told = partial(self._told, index, time.perf_counter())
                self._producer.produce(self._topic, b"x" * 100, partition=index, on_delivery=told)
            due_s = max(due_s + PACE_S, time.perf_counter())
            while (left_s := due_s - time.perf_counter()) > 0:
                self._producer.poll(min(left_s, 0.002))

    def _told(self, index: int, sent_s: float, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._times_s[index].append(time.perf_counter())
            self._newest_s[index] = max(self._newest_s[index], sent_s)
