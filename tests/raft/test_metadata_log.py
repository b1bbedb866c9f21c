"""The metadata log of a sole voter: what it writes, and what it finds again."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.metadata.conftest import KAFKA_DIRECTORY
from tests.raft.cluster import Cluster, Member, Network, simulated

from barnabas.log.directory.directory_files import read_meta_properties
from barnabas.raft import QuorumConfig, QuorumError, VoterNode, VoterSet, read_bootstrap
from barnabas.raft.voters import VoterEndpoint
from barnabas.wire.records.batch import CorruptBatch
from barnabas.wire.uuid import ZERO

NOW_MS = 1_700_000_000_000
KAFKA_STATIC = Path(__file__).parent / "kafka-4.3-static"


@pytest.fixture
def member(tmp_path: Path) -> Member:
    return Cluster(tmp_path, voters=1, dynamic=True)[1]


def run(member: Member, scenario: Callable[[], None], *, clean: bool = True) -> Member:
    """Start it, live, and stop."""

    async def story() -> None:
        member.start()
        scenario()
        if clean:
            await member.stop()
        else:
            member.kill()

    simulated(story())
    return member


def nothing() -> None:
    pass


def _append(member: Member, frame: bytes) -> None:
    member.append(frame)


def flush(member: Member) -> None:
    member.quorum._flusher.flush_now()
    member.quorum._driver.step()


def test_a_sole_voter_leads_when_start_returns(member: Member) -> None:
    def scenario() -> None:
        assert member.listener.led == [1]
        quorum = member.quorum
        assert quorum.high_watermark == quorum.end_offset == 3  # leader, kraft version, voters

    run(member, scenario)
    state = json.loads((member.folder / "quorum-state").read_text())
    assert (state["leaderId"], state["leaderEpoch"], state["data_version"]) == (1, 1, 1)


def test_records_appended_at_the_election_are_committed_when_start_returns(
    member: Member,
) -> None:
    async def story() -> None:
        member.start(on_lead=lambda epoch: _append(member, b"first"))
        assert member.listener.frames == [b"first"]
        member.kill()

    simulated(story())


def test_every_start_begins_a_new_epoch_and_writes_the_voters_only_if_they_changed(
    member: Member,
) -> None:
    run(member, nothing)
    run(member, lambda: _expect(member, epoch=2, end_offset=4))
    member.port += 1
    run(member, lambda: _expect(member, epoch=3, end_offset=7))
    assert list(member.quorum.voters) == [member.voter]


def _expect(member: Member, *, epoch: int, end_offset: int) -> None:
    assert (member.quorum.epoch, member.quorum.end_offset) == (epoch, end_offset)


@pytest.mark.parametrize("clean", [True, False])
def test_flushed_records_are_published_again_in_order(member: Member, clean: bool) -> None:
    def scenario() -> None:
        for number in range(100):
            member.append(b"%d" % number, b"-%d" % number)
        flush(member)

    run(member, scenario, clean=clean)
    run(member, nothing)
    expected = [frame for n in range(100) for frame in (b"%d" % n, b"-%d" % n)]
    assert member.listener.frames == expected


def test_a_truncated_file_leaves_a_prefix_of_whole_batches(member: Member) -> None:
    def scenario() -> None:
        for number in range(10):
            member.append(*[b"%d" % number] * 3)
        flush(member)

    run(member, scenario, clean=False)
    log = member.folder / f"{0:020}.log"
    whole = log.read_bytes()
    for cut in range(len(whole), len(whole) - 300, -7):
        log.write_bytes(whole[:cut])
        (member.folder / "quorum-state").unlink()
        run(member, nothing, clean=False)
        frames = member.listener.frames
        assert frames == [b"%d" % number for number in range(len(frames) // 3) for _ in range(3)]


def test_a_snapshot_replaces_the_log_below_it(member: Member) -> None:
    def scenario() -> None:
        quorum = member.quorum
        last_offset = member.append(b"old")
        flush(member)
        writer = quorum.begin_snapshot(last_offset + 1, quorum.epoch, NOW_MS)
        writer.append([b"state"] * 3000)
        quorum.finish_snapshot(writer)
        assert quorum.bytes_since_snapshot == 0
        member.append(b"new")
        flush(member)

    run(member, scenario)
    run(member, nothing)
    assert member.listener.resets == 1
    assert member.listener.frames == [b"state"] * 3000 + [b"new"]
    assert list(member.quorum.voters) == [member.voter]


def test_an_incomplete_snapshot_is_not_used(member: Member) -> None:
    def scenario() -> None:
        member.append(b"record")
        flush(member)
        member.quorum.begin_snapshot(4, member.quorum.epoch, NOW_MS).append([b"half"])

    run(member, scenario, clean=False)
    run(member, nothing)
    assert member.listener.frames == [b"record"]
    assert not list(member.folder.glob("*.part"))


def test_old_snapshots_and_the_log_below_the_oldest_one_are_deleted(tmp_path: Path) -> None:
    config = QuorumConfig(segment_bytes=2000, retention_bytes=1500)
    member = Cluster(tmp_path, voters=1, dynamic=True, config=config)[1]

    def scenario() -> None:
        quorum = member.quorum
        for _ in range(20):
            last_offset = member.append(b"x" * 500)
            flush(member)
            quorum.finish_snapshot(quorum.begin_snapshot(last_offset + 1, quorum.epoch, NOW_MS))
        quorum.clean(int(time.time() * 1000))
        kept = sorted(member.folder.glob("*.checkpoint"))
        assert kept[-1].name.startswith(f"{last_offset + 1:020}")
        assert len(kept) < 5
        assert len(list(member.folder.glob("*.log"))) < 5

    run(member, scenario)
    run(member, nothing)
    assert member.listener.frames == []


def test_without_voters_and_bootstrap_servers_the_error_says_what_to_do(tmp_path: Path) -> None:
    member = Member(Network(), tmp_path / "log", 1)
    with pytest.raises(QuorumError, match="--standalone"):
        run(member, nothing)


def test_a_voter_must_be_a_controller(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, voters=1, dynamic=True)
    voter = cluster.add(1, is_controller=False, initial_voters=cluster.voters)
    with pytest.raises(QuorumError, match=r"process\.roles"):
        run(voter, nothing)


def test_a_corrupt_quorum_state_is_an_error(member: Member) -> None:
    run(member, nothing)
    (member.folder / "quorum-state").write_text("{")
    with pytest.raises(QuorumError, match="is corrupt"):
        run(member, nothing)


def test_a_corrupt_metadata_batch_is_an_error(member: Member) -> None:
    run(member, lambda: _append(member, b"a record that matters"))
    (log,) = member.folder.glob("*.log")
    log.write_bytes(log.read_bytes().replace(b"matters", b"flatter"))
    run(member, nothing, clean=False)
    assert "__cluster_metadata-0 is corrupt" in str(member.listener.failure)
    assert "a record that flatter" not in str(member.listener.frames)


def test_a_corrupt_snapshot_is_an_error_that_names_the_file(member: Member) -> None:
    (member.path / "bootstrap.checkpoint").write_bytes(b"\xff" * 100)
    with pytest.raises(CorruptBatch, match=r"bootstrap\.checkpoint is corrupt"):
        read_bootstrap(str(member.path))


# Directories that Kafka 4.3 wrote


def taken_over(tmp_path: Path, directory: Path, static_voters: VoterSet | None) -> Member:
    """A member on a copy of what a Kafka node with id 1 left."""
    member = Member(Network(), tmp_path / "unused", 1, static_voters=static_voters)
    member.path = tmp_path / "kafka"
    shutil.copytree(directory, member.path)
    member.directory_id = read_meta_properties(str(directory)).directory_id
    return member


def test_a_directory_of_kafka_with_dynamic_voters_can_be_used(tmp_path: Path) -> None:
    member = run(taken_over(tmp_path, KAFKA_DIRECTORY, None), nothing)
    assert member.listener.led == [3]
    assert member.listener.frames
    assert member.quorum.kraft_version == 1


def test_a_directory_of_kafka_with_static_voters_can_be_used(tmp_path: Path) -> None:
    voter = VoterNode(1, ZERO, (VoterEndpoint("CONTROLLER", "127.0.0.1", 9001),))
    member = run(taken_over(tmp_path, KAFKA_STATIC, VoterSet([voter])), nothing)
    assert member.listener.led == [2]
    assert member.listener.frames
    assert member.quorum.kraft_version == 0
    ours = (member.folder / "quorum-state").read_text()
    theirs = (KAFKA_STATIC / "__cluster_metadata-0" / "quorum-state").read_text()
    assert ours == theirs.replace('"leaderEpoch":1', '"leaderEpoch":2')
