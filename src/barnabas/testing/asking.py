"""One question to one node, without a client that knows better whom to ask."""

import socket
import struct
from dataclasses import dataclass
from typing import Any

from barnabas.testing.ports import LOOPBACK
from barnabas.wire.apis import api
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

DEADLINE_S = 2.0
METADATA_VERSION = 12

_SIZE = struct.Struct(">i")


def ask(port: int, request: Message, version: int, *, deadline_s: float = DEADLINE_S) -> Any:
    """The answer; OSError when there is none in time."""
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, 1, "testing"), out)
    request.writer(version)(request, out)
    with socket.create_connection((LOOPBACK, port), timeout=deadline_s) as connection:
        connection.sendall(_SIZE.pack(len(out)) + bytes(out))
        with connection.makefile("rb") as stream:
            size = stream.read(_SIZE.size)
            answer = stream.read(*_SIZE.unpack(size)) if size else b""
    if not answer:
        raise ConnectionResetError(f"port {port} hung up without an answer")
    _, position = read_response_header(answer, request.API_KEY, version)
    return api(request.API_KEY).response.read_exactly(answer, version, position)


@dataclass(slots=True, frozen=True)
class Replicas:
    """Of one partition."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and sorted(self.in_sync) == sorted(self.replicas)


@dataclass(slots=True, frozen=True)
class View:
    """The cluster as one of its brokers sees it."""

    brokers: set[int]
    partitions: dict[tuple[str, int], Replicas]


def view(port: int, *, deadline_s: float = DEADLINE_S) -> View:
    answer = ask(port, MetadataRequest(topics=None), METADATA_VERSION, deadline_s=deadline_s)
    return View(
        brokers={broker.node_id for broker in answer.brokers},
        partitions={
            (topic.name, partition.partition_index): Replicas(
                partition.leader_id,
                partition.leader_epoch,
                partition.replica_nodes,
                partition.isr_nodes,
            )
            for topic in answer.topics
            for partition in topic.partitions
        },
    )
