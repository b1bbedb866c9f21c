"""One question to one node, without a client library that knows better whom to ask."""

from dataclasses import dataclass
from typing import Any

from tests.conformance.brokers import connect, read_frame
from tests.conformance.same.sides import framed, read_answer

from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.schema import Message

DEADLINE_S = 2
METADATA_VERSION = 12
QUORUM_VERSION = 2


def ask(port: int, request: Message, version: int, *, deadline_s: float = DEADLINE_S) -> Any:
    """The answer; OSError when there is none in time."""
    with connect(port, deadline_s=deadline_s) as connection:
        connection.sendall(framed(request, version))
        answer = read_answer(read_frame(connection), request, version)
    if answer is None:
        raise ConnectionResetError(f"port {port} hung up without an answer")
    return answer


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
        brokers={each.node_id for each in answer.brokers},
        partitions={
            (topic.name, each.partition_index): Replicas(
                each.leader_id, each.leader_epoch, each.replica_nodes, each.isr_nodes
            )
            for topic in answer.topics
            for each in topic.partitions
        },
    )


@dataclass(slots=True, frozen=True)
class QuorumView:
    """The quorum as its leader sees it."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, int]
    """Log end offsets."""
    observers: dict[int, int]


def quorum_view(port: int, *, deadline_s: float = DEADLINE_S) -> QuorumView | None:
    """What a broker or a controller says; None while there is no leader to ask."""
    asked = DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[RequestPartitionData(partition_index=0)],
            )
        ]
    )
    answer = ask(port, asked, QUORUM_VERSION, deadline_s=deadline_s)
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        return None
    found = answer.topics[0].partitions[0]
    return QuorumView(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        {each.replica_id: each.log_end_offset for each in found.current_voters},
        {each.replica_id: each.log_end_offset for each in found.observers},
    )
