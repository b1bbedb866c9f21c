"""Requests over quota: the response leaves at once, and the connection waits."""

import asyncio
from typing import Any

import pytest
from tests.server.harness import (
    LIST,
    PRODUCE,
    Server,
    a_list,
    a_produce,
    frame,
    name_the_client,
    on_a_loop,
)

from barnabas.security.authorizer.model import CLUSTER, AclOperation, Resource
from barnabas.security.principal import ANONYMOUS
from barnabas.security.quotas.entities import QuotaKey
from barnabas.server.network.throttle import ConnectionThrottle
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, ReplicaState
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.raft_elections import VoteRequest
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest
from barnabas.wire.messages.topics import CreateTopicsRequest
from barnabas.wire.messages.transaction_markers import WriteTxnMarkersRequest
from barnabas.wire.messages.transactions import AddPartitionsToTxnRequest

EVERYBODY = (("user", "ANONYMOUS"),)
NOW_MS = 10**9


async def append(request: ProduceRequest, _: RequestContext) -> ProduceResponse | None:
    return ProduceResponse() if request.acks else None


def a_server(**quotas: float) -> Server:
    handlers: dict[ApiKey, Any] = {LIST: name_the_client, PRODUCE: append}
    server = Server(handlers)
    server.broker.quotas.update({EVERYBODY: quotas} if quotas else {})
    return server


class Delays:
    """Replaces the timers of a connection by calls of the test."""

    def __init__(self, connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connection = connection
        self.delays_ms: list[int] = []
        start = ConnectionThrottle.start

        def note(each: ConnectionThrottle, delay_ms: int) -> None:
            self.delays_ms.append(delay_ms)
            start(each, 3_600_000)

        monkeypatch.setattr(ConnectionThrottle, "start", note)

    def end(self) -> None:
        self.connection.delay.end()


@on_a_loop
async def test_a_produce_request_over_quota_is_answered_and_the_next_one_waits() -> None:
    with pytest.MonkeyPatch.context() as patch:
        server = a_server(producer_byte_rate=100)
        client = server.connect()
        delays = Delays(client.connection, patch)
        request = a_produce(1, 2000)
        size_bytes = len(frame(*request)) - 4
        # The size is measured over ten seconds, and the client waits until it is 100 a second.
        delay_ms = 10 * size_bytes - 10_000
        await client.send(request, a_list(2), a_list(3))
        correlation_id, response = await client.receive(PRODUCE, 9)
        assert (correlation_id, response.throttle_time_ms) == (1, delay_ms)
        assert delays.delays_ms == [delay_ms]
        for _ in range(20):
            await asyncio.sleep(0)
        assert client.connection.is_busy
        with pytest.raises(BlockingIOError):
            client.socket.recv(1)
        delays.end()
        assert (await client.receive(LIST, 1))[0] == 2
        assert (await client.receive(LIST, 1))[0] == 3
        server.network.close()


@on_a_loop
async def test_bytes_that_arrive_while_a_connection_waits_stay_in_the_socket() -> None:
    with pytest.MonkeyPatch.context() as patch:
        server = a_server(producer_byte_rate=1)
        client = server.connect()
        delays = Delays(client.connection, patch)
        await client.send(a_produce(1, 1000))
        await client.receive(PRODUCE, 9)
        received_ns = client.connection.received_ns
        await client.send(a_list(2))
        for _ in range(20):
            await asyncio.sleep(0)
        assert client.connection.received_ns == received_ns
        delays.end()
        assert (await client.receive(LIST, 1))[0] == 2
        server.network.close()


@on_a_loop
async def test_a_shutdown_does_not_wait_for_the_delay() -> None:
    server = a_server(producer_byte_rate=1)
    client = server.connect()
    await client.send(a_produce(1, 1000), a_list(2))
    await client.receive(PRODUCE, 9)
    await server.network.drain(5000)
    assert (await client.receive(LIST, 1))[0] == 2
    assert await client.is_closed()


@on_a_loop
async def test_the_longest_of_several_delays_counts() -> None:
    server = a_server()
    client = server.connect()
    connection = client.connection
    connection.throttle(60_000)
    assert connection.delay is not None
    first = connection.delay.timer
    connection.throttle(10)
    assert connection.delay.timer is first
    connection.throttle(120_000)
    assert first is not None
    assert first.cancelled()
    connection.close()
    assert connection.delay.timer is None


@on_a_loop
async def test_without_quotas_requests_are_not_measured() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestQuotas, "throttle", None)
        server = a_server()
        client = server.connect()
        await client.send(a_produce(1, 10**6), a_list(2))
        assert (await client.receive(PRODUCE, 9))[1].throttle_time_ms == 0
        assert (await client.receive(LIST, 1))[0] == 2
        server.network.close()


