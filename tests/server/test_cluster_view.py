"""What clients see of a cluster of several brokers: endpoints, leaders, replicas."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World

from barnabas.config.addresses import SecurityProtocol
from barnabas.server.api import describe_cluster, describe_topic_partitions, metadata
from barnabas.server.api.find_coordinator import handle as find_coordinator
from barnabas.server.cluster_view import add_current_leaders
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord

OFFSETS = "__consumer_offsets"


def register(
    world: World,
    broker_id: int,
    *,
    fenced: bool = False,
    listener: str = "PLAINTEXT",
    host: str | None = None,
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
) -> None:
    world.metadata(
        records.RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=5,
            end_points=[
                records.BrokerEndpoint(name="INSIDE", host=f"in{broker_id}", port=9),
                records.BrokerEndpoint(
                    name=listener,
                    host=host or f"host{broker_id}",
                    port=9090 + broker_id,
                    security_protocol=security_protocol,
                ),
            ],
            rack=f"r{broker_id}",
            fenced=fenced,
        )
    )


@pytest.fixture
def cluster(world: World) -> World:
    """Broker 1 responds; 2 is up, 3 is fenced, 4 has no endpoint of the client's listener."""
    register(world, 2)
    register(world, 3, fenced=True)
    register(world, 4, listener="OTHER")
    return world


def describe(world: World, version: int = 12) -> Any:
    return world.request(metadata.handle, MetadataRequest(topics=None), version)


def partition_of(world: World, version: int = 12) -> Any:
    return describe(world, version).topics[0].partitions[0]


def test_clients_receive_the_brokers_with_an_endpoint_of_their_listener(cluster: World) -> None:
    assert [
        (item.node_id, item.host, item.port, item.rack) for item in describe(cluster).brokers
    ] == [
        (1, "here", 9092, "r1"),
        (2, "host2", 9092, "r2"),
    ]


def test_a_client_never_receives_an_empty_list_of_brokers(world: World) -> None:
    world.metadata(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1))
    register(world, 3, fenced=True)
    assert all(broker.fenced for broker in world.image.brokers.values())
    assert [item.node_id for item in describe(world).brokers] == [1]


def test_fenced_brokers_are_described_on_request(
    cluster: World,
) -> None:
    def described(**sent_request: bool) -> list[tuple[int, bool]]:
        request = DescribeClusterRequest(**sent_request)
        response = cluster.request(describe_cluster.handle, request, 2)
        return [(item.broker_id, item.is_fenced) for item in response.brokers]

    assert described() == [(1, False), (2, False)]
    assert described(include_fenced_brokers=True) == [(1, False), (2, False), (3, True)]


def test_a_partition_led_elsewhere_has_its_leader_and_its_offline_replicas(
    cluster: World,
) -> None:
    cluster.create_topic("orders", replicas=(1, 2, 3, 4, 5), isr=(1, 2), leader=2)
    partition = partition_of(cluster)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 2)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2, 3, 4, 5], [1, 2])
    assert partition.offline_replicas == [3, 4, 5]


