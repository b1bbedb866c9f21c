"""Snapshots in a quorum: they replace the log below them, on this node and on followers."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.raft.cluster import Cluster, Member, simulated, until

from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.snapshots import SnapshotId

SMALL = QuorumConfig(segment_bytes=2000, retention_bytes=1000, fetch_snapshot_max_bytes=700)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, dynamic=True, config=SMALL)


def snapshot(member: Member, *frames: bytes) -> SnapshotId:
    """Writes a snapshot of all published records, and deletes what it replaces."""
    now_ms = 1 << 50
    end_offset, epoch = member.listener.next_offset, member.quorum.epoch
    writer = member.quorum.begin_snapshot(end_offset, epoch, now_ms)
    writer.append(frames or member.listener.frames)
    member.quorum.finish_snapshot(writer)
    member.quorum.clean(now_ms)
    return writer.snapshot_id


async def filled(cluster: Cluster) -> Member:
    """A leader whose log begins after a snapshot."""
    leader = await cluster.leader()
    for number in range(30):
        leader.append(b"%03d" % number * 50)
        await asyncio.sleep(0.01)
        if number % 10 == 9:
            await until(lambda: leader.listener.next_offset == leader.quorum.end_offset)
            snapshot(leader)
    return leader


def test_a_node_below_the_leaders_log_start_fetches_its_snapshot(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        away = cluster.followers_of(leader)[0]
        away.kill()
        await filled(cluster)
        leader.append(b"after")
        away.start()
        await cluster.all_have(*leader.listener.frames, b"after")
        assert away.listener.resets == 2, "its own snapshot at first, then the leader's"
        assert away.quorum.newest_snapshot == leader.quorum.newest_snapshot
        newest = leader.quorum.newest_snapshot
        assert newest is not None
        theirs, ours = leader.folder / newest.file_name, away.folder / newest.file_name
        assert theirs.read_bytes() == ours.read_bytes()
        assert away.quorum.voters.ids() == [1, 2, 3]
        assert not list(away.folder.glob("*.part"))

    simulated(scenario())


def test_a_new_observer_fetches_the_leaders_snapshot(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await filled(cluster)
        observer = cluster.add(8, is_controller=False)
        observer.start()
        await cluster.all_have(*leader.listener.frames)
        assert observer.quorum.voters.ids() == [1, 2, 3]
        observer.kill()
        observer.start()
        assert observer.listener.frames, "a snapshot is committed under any leader"
        await cluster.all_have(*leader.listener.frames)

    simulated(scenario())


def test_a_snapshot_download_continues_with_the_next_leader(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        await filled(cluster)
        for follower in cluster.followers_of(leader):
            await until(lambda f=follower: f.listener.frames == leader.listener.frames)  # type: ignore[misc]
            snapshot(follower)
        observer = cluster.add(8, is_controller=False)
        observer.start()
        await until(lambda: bool(list(observer.folder.glob("*.part"))))
        leader.kill()
        expected = list(leader.listener.frames)
        await cluster.all_have(*expected)
        assert not list(observer.folder.glob("*.part"))

    simulated(scenario())


def test_a_diverged_log_is_replaced_by_the_snapshot(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        old = await cluster.leader()
        old.append(b"kept")
        await cluster.all_have(b"kept")
        cluster.network.cut_off(old.node_id)
        for number in range(60):
            old.append(b"lost %d" % number)
        new = await filled(cluster)
        cluster.network.heal()
        await cluster.all_have(*new.listener.frames)
        assert old.quorum.end_offset == new.quorum.end_offset

    simulated(scenario())


def test_an_interrupted_download_leaves_the_old_log(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        away = cluster.followers_of(leader)[0]
        away.kill()
        await filled(cluster)
        away.start()
        await until(lambda: bool(list(away.folder.glob("*.part"))))
        away.kill()
        assert list(away.folder.glob("*.part"))
        away.start()
        await cluster.all_have(*leader.listener.frames)

    simulated(scenario())


def test_a_snapshot_downloaded_before_a_crash_is_used_at_the_next_start(
    cluster: Cluster,
) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        away = cluster.followers_of(leader)[0]
        away.kill()
        await filled(cluster)
        newest = leader.quorum.newest_snapshot
        assert newest is not None
        shutil.copy(leader.folder / newest.file_name, away.folder)
        away.start()
        assert away.listener.frames
        assert away.quorum.end_offset == newest.end_offset
        await cluster.all_have(*leader.listener.frames)

    simulated(scenario())


def test_a_snapshot_has_the_voters_at_its_end_offset(cluster: Cluster) -> None:
    async def scenario() -> None:
        cluster.start()
        leader = await cluster.leader()
        snapshot(leader)
        cluster.add(8, is_controller=False).start()
        await cluster.leader()
        writer = leader.quorum.begin_snapshot(0, 0, 1)
        writer.abandon()
        history = leader.quorum._log.history
        assert history.voters_below(leader.quorum.end_offset) is not None

    simulated(scenario())
