"""Reassignments, registrations and voters: requests that are refused, in every version."""

from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.sides import Side, Sides, assert_same_responses

from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    Listener,
    RemoveRaftVoterRequest,
)
from barnabas.wire.messages.registrations import UnregisterBrokerRequest
from barnabas.wire.uuid import ZERO

pytestmark = pytest.mark.peer

OTHER_DIRECTORY = b"\x02" * 16


@pytest.mark.parametrize(
    ("topic", "partition", "replicas"),
    [
        (PLAIN, 0, []),
        (PLAIN, 0, [7]),
        (PLAIN, 0, [1, 1]),
        (PLAIN, 0, [-1]),
        (PLAIN, 0, [1, 7]),
        (PLAIN, 0, None),
        (PLAIN, 99, [1]),
        (PLAIN, 99, None),
        ("unknown-to-both", 0, [1]),
        ("unknown-to-both", 0, None),
        ("no/name", 0, [1]),
    ],
)
def test_invalid_reassignments(
    sides: Sides, topic: str, partition: int, replicas: list[int] | None
) -> None:
    requested = ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [ReassignableTopic(name=topic, partitions=[requested])]
    for allow_change in True, False:
        assert_same_responses(
            sides,
            lambda _, version, allow_change=allow_change: AlterPartitionReassignmentsRequest(
                topics=topics,
                allow_replication_factor_change=allow_change or version < 1,
            ),
        )


@pytest.mark.parametrize(("topic", "partition"), [(PLAIN, 0), (PLAIN, 99), ("unknown-to-both", 0)])
def test_list_reassignments(sides: Sides, topic: str, partition: int) -> None:
    topics = [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[partition])]
    assert_same_responses(sides, lambda *_: ListPartitionReassignmentsRequest(topics=topics))


@pytest.mark.parametrize("broker_id", [7, -1])
def test_unregister_an_unknown_broker(sides: Sides, broker_id: int) -> None:
    assert_same_responses(sides, lambda *_: UnregisterBrokerRequest(broker_id=broker_id))


ADDED: dict[str, dict[str, Any]] = {
    "present": {"voter_id": 1},
    "present_elsewhere": {"voter_id": 1, "voter_directory_id": OTHER_DIRECTORY},
    "not_running": {"voter_id": 7},
    "negative_id": {"voter_id": -1},
    "without_directory": {"voter_id": 7, "voter_directory_id": ZERO},
    "without_listeners": {"voter_id": 7, "listeners": []},
    "with_other_listener": {"voter_id": 7, "listeners": [Listener(name="NONE", host="h", port=1)]},
    "other_cluster": {"voter_id": 7, "cluster_id": "other"},
}


@pytest.mark.parametrize("case", ADDED)
def test_voters_that_cannot_be_added(sides: Sides, case: str) -> None:
    def build(side: Side, _: int) -> Any:
        controller = Listener(name="CONTROLLER", host="127.0.0.1", port=1)
        defaults = {
            "cluster_id": None,
            "voter_directory_id": own_directory(side),
            "listeners": [controller],
        }
        return AddRaftVoterRequest(timeout_ms=2000, **(defaults | ADDED[case]))

    assert_same_responses(sides, build)


REMOVED: dict[str, dict[str, Any]] = {
    "last": {"voter_id": 1},
    "other_directory": {"voter_id": 1, "voter_directory_id": OTHER_DIRECTORY},
    "unknown": {"voter_id": 7},
    "negative_id": {"voter_id": -1},
    "without_directory": {"voter_id": 1, "voter_directory_id": ZERO},
    "other_cluster": {"voter_id": 7, "cluster_id": "other"},
}


@pytest.mark.parametrize("case", REMOVED)
def test_voters_that_cannot_be_removed(sides: Sides, case: str) -> None:
    def build(side: Side, _: int) -> Any:
        defaults = {"cluster_id": None, "voter_directory_id": own_directory(side)}
        return RemoveRaftVoterRequest(**(defaults | REMOVED[case]))

    assert_same_responses(sides, build)


def own_directory(side: Side) -> bytes:
    """Returns the directory of the only voter."""
    metadata = RequestTopicData(
        topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)]
    )
    response: Any = side.send(DescribeQuorumRequest(topics=[metadata]), 2)
    (voter,) = response.topics[0].partitions[0].current_voters
    return bytes(voter.replica_directory_id)
