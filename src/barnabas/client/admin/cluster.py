"""The cluster: brokers, controllers, API versions, features, and the metadata quorum."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from barnabas.client.admin.model import (
    AclOperation,
    Node,
    Uuid,
    as_operations,
    operations_from_bits,
)
from barnabas.client.admin.requests import UNSET, AdminRequests, one_request_per_item
from barnabas.client.admin.results import Results, error_of, raise_on_error
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.messages import describe_quorum
from barnabas.wire.messages.api_versions import ApiVersion
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.metadata import BROKERS, CONTROLLERS, DescribeClusterRequest
from barnabas.wire.messages.raft_voters import AddRaftVoterRequest, Listener, RemoveRaftVoterRequest
from barnabas.wire.messages.registrations import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message


@dataclass(slots=True, eq=False)
class DescribeClusterResult:
    """The nodes of a cluster. `fenced` has the ids of brokers that are registered but fenced."""

    controller: Node | None
    nodes: list[Node]
    cluster_id: str | None = None
    authorized_operations: list[AclOperation] | None = None
    fenced: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authorized_operations = as_operations(self.authorized_operations)


def describe_cluster(
    admin: AdminRequests,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, DescribeClusterResult]:
    """Returns the brokers, or with `bootstrap.controllers` the controllers, of the cluster.

    `include_fenced_brokers` adds brokers that are registered but not in service.
    """
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=_endpoint_type(admin),
        include_fenced_brokers=include_fenced_brokers,
    )
    return _describe_cluster(admin, request, admin.deadline(request_timeout))


def _endpoint_type(admin: AdminRequests) -> int:
    return CONTROLLERS if admin.has_controllers else BROKERS


async def _describe_cluster(
    admin: AdminRequests, request: DescribeClusterRequest, deadline: Deadline
) -> DescribeClusterResult:
    response = await admin.send(request, deadline=deadline)
    raise_on_error(response)
    nodes = [
        Node(broker.broker_id, broker.host, broker.port, broker.rack) for broker in response.brokers
    ]
    return DescribeClusterResult(
        next((node for node in nodes if node.id == response.controller_id), None),
        nodes,
        response.cluster_id,
        operations_from_bits(response.cluster_authorized_operations),
        [broker.broker_id for broker in response.brokers if broker.is_fenced],
    )


def describe_api_versions(
    admin: AdminRequests, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[Node, list[ApiVersion]]]:
    """Returns the APIs that each broker serves, with their version ranges, by broker."""
    return _describe_api_versions(admin, admin.deadline(request_timeout))


async def _describe_api_versions(
    admin: AdminRequests, deadline: Deadline
) -> Results[Node, list[ApiVersion]]:
    request = DescribeClusterRequest(endpoint_type=_endpoint_type(admin))
    cluster = await _describe_cluster(admin, request, deadline)

    async def fetch_versions(node: int | None, _: Node) -> list[ApiVersion] | KafkaError:
        response = await admin.send(API_VERSIONS_REQUEST, node, deadline=deadline)
        if response.error_code:
            return broker_error(response.error_code)
        versions: list[ApiVersion] = response.api_keys
        return versions

    brokers = {node: node.id for node in cluster.nodes}
    return await admin.route_to_brokers(brokers, one_request_per_item(fetch_versions), deadline)


def unregister_broker(
    admin: AdminRequests, broker_id: int, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, None]:
    """Removes the registration of a broker that is shut down and will not come back."""
    request = UnregisterBrokerRequest(broker_id=broker_id)
    return _send(admin, request, admin.deadline(request_timeout))


class UpgradeType(Enum):
    """Whether a level may rise, fall without losing metadata, or fall in any case."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(slots=True, frozen=True)
