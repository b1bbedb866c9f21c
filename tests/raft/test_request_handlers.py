"""Responses to the requests of other nodes, valid and invalid."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.raft.cluster import (
    OTHER_PORT_DISTANCE,
    Cluster,
    Member,
    at_controller_listener,
    decoded,
    simulated,
    until,
)

from barnabas.raft.addresses import RequestOrigin
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import fetch, fetch_snapshot
from barnabas.wire.messages.raft_elections import (
    BeginQuorumEpochRequest,
    BeginRequestPartitionData,
    BeginRequestTopicData,
    EndQuorumEpochRequest,
    EndRequestPartitionData,
    EndRequestTopicData,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
)
from barnabas.wire.uuid import METADATA_TOPIC_ID

TOPIC = "__cluster_metadata"
HUGE = 2**62


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def a_vote(topic: str = TOPIC, cluster_id: str | None = "cluster", **fields: Any) -> Any:
    defaults = {"replica_epoch": 50, "replica_id": 2, "last_offset_epoch": 49, "last_offset": HUGE}
    partition = VoteRequestPartitionData(**(defaults | fields))
    topics = [VoteRequestTopicData(topic_name=topic, partitions=[partition])]
    return VoteRequest(cluster_id=cluster_id, topics=topics)


def a_beginning(topic: str = TOPIC, cluster_id: str | None = "cluster", **fields: Any) -> Any:
    partition = BeginRequestPartitionData(**({"leader_id": 2, "leader_epoch": 50} | fields))
    topics = [BeginRequestTopicData(topic_name=topic, partitions=[partition])]
    return BeginQuorumEpochRequest(cluster_id=cluster_id, topics=topics)


def an_ending(topic: str = TOPIC, cluster_id: str | None = "cluster", **fields: Any) -> Any:
    partition = EndRequestPartitionData(**({"leader_id": 2, "leader_epoch": 50} | fields))
    topics = [EndRequestTopicData(topic_name=topic, partitions=[partition])]
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics)


def a_fetch(
    topic_id: bytes = METADATA_TOPIC_ID,
    cluster_id: str | None = "cluster",
    *,
    max_wait_ms: int = 0,
    max_bytes: int = 1 << 20,
    replica_id: int = 9,
    **fields: Any,
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        **({"fetch_offset": 0, "last_fetched_epoch": 0, "partition_max_bytes": 1 << 20} | fields)
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=replica_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def a_piece(
    name: str = TOPIC, cluster_id: str | None = "cluster", *, end_offset: int = 5, **fields: Any
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=end_offset, epoch=1), **fields
    )
    topic = fetch_snapshot.RequestTopicSnapshot(name=name, partitions=[partition])
    return fetch_snapshot.FetchSnapshotRequest(cluster_id=cluster_id, replica_id=9, topics=[topic])


async def send(member: Member, request: Any) -> Any:
    return await member.serve(request)


def partition_of(response: Any) -> Any:
    topics = response.responses if isinstance(response, fetch.FetchResponse) else response.topics
    return topics[0].partitions[0]


REQUESTS = [a_vote, a_beginning, an_ending, a_fetch, a_piece]


@pytest.mark.parametrize("make", REQUESTS)
def test_requests_of_another_cluster_are_rejected(cluster: Cluster, make: Any) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        epoch = leader.quorum.epoch
        response = await send(leader, make(cluster_id="another"))
        assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert leader.quorum.epoch == epoch

    simulated(scenario())


@pytest.mark.parametrize("make", [a_vote, a_beginning, an_ending])
def test_requests_for_another_topic_are_rejected(cluster: Cluster, make: Any) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        nothing, several = make(), make()
        nothing.topics = []
        several.topics *= 2
        for request in (make(topic="orders"), make(partition_index=3), nothing, several):
            response = await send(leader, request)
            assert response.error_code == ErrorCode.INVALID_REQUEST

    simulated(scenario())


def test_a_snapshot_of_another_topic_is_unknown(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        response = await send(leader, a_piece(name="orders"))
        unknown = partition_of(response)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    simulated(scenario())


@pytest.mark.parametrize(
    "request_",
    [
        a_vote(replica_id=-1),
        a_vote(last_offset=-1),
        a_vote(last_offset_epoch=-1),
        a_vote(last_offset_epoch=50),
        a_beginning(leader_id=-1),
        an_ending(leader_id=-1),
    ],
)
def test_requests_with_invalid_numbers_are_rejected(cluster: Cluster, request_: Any) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        response = await send(leader, request_)
        assert partition_of(response).error_code == ErrorCode.INVALID_REQUEST

    simulated(scenario())


@pytest.mark.parametrize(
    "fields",
    [
        {"fetch_offset": -1},
        {"last_fetched_epoch": -1},
        {"last_fetched_epoch": 2**30},
        {"max_wait_ms": -1},
    ],
)
def test_a_fetch_with_invalid_numbers_is_rejected(cluster: Cluster, fields: dict[str, int]) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        epoch = leader.quorum.epoch
        response = await send(leader, a_fetch(current_leader_epoch=epoch, **fields))  # type: ignore[arg-type]
        assert partition_of(response).error_code == ErrorCode.INVALID_REQUEST

    simulated(scenario())


def test_a_fetch_in_another_epoch_gets_the_leader_and_its_address(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        follower = cluster.followers_of(leader)[0]
        epoch = leader.quorum.epoch
        for member, fetch_epoch, code in [
            (leader, epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (leader, epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (follower, epoch, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ]:
            response = await send(member, a_fetch(current_leader_epoch=fetch_epoch))
            partition = partition_of(response)
            assert partition.error_code == code
            assert partition.current_leader.leader_id == leader.node_id
            assert partition.current_leader.leader_epoch == epoch
            (node,) = response.node_endpoints
            assert (node.node_id, node.port) == (leader.node_id, leader.port)

    simulated(scenario())


def test_requests_at_another_listener_get_the_leaders_address_of_that_listener(
    cluster: Cluster,
) -> None:
    """Nodes that still use a listener, and those that use the next one, find the leader."""

    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        for member in (leader, *cluster.followers_of(leader)):
            for request, version in (
                (a_vote(replica_epoch=0, last_offset_epoch=0), 2),
                (a_beginning(leader_epoch=0), 1),
                (an_ending(leader_epoch=0), 1),
                (a_piece(current_leader_epoch=0), 1),
                (a_fetch(current_leader_epoch=0), 17),
            ):
                response: Any = await member.quorum.handle_request(
                    request, RequestOrigin(version, "OTHER")
                )
                (node,) = response.node_endpoints
                expected = (leader.node_id, leader.port + OTHER_PORT_DISTANCE)
                assert (node.node_id, node.port) == expected
                response = await member.quorum.handle_request(
                    request, RequestOrigin(version, "UNKNOWN")
                )
                assert not response.node_endpoints

    simulated(scenario())


def test_responses_of_old_versions_have_no_endpoints(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        quorum = cluster.followers_of(await cluster.leader())[0].quorum
        responses: list[tuple[Any, int]] = [
            (
                await quorum.handle_request(
                    a_vote(replica_epoch=0, last_offset_epoch=0), at_controller_listener(0)
                ),
                0,
            ),
            (
                await quorum.handle_request(a_beginning(leader_epoch=0), at_controller_listener(0)),
                0,
            ),
            (await quorum.handle_request(an_ending(leader_epoch=0), at_controller_listener(0)), 0),
            (
                await quorum.handle_request(
                    a_piece(current_leader_epoch=0), at_controller_listener(0)
                ),
                0,
            ),
            (
                await quorum.handle_request(
                    a_fetch(current_leader_epoch=0), at_controller_listener(12)
                ),
                12,
            ),
        ]
        for response, version in responses:
            again: Any = decoded(response, version)
            assert partition_of(again).error_code != ErrorCode.NONE
            assert not again.node_endpoints

    simulated(scenario())


def test_a_fetch_waits_for_records_up_to_its_maximum_wait(cluster: Cluster) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        cluster.start()
        leader = await cluster.leader()
        await until(lambda: leader.quorum.high_watermark == leader.quorum.end_offset)
        epoch, offset = leader.quorum.epoch, leader.quorum.end_offset
        fields = {"current_leader_epoch": epoch, "fetch_offset": offset}
        request = a_fetch(max_wait_ms=300, last_fetched_epoch=epoch, **fields)
        begun_s = loop.time()
        response = await send(leader, request)
        assert loop.time() - begun_s == pytest.approx(0.3, abs=0.01)
        assert len(partition_of(response).records) == 0
        waiting = asyncio.ensure_future(send(leader, request))
        await asyncio.sleep(0.1)
        leader.append(b"news")
        response = await waiting
        assert loop.time() - begun_s < 0.45
        assert b"news" in bytes(partition_of(response).records)

    simulated(scenario())


def test_a_fetcher_with_an_old_high_watermark_gets_a_response_at_once(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        await until(lambda: leader.quorum.high_watermark == leader.quorum.end_offset)
        epoch, offset = leader.quorum.epoch, leader.quorum.end_offset
        request = a_fetch(
            max_wait_ms=10_000,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            high_watermark=0,
        )
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        response = await leader.quorum.handle_request(request, at_controller_listener(18))
        assert loop.time() == sent_at
        assert partition_of(response).high_watermark == leader.quorum.high_watermark

    simulated(scenario())


def test_waiting_fetches_complete_when_the_leader_resigns(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        epoch, offset = leader.quorum.epoch, leader.quorum.end_offset
        request = a_fetch(
            max_wait_ms=30_000,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
        )
        waiting = asyncio.ensure_future(send(leader, request))
        await asyncio.sleep(0.01)
        await leader.stop()
        response = await waiting
        assert partition_of(response).error_code != ErrorCode.NONE

    simulated(scenario())


@pytest.mark.parametrize("position", [-1, HUGE])
def test_positions_outside_a_snapshot_are_out_of_range(cluster: Cluster, position: int) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        epoch = leader.quorum.epoch
        writer = leader.quorum.begin_snapshot(1, 1, 1)
        leader.quorum.finish_snapshot(writer)
        response = await send(
            leader, a_piece(end_offset=1, position=position, current_leader_epoch=epoch)
        )
        assert partition_of(response).error_code == ErrorCode.POSITION_OUT_OF_RANGE

    simulated(scenario())


@pytest.mark.parametrize("end_offset", [0, 5, -1])
def test_an_unknown_snapshot_is_not_found(cluster: Cluster, end_offset: int) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        epoch = leader.quorum.epoch
        response = await send(leader, a_piece(end_offset=end_offset, current_leader_epoch=epoch))
        assert partition_of(response).error_code == ErrorCode.SNAPSHOT_NOT_FOUND

    simulated(scenario())
