"""The quorum of the metadata log: who leads it, who votes, adding and removing voters."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, raise_failure
from barnabas.client.admin.model import Uuid
from barnabas.client.cluster import Deadline
from barnabas.wire.messages import describe_quorum
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

_METADATA_TOPIC = "__cluster_metadata"


@dataclass(slots=True, frozen=True)
class RaftVoterEndpoint:
    """Where a voter listens."""

    listener: str
    host: str
    port: int


@dataclass(slots=True, frozen=True)
class ReplicaState:
    """How far a replica of the metadata log is; times are milliseconds, None if not known."""

    replica_id: int
    replica_directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


@dataclass(slots=True, frozen=True)
class MetadataQuorum:
    """Leader, voters and observers; `nodes` has the endpoints of voters by their ids."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[ReplicaState]
    observers: list[ReplicaState]
    nodes: dict[int, list[RaftVoterEndpoint]]


class QuorumCalls(Calls):
    def describe_metadata_quorum(
        self, *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, MetadataQuorum]:
        """The quorum as its leader sees it."""
        return self._describe_quorum(self._deadline(request_timeout))

    async def _describe_quorum(self, deadline: Deadline) -> MetadataQuorum:
        partition = RequestPartitionData(partition_index=0)
        topic = RequestTopicData(topic_name=_METADATA_TOPIC, partitions=[partition])
        response = await self._routes.ask_controller(
            DescribeQuorumRequest(topics=[topic]), deadline
        )
        told = response.topics[0].partitions[0]
        raise_failure(told.error_code, told.error_message)
        return MetadataQuorum(
            told.leader_id,
            told.leader_epoch,
            told.high_watermark,
            [_state(voter) for voter in told.current_voters],
            [_state(observer) for observer in told.observers],
            {
                node.node_id: [
                    RaftVoterEndpoint(each.name, each.host, each.port) for each in node.listeners
                ]
                for node in response.nodes
            },
        )

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Iterable[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, None]:
        """Have a controller that follows the metadata log vote from now on."""
        deadline = self._deadline(request_timeout)
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._wait_ms(operation_timeout, deadline),
            voter_id=voter_id,
            voter_directory_id=bytes(voter_directory_id),
            listeners=[
                Listener(name=each.listener, host=each.host, port=each.port) for each in endpoints
            ],
        )
        return self._changed(request, deadline)

    def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        *,
        cluster_id: str | None = None,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, None]:
        """Have a voter vote no more."""
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id,
            voter_id=voter_id,
            voter_directory_id=bytes(voter_directory_id),
        )
        return self._changed(request, self._deadline(request_timeout))

    async def _changed(
        self, request: AddRaftVoterRequest | RemoveRaftVoterRequest, deadline: Deadline
    ) -> None:
        await self._routes.ask_controller(request, deadline)


def _state(replica: describe_quorum.ReplicaState) -> ReplicaState:
    fetched_ms, caught_up_ms = replica.last_fetch_timestamp, replica.last_caught_up_timestamp
    return ReplicaState(
        replica.replica_id,
        Uuid.from_bytes(replica.replica_directory_id),
        replica.log_end_offset,
        fetched_ms if fetched_ms >= 0 else None,
        caught_up_ms if caught_up_ms >= 0 else None,
    )