@pytest.mark.parametrize(
    ("leader", "version", "code"),
    [
        (-1, 12, ErrorCode.LEADER_NOT_AVAILABLE),
        (5, 12, ErrorCode.LEADER_NOT_AVAILABLE),
        (4, 12, ErrorCode.LISTENER_NOT_FOUND),
        (4, 5, ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_coordinator_without_a_reachable_leader_is_not_available(
    cluster: World, leader: int, version: int, code: ErrorCode
) -> None:
    cluster.create_topic("orders", replicas=(3, 4), leader=leader)
    partition = partition_of(cluster, version)
    assert (partition.error_code, partition.leader_id) == (code, -1)


def test_partitions_without_a_leader_are_described_without_an_error(
    cluster: World,
) -> None:
    cluster.create_topic("orders", replicas=(3, 4), leader=-1)
    request = DescribeTopicPartitionsRequest(topics=[])
    response = cluster.request(describe_topic_partitions.handle, request, 0)
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, -1)
    assert partition.offline_replicas == [3, 4]


def test_the_coordinator_of_a_key_is_the_leader_of_its_partition(cluster: World) -> None:
    cluster.create_topic(OFFSETS, 4, replicas=(1, 2))
    cluster.lead(OFFSETS, 1, leader=2)
    cluster.lead(OFFSETS, 2, leader=-1)
    cluster.lead(OFFSETS, 3, leader=4)
    runtime = SimpleNamespace(topic=OFFSETS, partition_of=int)
    groups: Any = SimpleNamespace(runtime=runtime)
    cluster.broker.groups = groups
    request = FindCoordinatorRequest(coordinator_keys=["0", "1", "2", "3"])
    entry = cluster.request(find_coordinator, request, 4).coordinators
    assert [(item.key, item.error_code, item.node_id, item.host) for item in entry] == [
        ("0", ErrorCode.NONE, 1, "here"),
        ("1", ErrorCode.NONE, 2, "host2"),
        ("2", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, ""),
        ("3", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, ""),
    ]


# The address by which a client reached this machine


def addresses_in_every_response(world: World, local_host: str) -> dict[str, list[str]]:
    """Returns the hosts of brokers 2 and 3 by API; 2 is registered as localhost."""
    world.create_topic(OFFSETS, 4, replicas=(2, 3), leader=2)
    world.create_topic("orders", replicas=(2, 3), leader=2)
    runtime = SimpleNamespace(topic=OFFSETS, partition_of=int)
    groups: Any = SimpleNamespace(runtime=runtime)
    world.broker.groups = groups
    context = world.call(12, local_host=local_host)
    requests: list[tuple[Any, Any, int]] = [
        (metadata.handle, MetadataRequest(topics=None), 12),
        (describe_cluster.handle, DescribeClusterRequest(), 1),
    ]
    found = {
        type(request).__name__: [
            item.host
            for item in world.request(handle, request, version, local_host=local_host).brokers
            if item.host != "here"
        ]
        for handle, request, version in requests
    }
    request = FindCoordinatorRequest(coordinator_keys=["0"])
    (coordinator,) = world.request(find_coordinator, request, 4, local_host=local_host).coordinators
    found["FindCoordinatorRequest"] = [coordinator.host]
    rejected = SimpleNamespace(current_leader=None)
    endpoints = add_current_leaders(
        [("orders", 0, rejected)], context, SimpleNamespace, SimpleNamespace
    )
    found["node_endpoints"] = [endpoint.host for endpoint in endpoints]
    return found


@pytest.mark.parametrize("local_host", ["127.0.0.1", "127.0.0.2", "::1", "10.0.0.7"])
def test_a_broker_registered_as_localhost_is_where_the_client_connected_to(
    world: World, local_host: str
) -> None:
    register(world, 2, host="localhost")
    register(world, 3)
    assert addresses_in_every_response(world, local_host) == {
        "MetadataRequest": [local_host, "host3"],
        "DescribeClusterRequest": [local_host, "host3"],
        "FindCoordinatorRequest": [local_host],
        "node_endpoints": [local_host],
    }


@pytest.mark.parametrize("protocol", [SecurityProtocol.SSL, SecurityProtocol.SASL_SSL])
def test_with_tls_a_client_on_this_machine_gets_the_name_that_certificates_have(
    world: World, protocol: SecurityProtocol
) -> None:
    register(world, 2, host="localhost", security_protocol=protocol)
    register(world, 3)
    for local_host in ("127.0.0.1", "::1"):
        found = addresses_in_every_response(world, local_host)
        assert {hosts[0] for hosts in found.values()} == {"localhost"}
    found = addresses_in_every_response(world, "10.0.0.7")  # where localhost is another machine
    assert {hosts[0] for hosts in found.values()} == {"10.0.0.7"}


def test_advertised_listeners_are_given_literally(new_world: Callable[..., World]) -> None:
    world = new_world(advertised_listeners="PLAINTEXT://localhost:9092")
    register(world, 2, host="localhost")
    register(world, 3)
    found = addresses_in_every_response(world, "10.0.0.7")
    assert {hosts[0] for hosts in found.values()} == {"localhost"}
