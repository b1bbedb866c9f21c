"""Producers that never stop, one for each partition, and when their records were acknowledged.

They ask for the leader again as soon as a record fails, and every 10 ms until there is another
one, so that what they wait for is the cluster: client libraries have timers of their own.
"""

import contextlib
import threading
import time
from collections.abc import Sequence
from itertools import cycle, pairwise
from types import TracebackType
from typing import Self

from tests.wait import wait_until

from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.record import Record
from bench import raw_client

INTERVAL_S = 0.01
"""Between two records of one partition, and before one that failed is sent again."""


class ContinuousProducers:
    """One record every 10 ms to each partition, while it is entered."""

    def __init__(self, brokers: Sequence[raw_client.Address], topic: str, partitions: int) -> None:
        self._is_over = threading.Event()
        self._producers = [
            _Producer(brokers, topic, index, self._is_over) for index in range(partitions)
        ]

    def __enter__(self) -> Self:
        for producer in self._producers:
            producer.start()
        self.wait_for_acknowledgements(time.perf_counter(), deadline_s=30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        for producer in self._producers:
            producer.join()

    def wait_for_acknowledgements(self, since_s: float, deadline_s: float) -> None:
        """Until every partition has acknowledged a record that was sent after that time."""
        wait_until(
            lambda: min(producer.newest_s for producer in self._producers) > since_s,
            "every partition acknowledges",
            deadline_s,
        )

    def gaps_s(self, since_s: float) -> list[float]:
        """The longest time without an acknowledgement, for each partition, since a time."""
        gaps_s = []
        for producer in self._producers:
            late_s = [since_s, *(each for each in producer.times_s if each >= since_s)]
            gaps_s.append(max(after - before for before, after in pairwise(late_s)))
        return gaps_s


class _Producer(threading.Thread):
    """Of one partition, with acks=all and one record under way."""

    def __init__(
        self, brokers: Sequence[raw_client.Address], topic: str, index: int, is_over: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self.times_s: list[float] = []
        self.newest_s = 0.0
        """When the newest record that is acknowledged was sent."""
        self._brokers = cycle(brokers)
        self._topic = topic
        self._index = index
        self._is_over = is_over
        self._metadata = raw_client.metadata_frame([topic])
        self._leader: raw_client.RawConnection | None = None

    def run(self) -> None:
        request = _produce_frame(self._topic, self._index)
        while not self._is_over.is_set():
            sent_s = time.perf_counter()
            try:
                self._send(request)
            except OSError:
                self._leader = None
            else:
                self.times_s.append(time.perf_counter())
                self.newest_s = sent_s
            time.sleep(max(sent_s + INTERVAL_S - time.perf_counter(), 0))
        if self._leader is not None:
            self._leader.close()

    def _send(self, request: bytes) -> None:
        if self._leader is None:
            self._leader = self._find_leader()
        answer = self._leader.send(request)
        response = raw_client.parse(ApiKey.PRODUCE, raw_client.PRODUCE_VERSION, ProduceResponse, answer)
        error_code = response.responses[0].partition_responses[0].error_code
        if error_code:
            self._leader.close()
            raise OSError(f"error {error_code}")

    def _find_leader(self) -> raw_client.RawConnection:
        asked = raw_client.RawConnection(next(self._brokers))
        with contextlib.closing(asked):
            answer = asked.send(self._metadata)
            known = raw_client.parse(ApiKey.METADATA, raw_client.METADATA_VERSION, MetadataResponse, answer)
        partitions = known.topics[0].partitions
        leader_id = next(p.leader_id for p in partitions if p.partition_index == self._index)
        for broker in known.brokers:
            if broker.node_id == leader_id:
                return raw_client.RawConnection((broker.host, broker.port))
        raise OSError(f"{self._topic}-{self._index} has no leader")


def _produce_frame(topic: str, index: int) -> bytes:
    record = Record(0, int(time.time() * 1000), None, bytes(100), [])
    produced = PartitionProduceData(index=index, records=bytes(build_batch([record])))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[produced])],
    )
    return raw_client.frame(ApiKey.PRODUCE, raw_client.PRODUCE_VERSION, request)
