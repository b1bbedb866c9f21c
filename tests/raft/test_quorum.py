"""A quorum of several members: it elects, commits, loses leaders, and goes on."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.raft.cluster import CLUSTER, Cluster, at_controller_listener, simulated, until

from barnabas.raft import quorum_state
from barnabas.raft.election_codec import vote_request
from barnabas.raft.messages import RaftVoteRequest
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_three_voters_elect_one_of_them(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        assert leader.listener.led == [leader.quorum.epoch]
        for member in cluster.up:
            assert member.quorum.leader is not None
            assert member.quorum.leader.port == leader.port
            state = json.loads((member.folder / "quorum-state").read_text())
            assert (state["leaderId"], state["leaderEpoch"]) == (
                leader.node_id,
                leader.quorum.epoch,
            )
            assert state["data_version"] == 0
            assert [item["voterId"] for item in state["currentVoters"]] == [1, 2, 3]

    simulated(scenario())


def test_appended_records_are_published_on_every_node_in_order(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        frames = [b"%d" % number for number in range(50)]
        for frame in frames:
            leader.append(frame)
            await asyncio.sleep(0.0005)
        await cluster.all_have(*frames)

    simulated(scenario())


def test_nothing_is_published_before_a_majority_has_it(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        for follower in cluster.followers_of(leader):
            follower.disk.delay_s = 0.1
        leader.append(b"slow")
        await asyncio.sleep(0.08)
        assert leader.listener.frames == []
        await cluster.all_have(b"slow")

    simulated(scenario())


def test_a_follower_gets_the_high_watermark_without_new_records(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        await asyncio.sleep(1)
        begun = asyncio.get_running_loop().time()
        leader.append(b"news")
        await cluster.all_have(b"news")
        assert asyncio.get_running_loop().time() - begun < 0.03

    simulated(scenario())


def test_a_new_leader_is_elected_within_a_fraction_of_a_second(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        first = await cluster.leader()
        first.append(b"before")
        await cluster.all_have(b"before")
        killed_s = asyncio.get_running_loop().time()
        first.kill()
        second = await cluster.leader()
        assert asyncio.get_running_loop().time() - killed_s < 0.5
        assert second.quorum.epoch > first.listener.led[-1]
        second.append(b"after")
        await cluster.all_have(b"before", b"after")
        first.start()
        await cluster.all_have(b"before", b"after")

    simulated(scenario())


def test_a_restarted_leader_does_not_delay_the_election(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        await cluster.leader()
        for member in cluster.up:
            member.kill()
        begun = asyncio.get_running_loop().time()
        cluster.start()
        await cluster.leader()
        assert asyncio.get_running_loop().time() - begun < 0.3

    simulated(scenario())


def test_a_leader_that_stops_lists_its_preferred_successors(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        first = await cluster.leader()
        first.append(b"before")
        await cluster.all_have(b"before")
        begun = asyncio.get_running_loop().time()
        await first.stop()
        assert first.listener.resigned_from == first.listener.led
        await cluster.leader()
        assert asyncio.get_running_loop().time() - begun < 0.3

    simulated(scenario())


def test_records_of_a_partitioned_leader_are_truncated_when_it_returns(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        old = await cluster.leader()
        old.append(b"kept")
        await cluster.all_have(b"kept")
        cluster.network.cut_off(old.node_id)
        for number in range(5):
            old.append(b"lost %d" % number)
        new = await cluster.leader()
        new.append(b"new")
        await until(lambda: new.listener.frames == [b"kept", b"new"])
        assert old.listener.frames == [b"kept"]
        cluster.network.heal()
        await cluster.all_have(b"kept", b"new")
        assert old.listener.resigned_from
        await until(lambda: old.quorum.end_offset == new.quorum.end_offset)

    simulated(scenario())


def test_a_partitioned_leader_resigns(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        cluster.network.cut_off(leader.node_id)
        await until(lambda: not leader.quorum.is_leader)
        epoch = leader.listener.led[-1]
        with pytest.raises(KafkaError) as error:
            leader.quorum.append([b"late"], epoch, 1)
        assert error.value.code is ErrorCode.NOT_CONTROLLER

    simulated(scenario())


def test_a_restarted_node_catches_up(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        away = cluster.followers_of(leader)[0]
        away.kill()
        for number in range(100):
            leader.append(b"%d" % number)
        away.start()
        await cluster.all_have(*(b"%d" % number for number in range(100)))

    simulated(scenario())


def test_committed_records_survive_a_restart_of_all_nodes(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        leader.append(b"one")
        await cluster.all_have(b"one")
        epoch = leader.quorum.epoch
        for member in cluster.up:
            member.kill()
        cluster.start()
        for member in cluster.up:
            assert member.listener.frames == [], "nobody knows yet what is committed"
        leader = await cluster.leader()
        assert leader.quorum.epoch > epoch
        await cluster.all_have(b"one")

    simulated(scenario())


def test_a_node_with_a_disk_error_reports_it_and_leaves_the_quorum(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        leader.disk.error = OSError(5, "the disk is gone")
        leader.append(b"one")
        await until(lambda: leader.listener.failure is not None)
        with pytest.raises(KafkaError):
            leader.append(b"two")
        leader.kill()
        await cluster.leader()

    simulated(scenario())


def test_an_observer_follows_and_never_votes(cluster: Cluster) -> None:
    async def scenario() -> None:
        observer = cluster.add(7, is_controller=False)
        cluster.start()
        leader = await cluster.leader()
        leader.append(b"one")
        await cluster.all_have(b"one")
        described = leader.quorum.describe()
        assert [item.node_id for item in described.voter_states] == [1, 2, 3]
        assert [item.node_id for item in described.observer_states] == [7]
        leader.kill()
        second = await cluster.leader()
        second.append(b"two")
        await cluster.all_have(b"one", b"two")
        vote_targets = {
            target for _, target, name in cluster.network.requests if name == "VoteRequest"
        }
        assert observer.node_id not in vote_targets

    simulated(scenario())


def test_a_vote_that_is_not_on_disk_is_not_sent(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        voter, candidate = cluster.followers_of(leader)
        leader.kill()

        def refuse(*_: object) -> None:
            raise OSError(28, "no space left")

        voted = RaftVoteRequest(
            candidate.voter.key,
            epoch=99,
            last_epoch=98,
            last_offset=99,
            pre_vote=False,
        )
        monkeypatch.setattr(quorum_state, "write_state", refuse)
        response = await voter.quorum.handle_request(
            vote_request(CLUSTER, voted), at_controller_listener(2)
        )
        monkeypatch.undo()
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert not response.topics
        assert voter.listener.failure is not None

    simulated(scenario())


def test_a_listener_that_raises_stops_the_node(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        follower = cluster.followers_of(leader)[0]

        def give_up(_: object) -> None:
            raise ValueError("a record from the future")

        follower.listener.on_committed = give_up  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        leader.append(b"strange")
        await until(lambda: follower.listener.failure is not None)
        assert "a record from the future" in str(follower.listener.failure)

    simulated(scenario())