class FeatureUpdate:
    """The level to finalize for a feature; 0 disables it."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(slots=True, frozen=True)
class VersionRange:
    min_version: int
    max_version: int


@dataclass(slots=True, frozen=True)
class FeatureMetadata:
    """Levels by feature: finalized ones with their epoch, and those that brokers support."""

    finalized_features: dict[str, VersionRange]
    finalized_features_epoch: int | None
    supported_features: dict[str, VersionRange]


def describe_features(
    admin: AdminRequests, *, node_id: int | None = None, request_timeout: float = UNSET
) -> Coroutine[Any, Any, FeatureMetadata]:
    """Returns the finalized features of the cluster and those that brokers support.

    `node_id` selects the node to request them from.
    """
    deadline = admin.deadline(request_timeout)

    async def describe() -> FeatureMetadata:
        response = await admin.send(API_VERSIONS_REQUEST, node_id, deadline=deadline)
        raise_on_error(response)
        epoch = response.finalized_features_epoch
        return FeatureMetadata(
            {
                feature.name: VersionRange(feature.min_version_level, feature.max_version_level)
                for feature in response.finalized_features
            },
            epoch if epoch >= 0 else None,
            {
                feature.name: VersionRange(feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
        )

    return describe()


def update_features(
    admin: AdminRequests,
    feature_updates: dict[str, FeatureUpdate],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Changes the finalized levels of features, all or none; results are by feature."""
    if not feature_updates:
        raise ValueError("feature_updates must hold at least one feature")
    deadline = admin.deadline(request_timeout)
    request = UpdateFeaturesRequest(
        timeout_ms=admin.operation_timeout_ms(operation_timeout, deadline),
        feature_updates=[
            FeatureUpdateKey(
                feature=name,
                max_version_level=update.max_version_level,
                upgrade_type=update.upgrade_type.value,
            )
            for name, update in feature_updates.items()
        ],
        validate_only=validate_only,
    )

    async def update() -> Results[str, None]:
        response = await admin.send_to_controller(request, deadline)
        outcomes: dict[str, KafkaError | None] = dict.fromkeys(feature_updates)
        # Up to version 1 features have errors of their own.
        for result in response.results:
            outcomes[result.feature] = error_of(result)
        return Results(outcomes)

    return update()


_METADATA_TOPIC = "__cluster_metadata"


@dataclass(slots=True, frozen=True)
class RaftVoterEndpoint:
    """A listener of a voter."""

    listener: str
    host: str
    port: int


@dataclass(slots=True, frozen=True)
class ReplicaState:
    """The progress of a metadata log replica; timestamps in milliseconds, None if unknown."""

    replica_id: int
    replica_directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


@dataclass(slots=True, frozen=True)
class MetadataQuorum:
    """Leader, voters and observers; `nodes` has the endpoints of voters by id."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[ReplicaState]
    observers: list[ReplicaState]
    nodes: dict[int, list[RaftVoterEndpoint]]


def describe_metadata_quorum(
    admin: AdminRequests, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, MetadataQuorum]:
    """Returns leader, voters and observers of the metadata log, as the leader reports them."""
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name=_METADATA_TOPIC, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    deadline = admin.deadline(request_timeout)

    async def describe() -> MetadataQuorum:
        response = await admin.send_to_controller(request, deadline)
        described = response.topics[0].partitions[0]
        raise_on_error(described)
        return MetadataQuorum(
            described.leader_id,
            described.leader_epoch,
            described.high_watermark,
            [_state(voter) for voter in described.current_voters],
            [_state(observer) for observer in described.observers],
            {
                node.node_id: [
                    RaftVoterEndpoint(listener.name, listener.host, listener.port)
                    for listener in node.listeners
                ]
                for node in response.nodes
            },
        )

    return describe()


def add_raft_voter(
    admin: AdminRequests,
    voter_id: int,
    voter_directory_id: Uuid,
    endpoints: Iterable[RaftVoterEndpoint],
    *,
    cluster_id: str | None = None,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, None]:
    """Adds a controller that replicates the metadata log to the voters."""
    deadline = admin.deadline(request_timeout)
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=admin.operation_timeout_ms(operation_timeout, deadline),
        voter_id=voter_id,
        voter_directory_id=bytes(voter_directory_id),
        listeners=[
            Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in endpoints
        ],
    )
    return _send(admin, request, deadline)


def remove_raft_voter(
    admin: AdminRequests,
    voter_id: int,
    voter_directory_id: Uuid,
    *,
    cluster_id: str | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, None]:
    """Removes a controller from the voters of the metadata log."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        voter_directory_id=bytes(voter_directory_id),
    )
    return _send(admin, request, admin.deadline(request_timeout))


async def _send(admin: AdminRequests, request: Message, deadline: Deadline) -> None:
    await admin.send_to_controller(request, deadline)


def _state(replica: describe_quorum.ReplicaState) -> ReplicaState:
    fetched_ms, caught_up_ms = replica.last_fetch_timestamp, replica.last_caught_up_timestamp
    return ReplicaState(
        replica.replica_id,
        Uuid.from_bytes(replica.replica_directory_id),
        replica.log_end_offset,
        fetched_ms if fetched_ms >= 0 else None,
        caught_up_ms if caught_up_ms >= 0 else None,
    )
