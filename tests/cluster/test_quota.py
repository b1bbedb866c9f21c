"""Clients over their quota wait; the requests of others are served meanwhile."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.requests import produce

from barnabas.testing import Broker
from barnabas.testing.requests import connect, exchange, send_request
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from barnabas.wire.outgoing import Outgoing

GREEDY, TOPIC = "greedy", "orders"
QUOTA_BYTES_PER_S = 100
CONNECTIONS, REQUESTS = 20, 50
TIMEOUT_S = 30
PRODUCE_VERSION = 9


@pytest.fixture
def broker() -> Iterator[Broker]:
    # Windows of minutes: a client over its quota waits longer than the test runs.
    with Broker({"quota.window.size.seconds": "600"}) as broker:
        broker.create_topic(TOPIC, 1)
        yield broker


def test_a_client_over_its_quota_does_not_delay_the_requests_of_others(broker: Broker) -> None:
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    limit(port)
    frame = frame_of_greedy_client()
    with ExitStack() as stack:
        greedy = [stack.enter_context(connect(port, TIMEOUT_S)) for _ in range(CONNECTIONS)]
        for connection in greedy:
            connection.sendall(frame)
            assert receive_throttle_ms(connection) > 0
            connection.setblocking(False)
            connection.send(frame * REQUESTS)  # as much as fits into the buffers
        with connect(port, TIMEOUT_S) as other:
            for _ in range(REQUESTS):
                response = exchange(other, produce(TOPIC, batch()), PRODUCE_VERSION)
                assert response.responses[0].partition_responses[0].error_code == 0
                assert response.throttle_time_ms == 0
        for connection in greedy:
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def limit(port: int) -> None:
    operation = OpData(key="producer_byte_rate", value=QUOTA_BYTES_PER_S)
    entity = EntityData(entity_type="client-id", entity_name=GREEDY)
    request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=[entity], ops=[operation])])
    response = send_request(port, request, 1, timeout_s=TIMEOUT_S)
    assert response.entries[0].error_code == 0


def frame_of_greedy_client() -> bytes:
    """Returns a produce request of more bytes than the quota allows in all its windows."""
    request = produce(TOPIC, batch(value=bytes(1_000_000)), acks=1)
    out = Outgoing()
    write_request_header(RequestHeader(ApiKey.PRODUCE, PRODUCE_VERSION, 1, GREEDY), out)
    request.writer(PRODUCE_VERSION)(request, out)
    return struct.pack(">i", len(out)) + bytes(out)


def receive_throttle_ms(connection: socket.socket) -> int:
    (size,) = struct.unpack(">i", receive(connection, 4))
    response = receive(connection, size)
    _, position = read_response_header(response, ApiKey.PRODUCE, PRODUCE_VERSION)
    parsed = api(ApiKey.PRODUCE).response.read_exactly(response, PRODUCE_VERSION, position)
    throttle_ms: int = parsed.throttle_time_ms
    return throttle_ms


def receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        assert chunk, "the broker closed the connection"
        received += chunk
    return received
