"""The metadata log of a quorum of one: what it writes, and what it finds again."""

import json
import time
from pathlib import Path

import pytest

from barnabas.log import LogDirectory
from barnabas.raft import (
    Endpoint,
    Quorum,
    QuorumConfig,
    QuorumError,
    Voter,
    Voters,
    format_metadata,
    read_bootstrap,
)
from barnabas.wire.records.batch import CorruptBatch
from barnabas.wire.uuid import random_uuid

NOW_MS = 1_700_000_000_000


class Storage:
    """A formatted directory that is opened again and again."""

    def __init__(self, path: Path, *, standalone: bool = True) -> None:
        self.path = path
        self.directory_id = random_uuid()
        self.node = Voter(1, self.directory_id, (Endpoint("CONTROLLER", "localhost", 9093),))
        LogDirectory.format(path, "cluster", 1, self.directory_id)
        voters = Voters([self.node]) if standalone else None
        format_metadata(str(path), [b"feature"], voters, NOW_MS)
        self.directory: LogDirectory | None = None

    def open(self, config: QuorumConfig | None = None, node: Voter | None = None) -> Quorum:
        self.directory = LogDirectory.open(self.path)
        return Quorum.open(self.directory, node or self.node, config=config)

    def close(self, *, clean: bool = True) -> None:
        assert self.directory is not None
        self.directory.close(clean=clean)

    @property
    def folder(self) -> Path:
        return self.path / "__cluster_metadata-0"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "log")


def _frames(quorum: Quorum) -> list[bytes]:
    return [frame for batch in quorum.load() for frame in batch.frames]


def _led(quorum: Quorum) -> Quorum:
    list(quorum.load())
    quorum.lead(NOW_MS)
    return quorum


def test_the_bootstrap_records_are_those_the_directory_was_formatted_with(storage: Storage) -> None:
    assert read_bootstrap(str(storage.path)) == [b"feature"]


def test_a_directory_that_was_never_formatted_has_no_bootstrap_records(tmp_path: Path) -> None:
    assert read_bootstrap(str(tmp_path)) == []


def test_one_voter_leads_as_soon_as_it_stands(storage: Storage) -> None:
    quorum = _led(storage.open())
    assert quorum.is_leader
    assert quorum.epoch == 1
    assert quorum.high_watermark == quorum.end_offset == 3  # leader change, kraft version, voters
    state = json.loads((storage.folder / "quorum-state").read_text())
    assert (state["leaderId"], state["leaderEpoch"], state["data_version"]) == (1, 1, 1)
    storage.close()


def test_every_start_begins_a_new_epoch_and_repeats_the_voters_only_if_they_changed(
    storage: Storage,
) -> None:
    _led(storage.open())
    storage.close()
    quorum = _led(storage.open())
    assert (quorum.epoch, quorum.end_offset) == (2, 4)
    storage.close()
    moved = Voter(1, storage.directory_id, (Endpoint("CONTROLLER", "localhost", 9999),))
    quorum = _led(storage.open(node=moved))
    assert (quorum.epoch, quorum.end_offset) == (3, 7)
    assert list(quorum.describe().voters) == [moved]
    storage.close()


def test_nothing_is_committed_before_it_is_durable(storage: Storage) -> None:
    quorum = _led(storage.open())
    last_offset = quorum.append([b"one", b"two"], NOW_MS)
    assert quorum.high_watermark == 3
    flush = quorum.begin_flush()
    quorum.append([b"three"], NOW_MS)
    flush.sync()
    quorum.finish_flush(flush)
    assert quorum.high_watermark == last_offset + 1
    storage.close()


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_flushed_is_loaded_again_in_order(storage: Storage, clean: bool) -> None:
    quorum = _led(storage.open())
    for number in range(100):
        quorum.append([b"%d" % number, b"-%d" % number], NOW_MS)
    quorum.flush()
    storage.close(clean=clean)
    expected = [frame for n in range(100) for frame in (b"%d" % n, b"-%d" % n)]
    assert _frames(storage.open()) == expected
    storage.close()