# Single quotas


class FakeConnection:
    principal = ANONYMOUS

    def __init__(self) -> None:
        self.delays_ms: list[int] = []

    def throttle(self, delay_ms: int) -> None:
        self.delays_ms.append(delay_ms)


class FakeContext:
    def __init__(self, version: int = 9, *, is_node: bool = True) -> None:
        self.is_node = is_node
        self.principal = ANONYMOUS
        self.client_id = "app"
        self.api_version = version
        self.connection = FakeConnection()

    def is_allowed(self, operation: AclOperation, resource: Resource, *, is_audited: bool) -> bool:
        assert (operation, resource, is_audited) == (AclOperation.CLUSTER_ACTION, CLUSTER, False)
        return self.is_node


class FakeRoute:
    has_throttle_time = True


def quotas_of(**values: float) -> RequestQuotas:
    quotas = RequestQuotas(now_ms=lambda: NOW_MS)
    quotas.update({EVERYBODY: values})
    return quotas


def measure(
    quotas: RequestQuotas,
    request: Any,
    response: Any,
    handler_ns: int = 0,
    context: Any = None,
) -> list[int]:
    context = context or FakeContext()
    route: Any = FakeRoute()
    quotas.throttle(route, request, response, context, 1000, handler_ns)
    delays_ms: list[int] = context.connection.delays_ms
    return delays_ms


def test_a_producer_without_acks_waits_without_a_response() -> None:
    quotas = quotas_of(producer_byte_rate=50)
    assert measure(quotas, ProduceRequest(acks=0), None) == [10_000]


def test_request_time_is_limited_by_percent_of_a_thread() -> None:
    quotas = quotas_of(request_percentage=1)
    # 200 ms are 20 percent of a second, so 2 percent over ten seconds; the delay is one second.
    response = ProduceResponse()
    assert measure(quotas, ProduceRequest(acks=1), response, 200_000_000) == [1000]
    assert response.throttle_time_ms == 1000
    exempt = quotas_of(request_percentage=1)
    assert measure(exempt, ProduceRequest(acks=0), None, 10**10) == []
    assert measure(exempt, WriteTxnMarkersRequest(), None, 10**10) == []
    values = {gauge.name: gauge.value for gauge in exempt}
    assert values["kafka_server_request_exempt_request_time"] == 200


