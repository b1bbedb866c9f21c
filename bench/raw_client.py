"""A client that costs next to nothing: frames built beforehand, answers hardly looked at.

What is measured is then the broker, even where broker and client share two cores.
"""

import socket
import struct
import time
from collections.abc import Sequence
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
FETCH_VERSION = 12  # the last that names topics: no ids to look up
METADATA_VERSION = 12
MIB = 1024 * 1024

Address = tuple[str, int]


def frame(key: ApiKey, version: int, request: Message) -> bytes:
    out = Outgoing()
    write_request_header(RequestHeader(key, version, 1, "bench"), out)
    request.writer(version)(request, out)
    return struct.pack(">i", len(out)) + bytes(out)


def parse(key: ApiKey, version: int, response: type[Message], answer: Buffer) -> Any:
    """An answer, read; it may lie in a buffer that is reused."""
    _, position = read_response_header(answer, key, version)
    return response.reader(version)(answer, position)[0]


def produce_frame(topic: str, partitions: int, value_bytes: int) -> bytes:
    """One record for each partition, acks=1."""
    record = Record(0, int(time.time() * 1000), None, bytes(value_bytes), [])
    batch = bytes(build_batch([record]))
    produced = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=produced)],
    )
    return frame(ApiKey.PRODUCE, PRODUCE_VERSION, request)


def fetch_frame(
    topic: str, partitions: int, *, offset: int = 0, max_partition_bytes: int = MIB
) -> bytes:
    wanted = [
        FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=max_partition_bytes
        )
        for index in range(partitions)
    ]
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * MIB,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    return frame(ApiKey.FETCH, FETCH_VERSION, request)


def metadata_frame(topics: Sequence[str] | None) -> bytes:
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return frame(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=named))


class RawConnection:
    """One request at a time; the answer lies in a buffer that is reused."""

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
        answer = memoryview(self._buffer)[:size]
        self._receive(answer)
        return answer

    def send_pipelined(self, request: bytes, times: int, *, in_flight: int) -> None:
        """The same request so many times, without waiting for each answer."""
        self.socket.sendall(request * min(in_flight, times))
        unsent, unanswered = times - in_flight, times
        received = bytearray()
        while unanswered:
            received += self.socket.recv(64 * 1024)
            position = answered = 0
            while len(received) - position >= 4:
                end = position + 4 + struct.unpack_from(">i", received, position)[0]
                if end > len(received):
                    break
                position, answered = end, answered + 1
            del received[:position]
            unanswered -= answered
            if answered and unsent > 0:
                self.socket.sendall(request * min(answered, unsent))
                unsent -= answered

    def close(self) -> None:
        self.socket.close()

    def _receive(self, into: memoryview) -> None:
        received = 0
        while received < len(into):
            count = self.socket.recv_into(into[received:])
            if not count:
                raise ConnectionError("the broker hung up")
            received += count


def fetch_everything(address: Address, topic: str, end_offset: int) -> None:
    """Read a partition from its start to an offset, 1 MiB an answer."""
    connection, offset = RawConnection(address), 0
    while offset < end_offset:
        answer = connection.send(fetch_frame(topic, 1, offset=offset))
        response = parse(ApiKey.FETCH, FETCH_VERSION, FetchResponse, answer)
        (partition,) = response.responses[0].partitions
        if partition.error_code:
            raise RuntimeError(f"fetch of {topic} at {offset}: error {partition.error_code}")
        assert isinstance(partition.records, memoryview)
        for _, header in iterate_batches(partition.records):
            offset = header.next_offset
    connection.close()