def test_a_cut_tail_leaves_a_prefix_of_whole_batches(storage: Storage) -> None:
    quorum = _led(storage.open())
    for number in range(10):
        quorum.append([b"%d" % number] * 3, NOW_MS)
    quorum.flush()
    storage.close(clean=False)
    log = storage.folder / f"{0:020}.log"
    whole = log.read_bytes()
    for cut in range(len(whole), len(whole) - 300, -7):
        log.write_bytes(whole[:cut])
        frames = _frames(storage.open())
        storage.close(clean=False)
        assert frames == [b"%d" % number for number in range(len(frames) // 3) for _ in range(3)]


def test_a_snapshot_stands_for_the_log_below_it(storage: Storage) -> None:
    quorum = _led(storage.open())
    last_offset = quorum.append([b"old"], NOW_MS)
    quorum.flush()
    writer = quorum.begin_snapshot(last_offset + 1, quorum.epoch, NOW_MS)
    writer.append([b"state"] * 3000)
    quorum.finish_snapshot(writer)
    assert quorum.bytes_since_snapshot == 0
    quorum.append([b"new"], NOW_MS)
    quorum.flush()
    storage.close()
    quorum = storage.open()
    batches = list(quorum.load())
    assert [f for batch in batches for f in batch.frames] == [b"state"] * 3000 + [b"new"]
    assert {batch.last_offset for batch in batches if batch.is_snapshot} == {last_offset}
    quorum.lead(NOW_MS)
    assert list(quorum.describe().voters) == [storage.node]
    storage.close()


def test_an_interrupted_snapshot_is_not_seen(storage: Storage) -> None:
    quorum = _led(storage.open())
    quorum.append([b"record"], NOW_MS)
    quorum.flush()
    writer = quorum.begin_snapshot(4, quorum.epoch, NOW_MS)
    writer.append([b"half"])
    storage.close(clean=False)
    assert _frames(storage.open()) == [b"record"]
    assert not list(storage.folder.glob("*.part"))
    storage.close()


def test_old_snapshots_and_the_log_below_the_oldest_kept_one_are_removed(storage: Storage) -> None:
    quorum = _led(storage.open(QuorumConfig(segment_bytes=2000, retention_bytes=1500)))
    for _ in range(20):
        last_offset = quorum.append([b"x" * 500], NOW_MS)
        quorum.flush()
        quorum.finish_snapshot(quorum.begin_snapshot(last_offset + 1, quorum.epoch, NOW_MS))
    quorum.clean(int(time.time() * 1000))
    kept = sorted(storage.folder.glob("*.checkpoint"))
    assert kept[-1].name.startswith(f"{last_offset + 1:020}")
    assert len(kept) < 5
    assert len(list(storage.folder.glob("*.log"))) < 5
    storage.close()
    assert _frames(storage.open()) == []
    storage.close()


def test_without_voters_the_error_says_what_to_do(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "log", standalone=False)
    quorum = storage.open()
    list(quorum.load())
    with pytest.raises(QuorumError, match="--standalone"):
        quorum.lead(NOW_MS)
    storage.close()


def test_a_stranger_does_not_lead(storage: Storage) -> None:
    stranger = Voter(2, random_uuid(), ())
    quorum = storage.open(node=stranger)
    list(quorum.load())
    with pytest.raises(QuorumError, match="not a voter"):
        quorum.lead(NOW_MS)
    storage.close()


def test_a_damaged_state_file_is_refused(storage: Storage) -> None:
    _led(storage.open())
    storage.close()
    (storage.folder / "quorum-state").write_text("{")
    quorum = storage.open()
    list(quorum.load())
    with pytest.raises(QuorumError, match="damaged"):
        quorum.lead(NOW_MS)
    storage.close()


def test_a_metadata_batch_that_was_changed_on_disk_is_refused(storage: Storage) -> None:
    quorum = _led(storage.open())
    quorum.append([b"a record that matters"], NOW_MS)
    quorum.flush()
    storage.close()
    (log,) = storage.folder.glob("*.log")
    log.write_bytes(log.read_bytes().replace(b"matters", b"flatter"))
    with pytest.raises(CorruptBatch, match=r"__cluster_metadata-0 is damaged: .* its checksum"):
        list(storage.open().load())


def test_a_snapshot_that_is_no_snapshot_is_refused_by_its_name(storage: Storage) -> None:
    path = storage.path / "bootstrap.checkpoint"
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(CorruptBatch, match=r"bootstrap\.checkpoint is damaged"):
        read_bootstrap(str(storage.path))