@pytest.mark.parametrize(
    ("request_of_node", "version"),
    [
        (VoteRequest(), 2),
        (BrokerHeartbeatRequest(), 1),
        (FetchRequest(replica_state=ReplicaState(replica_id=1)), 17),
        (OffsetForLeaderEpochRequest(replica_id=1), 4),
        (AddPartitionsToTxnRequest(), 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_requests_of_nodes_count_for_no_quota_and_only_for_nodes(
    request_of_node: Any, version: int
) -> None:
    quotas = quotas_of(request_percentage=1)
    node, other = FakeContext(version), FakeContext(version, is_node=False)
    assert measure(quotas, request_of_node, None, 10**10, node) == []
    assert measure(quotas, request_of_node, None, 10**10, other) == [1000]


def test_the_delay_of_the_controller_is_applied_by_the_broker() -> None:
    quotas = quotas_of(controller_mutation_rate=1)
    assert measure(quotas, CreateTopicsRequest(), ProduceResponse(throttle_time_ms=70)) == [70]


@pytest.mark.parametrize("version", [5, 6])
def test_mutations_take_tokens(version: int) -> None:
    quotas = quotas_of(controller_mutation_rate=1)
    context: Any = FakeContext(version)

    def record(count: int) -> int:
        mutations = quotas.recorded_mutations(CreateTopicsRequest(), context)
        assert mutations is not None
        try:
            mutations.record(count)
        except KafkaError:
            return -mutations.throttle_time_ms
        return mutations.throttle_time_ms

    if version == 6:  # strict: the request that finds tokens is served, and the next is rejected
        assert [record(5), record(10), record(1), record(1)] == [0, 0, -4000, -4000]
        mutations = quotas.recorded_mutations(CreateTopicsRequest(), context)
        with pytest.raises(KafkaError, match="retry in 4000 ms") as raised:
            mutations.record(1)  # type: ignore[union-attr]
        assert raised.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    else:
        assert [record(5), record(10), record(1)] == [0, 4000, 5000]


def test_other_requests_and_clients_take_no_tokens() -> None:
    quotas = quotas_of(controller_mutation_rate=1)
    context: Any = FakeContext()
    assert quotas.recorded_mutations(ProduceRequest(), context) is None
    quotas.update({(("user", "bob"),): {"controller_mutation_rate": 1.0}})
    assert quotas.recorded_mutations(CreateTopicsRequest(), context) is None
    assert RequestQuotas().recorded_mutations(CreateTopicsRequest(), context) is None


def test_clients_with_quotas_have_metrics() -> None:
    quotas = quotas_of(producer_byte_rate=50)
    quotas.produce.record("ANONYMOUS", "app", 1000, NOW_MS)
    quotas.update({(("user", None),): {QuotaKey.PRODUCER_BYTE_RATE: 50.0}})
    quotas.produce.record("a*b", "app", 500, NOW_MS)
    labels = {"user": "ANONYMOUS", "client_id": ""}
    gauges = {
        (gauge.name, gauge.labels["user"]): gauge for gauge in quotas if "user" in gauge.labels
    }
    assert gauges["kafka_server_produce_byte_rate", "ANONYMOUS"].value == 100
    assert gauges["kafka_server_produce_byte_rate", "ANONYMOUS"].labels == labels
    assert gauges["kafka_server_produce_throttle_time", "ANONYMOUS"].value == 10_000
    assert gauges["kafka_server_produce_byte_rate", "a%2Ab"].value == 50


def queue_sizes(quotas: RequestQuotas) -> dict[str, float]:
    suffix = "_queue_size"
    return {
        gauge.name.removeprefix("kafka_server_").removesuffix(suffix): gauge.value
        for gauge in quotas
        if gauge.name.endswith(suffix) and gauge.value
    }


def test_connections_that_wait_are_counted_by_the_quota_that_delays_them() -> None:
    now_ms = [NOW_MS]
    quotas = RequestQuotas(now_ms=lambda: now_ms[0])
    quotas.update({EVERYBODY: {"producer_byte_rate": 10, "request_percentage": 1}})
    assert measure(quotas, ProduceRequest(acks=1), ProduceResponse()) == [90_000]
    measure(quotas, CreateTopicsRequest(), ProduceResponse(throttle_time_ms=70))
    measure(quotas, FetchRequest(), ProduceResponse(throttle_time_ms=50))
    measure(quotas, OffsetForLeaderEpochRequest(), ProduceResponse(), handler_ns=10**9)
    assert queue_sizes(quotas) == {
        "produce": 1,
        "controllermutation": 1,
        "fetch": 1,
        "request": 1,
    }
    now_ms[0] += 60
    assert queue_sizes(quotas) == {"produce": 1, "controllermutation": 1, "request": 1}
    now_ms[0] += 100_000
    assert queue_sizes(quotas) == {}


def test_the_tokens_of_clients_that_change_partitions_are_shown() -> None:
    quotas = quotas_of(controller_mutation_rate=1)
    context: Any = FakeContext(6)
    mutations = quotas.recorded_mutations(CreateTopicsRequest(), context)
    assert mutations is not None
    mutations.record(13)
    name = "kafka_server_controllermutation_tokens"
    assert [gauge.value for gauge in quotas if gauge.name == name] == [-2]
