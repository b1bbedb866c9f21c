"""A client of minimal cost: frames are built beforehand, and most responses are not parsed.

So the broker is measured, even if broker and client share two cores.
"""

import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from barnabas.wire.apis import ApiKey
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.record import Record
from barnabas.wire.schema import Buffer, Message

PRODUCE_VERSION = 9
BATCH_PRODUCE_VERSION = 8  # the last version without tagged fields
FETCH_VERSION = 12  # the last version with topic names: no ids to look up
METADATA_VERSION = 12
MIB = 1024 * 1024
RETRY_INTERVAL_S = 0.01

Address = tuple[str, int]


def frame(key: ApiKey, version: int, request: Message, client_id: str = "bench") -> bytes:
    out = Outgoing()
    write_request_header(RequestHeader(key, version, 1, client_id), out)
    request.writer(version)(request, out)
    return struct.pack(">i", len(out)) + bytes(out)


def parse(key: ApiKey, version: int, response: type[Message], response_bytes: Buffer) -> Any:
    """Parses a response, which may be in a buffer that is reused."""
    _, position = read_response_header(response_bytes, key, version)
    return response.reader(version)(response_bytes, position)[0]


def produce_frame(
    topic: str,
    partitions: int,
    value_bytes: int,
    *,
    records: int = 1,
    client_id: str = "bench",
) -> bytes:
    """One batch for each partition, with one record by default, acks=1."""
    record = Record(0, int(time.time() * 1000), None, bytes(value_bytes), [])
    batch = bytes(build_batch([record] * records))
    produced = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=produced)],
    )
    return frame(ApiKey.PRODUCE, PRODUCE_VERSION, request, client_id)


def batch_frames(topic: str, batches: Iterable[Buffer]) -> Iterator[bytes]:
    """One produce request for each batch, to partition 0, acks=1."""
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(records=b"")])
        ],
    )
    # Version 8 ends with the batch, after its length in 4 bytes.
    prefix = frame(ApiKey.PRODUCE, BATCH_PRODUCE_VERSION, request)[4:-4]
    for batch in batches:
        yield b"".join(
            (
                struct.pack(">i", len(prefix) + 4 + len(batch)),
                prefix,
                struct.pack(">i", len(batch)),
                batch,
            )
        )


def fetch_frame(
    topic: str, partitions: int, *, offset: int = 0, max_partition_bytes: int = MIB
) -> bytes:
    fetch_partitions = [
        FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=max_partition_bytes
        )
        for index in range(partitions)
    ]
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * MIB,
        topics=[FetchTopic(topic=topic, partitions=fetch_partitions)],
    )
    return frame(ApiKey.FETCH, FETCH_VERSION, request)


def metadata_frame(topics: Sequence[str] | None) -> bytes:
    request_topics = (
        None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    )
    return frame(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=request_topics))


class RawConnection:
    """One request at a time; responses are in a buffer that is reused."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(64 * 1024)

    def send(self, request: bytes) -> memoryview:
        self.socket.sendall(request)
        prefix = bytearray(4)
        self._receive(memoryview(prefix))
        (size,) = struct.unpack(">i", prefix)
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        response = memoryview(self._buffer)[:size]
        self._receive(response)
        return response

    def send_pipelined(self, requests: Iterable[bytes], *, in_flight: int) -> None:
        """Send requests, with up to `in_flight` pending responses."""
        unsent = iter(requests)
        pending = self._send_next(unsent, in_flight)
        received = bytearray()
        while pending:
            received += self.socket.recv(64 * 1024)
            position = completed = 0
            while len(received) - position >= 4:
                end = position + 4 + struct.unpack_from(">i", received, position)[0]
                if end > len(received):
                    break
                position, completed = end, completed + 1
            del received[:position]
            pending += self._send_next(unsent, completed) - completed

    def close(self) -> None:
        self.socket.close()

    def _send_next(self, unsent: Iterator[bytes], count: int) -> int:
        """Sends up to `count` requests at once; returns how many there were."""
        requests = list(islice(unsent, count))
        self.socket.sendall(b"".join(requests))
        return len(requests)

    def _receive(self, into: memoryview) -> None:
        received = 0
        while received < len(into):
            count = self.socket.recv_into(into[received:])
            if not count:
                raise ConnectionError("the broker closed the connection")
            received += count


def wait_until_led(address: Address, topic: str) -> None:
    """Wait until a new topic can be produced to."""
    connection, request = RawConnection(address), fetch_frame(topic, 1)
    while True:
        response = parse(ApiKey.FETCH, FETCH_VERSION, FetchResponse, connection.send(request))
        if not response.responses[0].partitions[0].error_code:
            break
        time.sleep(RETRY_INTERVAL_S)
    connection.close()


def fetch_everything(address: Address, topic: str, end_offset: int) -> None:
    """Read a partition from its start to an offset, 1 MiB a response."""
    connection, offset = RawConnection(address), 0
    while offset < end_offset:
        response_bytes = connection.send(fetch_frame(topic, 1, offset=offset))
        response = parse(ApiKey.FETCH, FETCH_VERSION, FetchResponse, response_bytes)
        (partition,) = response.responses[0].partitions
        if partition.error_code:
            raise RuntimeError(f"fetch of {topic} at {offset}: error {partition.error_code}")
        assert isinstance(partition.records, memoryview)
        for _, header in iterate_batches(partition.records):
            offset = header.next_offset
    connection.close()
