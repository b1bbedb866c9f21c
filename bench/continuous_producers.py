"""Producers that send continuously, one for each partition, and record acknowledgement times.

They look up the leader as soon as a record fails, and every 10 ms until there is a new one, so that
they measure the cluster: client libraries have backoff timers of their own.
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
"""Between two records of one partition, and before a failed record is sent again."""


class ContinuousProducers:
    """A context manager that sends a record every 10 ms to each partition."""

    def __init__(self, brokers: Sequence[raw_client.Address], topic: str, partitions: int) -> None:
        self._stop_event = threading.Event()
        self._producers = [
            _Producer(brokers, topic, index, self._stop_event) for index in range(partitions)
        ]

    def __enter__(self) -> Self:
        for producer in self._producers:
            producer.start()
        self.wait_for_acknowledgements(time.perf_counter(), deadline_s=30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self._stop_event.set()
        for producer in self._producers:
            producer.join()

    def wait_for_acknowledgements(self, since_s: float, deadline_s: float) -> None:
        """Wait until every partition has acknowledged a record that was sent after `since_s`."""
        wait_until(
            lambda: min(producer.newest_s for producer in self._producers) > since_s,
            "every partition acknowledges",
            deadline_s,
        )

    def gaps_s(self, since_s: float) -> list[float]:
        """Returns the longest time without an acknowledgement since a time, for each partition."""
        gaps_s = []
        for producer in self._producers:
            late_s = [since_s, *(time_s for time_s in producer.times_s if time_s >= since_s)]
            gaps_s.append(max(after - before for before, after in pairwise(late_s)))
        return gaps_s


class _Producer(threading.Thread):
    """The producer of one partition, with acks=all and one record in flight."""

    def __init__(
        self,
        brokers: Sequence[raw_client.Address],
        topic: str,
        index: int,
        stop_event: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self.times_s: list[float] = []
        self.newest_s = 0.0
        """When the last acknowledged record was sent."""
        self._brokers = cycle(brokers)
        self._topic = topic
        self._index = index
        self._stop_event = stop_event
        self._metadata = raw_client.metadata_frame([topic])
        self._leader: raw_client.RawConnection | None = None

    def run(self) -> None:
        request = _produce_frame(self._topic, self._index)
        while not self._stop_event.is_set():
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
        response_bytes = self._leader.send(request)
        response = raw_client.parse(
            ApiKey.PRODUCE, raw_client.PRODUCE_VERSION, ProduceResponse, response_bytes
        )
        error_code = response.responses[0].partition_responses[0].error_code
        if error_code:
            self._leader.close()
            raise OSError(f"error {error_code}")

    def _find_leader(self) -> raw_client.RawConnection:
        connection = raw_client.RawConnection(next(self._brokers))
        with contextlib.closing(connection):
            response_bytes = connection.send(self._metadata)
            metadata = raw_client.parse(
                ApiKey.METADATA, raw_client.METADATA_VERSION, MetadataResponse, response_bytes
            )
        partitions = metadata.topics[0].partitions
        leader_id = next(p.leader_id for p in partitions if p.partition_index == self._index)
        for broker in metadata.brokers:
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
