"""Voters come and go while the quorum works (KIP-853)."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.raft.cluster import CLUSTER, Cluster, Member, simulated, until

from barnabas.raft.quorum_config import QuorumConfig
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.wire.uuid import ZERO


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, dynamic=True)


def adding(member: Member, **changes: object) -> AddRaftVoterRequest:
    listener = Listener(name="CONTROLLER", host="localhost", port=member.port)
    fields: dict[str, object] = {
        "cluster_id": CLUSTER,
        "timeout_ms": 1000,
        "voter_id": member.node_id,
        "voter_directory_id": member.directory_id,
        "listeners": [listener],
    }
    return AddRaftVoterRequest(**(fields | changes))


def removing(member: Member, **changes: object) -> RemoveRaftVoterRequest:
    fields: dict[str, object] = {
        "cluster_id": CLUSTER,
        "voter_id": member.node_id,
        "voter_directory_id": member.directory_id,
    }
    return RemoveRaftVoterRequest(**(fields | changes))


async def added(leader: Member, member: Member) -> AddRaftVoterResponse:
    """Asks until the new voter has caught up."""
    while True:
        response = await leader.serve(adding(member))
        if response.error_code != ErrorCode.REQUEST_TIMED_OUT:
            return response
        await asyncio.sleep(0.05)


def test_dynamic_voters_write_quorum_state_version_1(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        leader.append(b"one")
        await cluster.all_have(b"one")
        assert leader.quorum.kraft_version == 1
        assert leader.quorum.voters.ids() == [1, 2, 3]
        state = json.loads((leader.folder / "quorum-state").read_text())
        assert state["data_version"] == 1

    simulated(scenario())


def test_an_observer_becomes_a_voter_that_can_lead(cluster: Cluster) -> None:
    async def scenario() -> None:
        new = cluster.add(4)
        cluster.start()
        leader = await cluster.leader()
        leader.append(b"one")
        await cluster.all_have(b"one")
        response = await added(leader, new)
        assert response.error_code == ErrorCode.NONE
        await until(lambda: all(m.quorum.voters.ids() == [1, 2, 3, 4] for m in cluster.up))
        leader.kill()
        second = await cluster.leader()
        second.append(b"two")
        await cluster.all_have(b"one", b"two")
        vote_targets = {
            target for _, target, name in cluster.network.requests if name == "VoteRequest"
        }
        assert new.node_id in vote_targets

    simulated(scenario())


def test_a_removed_voter_is_an_observer(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        gone = cluster.followers_of(leader)[0]
        response = await leader.serve(removing(gone))
        assert response.error_code == ErrorCode.NONE
        assert gone.node_id not in leader.quorum.voters.ids()
        leader.append(b"after")
        await cluster.all_have(b"after")
        described = leader.quorum.describe()
        assert [item.node_id for item in described.observer_states] == [gone.node_id]

    simulated(scenario())


def test_a_removed_leader_resigns_and_another_leads(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        response = await leader.serve(removing(leader))
        assert response.error_code == ErrorCode.NONE
        await until(lambda: not leader.quorum.is_leader)
        second = await cluster.leader()
        assert second is not leader
        second.append(b"after")
        await cluster.all_have(b"after")

    simulated(scenario())


def test_a_voter_with_new_endpoints_is_updated(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        moved = cluster.followers_of(leader)[0]
        moved.kill()
        moved.port += 100
        moved.start()
        await until(lambda: leader.quorum.voters.get(moved.node_id) == moved.voter)
        leader.append(b"found")
        await cluster.all_have(b"found")

    simulated(scenario())


def test_a_controller_joins_the_voters_if_auto_join_is_enabled(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, dynamic=True)
        cluster.add(4, config=QuorumConfig(auto_join=True))
        cluster.start()
        leader = await cluster.leader()
        await until(lambda: leader.quorum.voters.ids() == [1, 2, 3, 4])

    simulated(scenario())


def test_a_controller_with_a_new_directory_replaces_its_old_voter(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, dynamic=True, config=QuorumConfig(auto_join=True))
        cluster.start()
        leader = await cluster.leader()
        leader.append(b"kept")
        await cluster.all_have(b"kept")
        replaced = cluster.followers_of(leader)[0]
        replaced.kill()
        replaced.path = tmp_path / "another"
        replaced.directory_id = b"n" * 16
        replaced.format()
        replaced.start()
        await until(lambda: leader.quorum.voters.includes(replaced.voter.key))
        assert leader.quorum.voters.ids() == [1, 2, 3]
        await cluster.all_have(b"kept")

    simulated(scenario())


def test_a_quorum_grows_from_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, voters=1, dynamic=True)
        cluster.start()
        (leader,) = cluster.up
        assert leader.listener.led == [1]
        leader.append(b"alone")
        await asyncio.sleep(10)
        for node_id in (2, 3):
            new = cluster.add(node_id)
            new.start()
            assert (await added(leader, new)).error_code == ErrorCode.NONE
        await cluster.all_have(b"alone")
        assert leader.listener.led == [1], "it leads on"
        leader.kill()
        second = await cluster.leader()
        second.append(b"together")
        await cluster.all_have(b"alone", b"together")

    simulated(scenario())


def test_voters_change_one_at_a_time(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        one, other = cluster.followers_of(leader)
        first, second = await asyncio.gather(
            leader.serve(removing(one)), leader.serve(removing(other))
        )
        assert first.error_code == ErrorCode.NONE
        assert second.error_code == ErrorCode.REQUEST_TIMED_OUT

    simulated(scenario())


def test_a_voter_change_without_a_majority_times_out(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        one, other = cluster.followers_of(leader)
        cluster.network.cut_off(one.node_id)
        cluster.network.cut_off(other.node_id)
        response = await leader.serve(removing(one))
        assert response.error_code in (
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        )
        cluster.network.heal()
        await cluster.leader()

    simulated(scenario())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_directory_id": ZERO}, ErrorCode.INVALID_REQUEST),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 1}, ErrorCode.DUPLICATE_VOTER),
        ({}, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_an_invalid_voter_is_rejected(
    cluster: Cluster, changes: dict[str, object], code: ErrorCode
) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        stranger = cluster.add(9)  # it is not up
        response = await leader.serve(adding(stranger, **changes))
        assert response.error_code == code
        assert response.error_message

    simulated(scenario())


def test_only_the_leader_changes_voters(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        follower = cluster.followers_of(await cluster.leader())[0]
        error: list[AddRaftVoterResponse | RemoveRaftVoterResponse] = [
            await follower.serve(adding(follower)),
            await follower.serve(removing(follower)),
        ]
        assert {item.error_code for item in error} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}

    simulated(scenario())


def test_a_voter_is_not_removed_by_another_directory(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        response = await leader.serve(removing(leader, voter_directory_id=b"x" * 16))
        assert response.error_code == ErrorCode.VOTER_NOT_FOUND

    simulated(scenario())


def test_static_voters_do_not_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.start()
        leader = await cluster.leader()
        response = await leader.serve(removing(leader))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION

    simulated(scenario())


def test_the_only_voter_is_not_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, voters=1, dynamic=True)
        cluster.start()
        response = await cluster[1].serve(removing(cluster[1]))
        assert response.error_code == ErrorCode.VOTER_NOT_FOUND

    simulated(scenario())


def test_uncommitted_voters_are_removed_by_a_truncation(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        old = await cluster.leader()
        one, _ = cluster.followers_of(old)
        cluster.network.cut_off(old.node_id)
        removal = asyncio.ensure_future(old.serve(removing(one)))
        await asyncio.sleep(0.1)
        assert old.quorum.voters.ids() != [1, 2, 3]
        await cluster.leader()
        cluster.network.heal()
        await until(lambda: old.quorum.voters.ids() == [1, 2, 3])
        assert (await removal).error_code != ErrorCode.NONE

    simulated(scenario())
