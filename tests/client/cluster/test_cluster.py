"""A client finds its cluster by any node that is up, and reports why if it finds none."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest
from tests.client.cluster.harness import a_cluster, code_of, request_error, soon
from tests.client.scripted import (
    HOST,
    HangUp,
    ScriptedBroker,
    metadata_of,
)
from tests.log_records import barnabas_log_lines
from tests.server.harness import on_a_loop
from tests.wait import async_wait_until

from barnabas.client.cluster import ClusterClient, Deadline
from barnabas.client.errors import KafkaError, KafkaException, log_unhandled_error
from barnabas.client.settings import ConnectionSettings
from barnabas.config.addresses import Endpoint
from barnabas.testing.ports import free_port
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataResponse,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LIST = {ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse()}


@on_a_loop
async def test_any_node_can_respond() -> None:
    async with a_cluster(ScriptedBroker(LIST)) as cluster:
        assert isinstance(await cluster.send_request(ListGroupsRequest()), ListGroupsResponse)


@on_a_loop
async def test_a_request_to_an_unknown_node_waits_for_metadata() -> None:
    first, second = ScriptedBroker(LIST), ScriptedBroker(LIST, node_id=2)
    async with a_cluster(first, second) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=2)
        assert second.requests_of(ApiKey.LIST_GROUPS)
        assert not first.requests_of(ApiKey.LIST_GROUPS)


@on_a_loop
async def test_a_request_to_a_node_that_does_not_exist_fails() -> None:
    async with a_cluster(ScriptedBroker(LIST)) as cluster:
        with pytest.raises(KafkaException, match="no broker 9") as caught:
            await cluster.send_request(ListGroupsRequest(), to=9)
        assert code_of(caught) == KafkaError._UNKNOWN_BROKER
        outcome = asyncio.get_running_loop().create_future()
        cluster.send(9, ListGroupsRequest(), 1_000, outcome.set_result)
        assert isinstance(await outcome, OSError)


@on_a_loop
async def test_every_connection_has_the_client_id() -> None:
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker, client_id="k") as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        await cluster.send_request(ListGroupsRequest(), to=1, purpose="fetch")
        assert {each.client_id for each in broker.received} == {"k"}
        assert broker.connections == 2


@on_a_loop
async def test_a_bootstrap_address_and_its_broker_share_a_connection() -> None:
    broker = ScriptedBroker({**LIST}, topics={"orders": 1})
    async with a_cluster(broker) as cluster:
        await cluster.topic("orders", deadline=soon())
        await cluster.send_request(ListGroupsRequest(), to=1)
        assert broker.connects == 1


@on_a_loop
async def test_another_broker_is_tried_when_one_disconnects() -> None:
    def hang_up(_: ListGroupsRequest) -> None:
        raise HangUp

    first, second = ScriptedBroker(LIST), ScriptedBroker({ApiKey.LIST_GROUPS: hang_up}, node_id=2)
    async with a_cluster(first, second) as cluster:
        for _ in range(10):
            await cluster.send_request(ListGroupsRequest())
        assert len(first.requests_of(ApiKey.LIST_GROUPS)) == 10


@on_a_loop
async def test_a_broker_that_is_down_is_skipped_until_it_is_back() -> None:
    first, second = ScriptedBroker(LIST), ScriptedBroker(LIST, node_id=2)
    async with a_cluster(first, second) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        await first.stop()
        for _ in range(5):
            await cluster.send_request(ListGroupsRequest())
        await first.start()
        while not first.connections:
            with suppress(KafkaException):
                await cluster.send_request(ListGroupsRequest(), to=1)
            await asyncio.sleep(0.001)


@on_a_loop
async def test_bootstrap_addresses_are_tried_again_when_no_broker_responds() -> None:
    old, new = ScriptedBroker(LIST, topics={"orders": 1}), ScriptedBroker(LIST, node_id=7)
    async with a_cluster(old) as cluster, new:
        elsewhere = ScriptedBroker(LIST, node_id=5)
        await elsewhere.start()
        old.handlers[ApiKey.METADATA] = lambda request: metadata_of([elsewhere], request)
        cluster.add_topics(["orders"])
        await async_wait_until(lambda: 5 in cluster.metadata.brokers)
        await elsewhere.stop()
        old.handlers[ApiKey.METADATA] = lambda request: metadata_of([new], request)
        cluster.refresh()
        await async_wait_until(lambda: 7 in cluster.metadata.brokers)


@on_a_loop
async def test_rebootstrap_required_starts_from_the_bootstrap_addresses() -> None:
    first, second = ScriptedBroker(topics={"orders": 1}), ScriptedBroker(node_id=2)
    async with a_cluster(first) as cluster, second:
        second.handlers[ApiKey.METADATA] = lambda _: MetadataResponse(
            error_code=ErrorCode.REBOOTSTRAP_REQUIRED
        )
        first.handlers[ApiKey.METADATA] = lambda request: metadata_of([second], request)
        cluster.add_topics(["orders"])
        await async_wait_until(lambda: 2 in cluster.metadata.brokers)
        first.handlers[ApiKey.METADATA] = lambda request: metadata_of([first], request)
        cluster.refresh()
        await async_wait_until(lambda: 1 in cluster.metadata.brokers)


@on_a_loop
async def test_the_error_names_every_address_with_its_cause() -> None:
    ports = [free_port(), free_port()]
    addresses = tuple(Endpoint("127.0.0.1", port) for port in ports)
    cluster = ClusterClient(ConnectionSettings(bootstrap_servers=addresses, retry_backoff_ms=10))
    error = await request_error(cluster, "refused.*refused")
    assert error == KafkaError._ALL_BROKERS_DOWN
    for port in ports:
        assert f"127.0.0.1:{port}: Connection refused" in error.str()
    await cluster.close()


@on_a_loop
async def test_a_client_without_addresses_says_so_when_it_is_made_and_at_every_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = ClusterClient(ConnectionSettings(client_id="lost"))
    try:
        [line] = barnabas_log_lines(caplog)
        assert line.startswith("lost: bootstrap.servers is not set")
        with pytest.raises(KafkaException, match=r"bootstrap\.servers is not set") as raised:
            await cluster.send_request(DescribeClusterRequest(), timeout_ms=10**9)  # at once
        assert code_of(raised) == KafkaError._ALL_BROKERS_DOWN
    finally:
        await cluster.close()


@on_a_loop
async def test_an_unresolvable_host_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    cluster = ClusterClient(ConnectionSettings(bootstrap_servers=(Endpoint("castle.invalid", 1),)))
    assert await request_error(cluster, r"castle\.invalid:1: Name or") == KafkaError._RESOLVE
    await cluster.close()


@on_a_loop
async def test_a_silent_address_does_not_block_the_next() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    broker = ScriptedBroker(LIST)
    async with broker:
        addresses = (Endpoint("127.0.0.1", silent.getsockname()[1]), broker.endpoint)
        cluster = ClusterClient(ConnectionSettings(bootstrap_servers=addresses))
        await cluster.send_request(ListGroupsRequest())
        await cluster.close()
    silent.close()


@on_a_loop
async def test_a_missing_response_is_a_timeout() -> None:
    async with a_cluster(ScriptedBroker({ApiKey.LIST_GROUPS: lambda _: None})) as cluster:
        with pytest.raises(KafkaException) as caught:
            await cluster.send_request(ListGroupsRequest(), to=1, timeout_ms=50)
        assert code_of(caught) == KafkaError._TIMED_OUT


@pytest.mark.parametrize("to", [None, 1])
@on_a_loop
async def test_a_request_without_time_fails_and_closes_no_connection(to: int | None) -> None:
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        with pytest.raises(KafkaException) as caught:
            await cluster.send_request(ListGroupsRequest(), to, timeout_ms=0)
        assert code_of(caught) == KafkaError._TIMED_OUT
        await cluster.send_request(ListGroupsRequest(), to=1)
        assert len(broker.requests_of(ApiKey.LIST_GROUPS)) == 2
        assert broker.connects == 1


@on_a_loop
async def test_an_unsupported_api_fails_at_once() -> None:
    async with a_cluster(ScriptedBroker()) as cluster:
        with pytest.raises(KafkaException, match="does not serve ListGroups") as caught:
            await cluster.send_request(ListGroupsRequest())
        assert code_of(caught) == KafkaError.UNSUPPORTED_VERSION


@on_a_loop
async def test_versions_are_the_highest_common_ones_or_as_limited() -> None:
    broker = ScriptedBroker(
        LIST, versions={ApiKey.LIST_GROUPS: (0, 4), ApiKey.API_VERSIONS: (0, 2)}
    )
    async with a_cluster(broker) as cluster:
        assert cluster.api_version(1, ApiKey.LIST_GROUPS) is None
        await cluster.send_request(ListGroupsRequest(), to=1)
        assert cluster.api_version(1, ApiKey.LIST_GROUPS) == 4
        await cluster.send_request(ListGroupsRequest(), to=1, max_version=2)
        versions = [each.version for each in broker.received if each.key == ApiKey.LIST_GROUPS]
        assert versions == [4, 2]


@on_a_loop
async def test_a_request_without_acks_is_done_when_it_is_sent() -> None:
    broker = ScriptedBroker({**LIST, ApiKey.PRODUCE: lambda _: None})
    async with a_cluster(broker) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        left = asyncio.get_running_loop().create_future()
        request = ProduceRequest(acks=0, timeout_ms=1_000)
        cluster.send(1, request, 1_000, left.set_result)
        cluster.send(1, request, 1_000, None)
        assert await left is None
        await cluster.send_request(ListGroupsRequest(), to=1)
        assert len(broker.requests_of(ApiKey.PRODUCE)) == 2


@on_a_loop
async def test_a_request_without_acks_that_cannot_be_sent_fails() -> None:
    broker = ScriptedBroker({**LIST, ApiKey.PRODUCE: lambda _: None})
    async with a_cluster(broker) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        outcomes: list[Any] = []
        records = PartitionProduceData(index=0, records=bytes(20 << 20))
        topic = TopicProduceData(name="t", partition_data=[records])
        request = ProduceRequest(acks=0, timeout_ms=1_000, topic_data=[topic])
        for _ in range(3):
            cluster.send(1, request, 1_000, outcomes.append, max_version=9)
        broker.hang_up()
        await async_wait_until(lambda: len(outcomes) == 3)
        assert isinstance(outcomes[-1], ConnectionError)


# An event for error_cb


@on_a_loop
async def test_a_broker_down_and_all_brokers_down_are_reported_once() -> None:
    reports: list[KafkaError] = []
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker, errors=reports) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        await broker.stop()
        await request_error(cluster, "_ALL_BROKERS_DOWN")
        assert [each.code() for each in reports] == [
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
        ]
        await broker.start()
        await cluster.send_request(ListGroupsRequest())
        await broker.stop()
        await request_error(cluster, "_ALL_BROKERS_DOWN")
        assert len(reports) == 4, "what came back can fall again"


@on_a_loop
async def test_an_idle_connection_may_be_closed_without_an_error() -> None:
    reports: list[KafkaError] = []
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker, errors=reports) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        broker.hang_up()
        await async_wait_until(lambda: cluster.api_version(1, ApiKey.LIST_GROUPS) is None)
        await cluster.send_request(ListGroupsRequest(), to=1)
        assert reports == []


@on_a_loop
async def test_an_idle_connection_is_closed() -> None:
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker, connections_max_idle_ms=20) as cluster:
        await cluster.send_request(ListGroupsRequest(), to=1)
        await async_wait_until(lambda: broker.connections == 0)
        await cluster.send_request(ListGroupsRequest(), to=1)


@on_a_loop
async def test_the_traffic_of_connections_is_counted() -> None:
    broker = ScriptedBroker(LIST)
    async with a_cluster(broker) as cluster:
        for _ in range(3):
            await cluster.send_request(ListGroupsRequest(), to=1)
        node_id, counters = cluster.counters[f"127.0.0.1:{broker.port}"]
        assert node_id == 1
        assert counters.requests_by_api[ApiKey.LIST_GROUPS] == 3
        assert counters.requests == counters.responses == 5  # ApiVersions and Metadata too
        assert counters.bytes_out > 100
        assert counters.bytes_in > 100
        assert counters.latency_s > 0
        assert counters.connections == 1
        assert counters.in_flight == 0


@on_a_loop
async def test_closing_fails_waiting_requests_and_opens_no_connection() -> None:
    broker = ScriptedBroker({ApiKey.LIST_GROUPS: lambda _: None})
    async with a_cluster(broker) as cluster:
        waiting = [
            asyncio.ensure_future(cluster.send_request(ListGroupsRequest())),
            asyncio.ensure_future(cluster.topic("missing", deadline=soon())),
        ]
        await async_wait_until(lambda: broker.requests_of(ApiKey.LIST_GROUPS))
        await cluster.close()
        for each in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(each, KafkaException)
        with pytest.raises(KafkaException):
            await cluster.send_request(ListGroupsRequest())
        await async_wait_until(lambda: broker.connections == 0)


# Controllers


@on_a_loop
async def test_controllers_are_found_by_describe_cluster() -> None:
    first, second = ScriptedBroker(LIST), ScriptedBroker(LIST, node_id=2)
    async with first, second:

        def describe(request: DescribeClusterRequest) -> DescribeClusterResponse:
            assert request.endpoint_type == 2
            return DescribeClusterResponse(
                cluster_id="castle",
                controller_id=2,
                brokers=[
                    DescribeClusterBroker(broker_id=each.node_id, host=HOST, port=each.port)
                    for each in (first, second)
                ],
            )

        first.handlers[ApiKey.DESCRIBE_CLUSTER] = describe
        cluster = ClusterClient(ConnectionSettings(), controllers=[first.endpoint])
        await cluster.send_request(ListGroupsRequest(), to=2)
        assert cluster.metadata.controller_id == 2
        assert set(cluster.metadata.brokers) == {1, 2}
        assert not first.requests_of(ApiKey.METADATA)
        await cluster.close()


@on_a_loop
async def test_the_address_of_a_controller_is_reported_once_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller, errors = ScriptedBroker({ApiKey.VOTE: lambda _: None}), list[KafkaError]()
    async with a_cluster(controller, errors=errors) as cluster:
        del controller.handlers[ApiKey.METADATA]
        for _ in range(2):
            with pytest.raises(KafkaException, match="it is a controller, which does not serve"):
                await cluster.topic("orders", deadline=Deadline.after(100))
    (error,) = errors
    assert error.code() == ErrorCode.UNSUPPORTED_VERSION
    log_unhandled_error(controller.settings(), error)
    assert barnabas_log_lines(caplog)[-1].endswith(
        f"{HOST}:{controller.port}: it is a controller, which does not serve Metadata: "
        "use the address of a broker"
    )
