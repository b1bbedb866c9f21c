from pathlib import Path

import pytest

from barnabas.log.checkpoint_file import MalformedCheckpoint
from barnabas.log.leader_epochs import LeaderEpochCache


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochCache:
    history = LeaderEpochCache(str(tmp_path), [])
    for epoch, offset in ((2, 10), (4, 20), (7, 30)):
        history.assign(epoch, offset)
    return history


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (1, (1, 10)),  # before all that is known: where the first one begins
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 30)),
        (6, (4, 30)),
        (7, (7, 99)),
        (8, (-1, -1)),
    ],
)
def test_the_end_offset_of_an_epoch(
    epochs: LeaderEpochCache, epoch: int, expected: tuple[int, int]
) -> None:
    assert epochs.end_offset_for(epoch, 99) == expected


def test_an_empty_cache_has_no_end_offsets(tmp_path: Path) -> None:
    assert LeaderEpochCache(str(tmp_path), []).end_offset_for(0, 5) == (-1, -1)


def test_assigning_the_latest_epoch_again_does_not_move_its_start(epochs: LeaderEpochCache) -> None:
    epochs.assign(7, 35)
    assert epochs.entries[-1] == (7, 30)


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ((8, 25), ((2, 10), (4, 20), (8, 25))),
        ((7, 25), ((2, 10), (4, 20), (7, 25))),
        ((3, 40), ((2, 10), (3, 40))),
        ((9, 5), ((9, 5),)),
    ],
)
def test_entries_that_contradict_a_new_epoch_are_removed(
    epochs: LeaderEpochCache, assigned: tuple[int, int], expected: tuple[tuple[int, int], ...]
) -> None:
    epochs.assign(*assigned)
    assert epochs.entries == expected


def test_truncating_from_the_end(epochs: LeaderEpochCache) -> None:
    epochs.truncate_from_end(31)
    assert epochs.latest_epoch == 7
    epochs.truncate_from_end(30)
    assert epochs.latest_epoch == 4
    epochs.truncate_from_end(0)
    assert epochs.latest_epoch == -1


def test_truncating_from_the_start(epochs: LeaderEpochCache) -> None:
    epochs.truncate_from_start(5)
    assert epochs.entries[0] == (2, 10)
    epochs.truncate_from_start(25)
    assert epochs.entries == ((4, 25), (7, 30))
    epochs.truncate_from_start(30)
    assert epochs.entries == ((7, 30),)


def test_the_epoch_for_an_offset(epochs: LeaderEpochCache) -> None:
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 1000)] == [-1, 2, 2, 4, 7]


def test_the_file_is_kafkas_and_is_read_back(tmp_path: Path, epochs: LeaderEpochCache) -> None:
    epochs.save()
    path = tmp_path / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n3\n2 10\n4 20\n7 30\n"
    assert LeaderEpochCache.load(str(tmp_path)).entries == epochs.entries


@pytest.mark.parametrize("content", ["1\n0\n", "0\n2\n0 0\n", "0\n1\nx y\n", "0\n", "0\n1\n5\n"])
def test_a_damaged_epoch_checkpoint_is_detected(tmp_path: Path, content: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(content)
    with pytest.raises(MalformedCheckpoint):
        LeaderEpochCache.load(str(tmp_path))
