"""Requests to one node, without a client that would choose the node."""

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.testing.ports import LOOPBACK
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

REQUEST_TIMEOUT_S = 2.0
METADATA_VERSION = 12

_SIZE = struct.Struct(">i")


Connect = Callable[[int, float], socket.socket]
"""Connects to a port of this machine within that many seconds, so that requests can be sent."""


def connect(port: int, timeout_s: float) -> socket.socket:
    """Connects to a listener without TLS and without a login."""
    return socket.create_connection((LOOPBACK, port), timeout=timeout_s)


def send_request(
    port: int,
    request: Message,
    version: int,
    *,
    timeout_s: float = REQUEST_TIMEOUT_S,
    connect: Connect = connect,
) -> Any:
    """Sends a request and returns the response. Raises OSError if there is none in time."""
    with connect(port, timeout_s) as connection:
        return exchange(connection, request, version)


def exchange(connection: socket.socket, request: Message, version: int) -> Any:
    """Sends a request on a connection and returns the response."""
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, 1, "testing"), out)
    request.writer(version)(request, out)
    connection.sendall(_SIZE.pack(len(out)) + bytes(out))
    with connection.makefile("rb") as stream:
        size = stream.read(_SIZE.size)
        response = stream.read(*_SIZE.unpack(size)) if size else b""
    if not response:
        raise ConnectionResetError("the node closed the connection without a response")
    _, position = read_response_header(response, request.API_KEY, version)
    return api(request.API_KEY).response.read_exactly(response, version, position)


@dataclass(slots=True, frozen=True)
class PartitionReplicas:
    """Leader and replicas of a partition."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]

    @property
    def are_all_in_sync(self) -> bool:
        return self.leader >= 0 and sorted(self.in_sync) == sorted(self.replicas)


@dataclass(slots=True, frozen=True)
class MetadataView:
    """The brokers and partitions in the metadata of one broker."""

    brokers: set[int]
    partitions: dict[tuple[str, int], PartitionReplicas]


def fetch_metadata(
    port: int, *, timeout_s: float = REQUEST_TIMEOUT_S, connect: Connect = connect
) -> MetadataView:
    response = send_request(
        port, MetadataRequest(topics=None), METADATA_VERSION, timeout_s=timeout_s, connect=connect
    )
    return MetadataView(
        brokers={broker.node_id for broker in response.brokers},
        partitions={
            (topic.name, partition.partition_index): PartitionReplicas(
                partition.leader_id,
                partition.leader_epoch,
                partition.replica_nodes,
                partition.isr_nodes,
            )
            for topic in response.topics
            for partition in topic.partitions
        },
    )


TIMEOUT_MS = 15_000
BROKER_DEFAULT = -1
"""Instead of a number of partitions."""


def create_topic_request(
    name: str, partitions: int | None, replication_factor: int, config: Mapping[str, object] | None
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=replication_factor,
        configs=[
            CreatableTopicConfig(name=key, value=setting_text(value))
            for key, value in (config or {}).items()
        ],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


def delete_topic_request(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)


def raise_for_errors(response: CreateTopicsResponse | DeleteTopicsResponse) -> None:
    results = response.topics if isinstance(response, CreateTopicsResponse) else response.responses
    for result in results:
        if result.error_code:
            code = ErrorCode.of(result.error_code)
            raise BrokerError(f"Topic {result.name}: {code.name}: {result.error_message}")


def setting_text(value: object) -> str:
    """Returns the text of a setting in server.properties."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class BrokerError(Exception):
    """The broker did not start, or rejected a request of the test; the message says why."""
