"""The quorum of the metadata log: describe it, add and remove voters."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import Uuid
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import raise_on_error
from barnabas.client.admin.validation import UNSET
from barnabas.client.cluster import Deadline
from barnabas.wire.messages import describe_quorum
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.raft_voters import AddRaftVoterRequest, Listener, RemoveRaftVoterRequest

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
        raise_on_error(described.error_code, described.error_message)
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


async def _send(
    admin: AdminRequests, request: AddRaftVoterRequest | RemoveRaftVoterRequest, deadline: Deadline
) -> None:
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
