"""Decisions survive being kept with offsets, whatever else is there."""

import random

import pytest

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import transactional_ids
from barnabas.spark.sink.commit_decision import (
    CommitDecision,
    DecisionError,
    TaskTransaction,
    decode,
    encode,
)

PREFIX = "barnabas-sink-0b1c"
MOST_BYTES = 4_096
"""Of metadata that brokers take with an offset."""


def decision(tasks: int, seed: int = 1) -> CommitDecision:
    chance = random.Random(seed)
    workers = [f"{chance.getrandbits(64):016x}" for _ in range(max(1, tasks // 4))]

    def written(task: int) -> TaskTransaction:
        name = transactional_ids.task_id(PREFIX, chance.choice(workers), chance.randrange(4))
        prepared = PreparedTransaction(name, chance.randrange(100_000), chance.randrange(2_000))
        return TaskTransaction(task, chance.randrange(1_000_000), prepared)

    return CommitDecision(12, tasks, tuple(map(written, range(tasks))), "totals")


@pytest.mark.parametrize("tasks", [0, 1, 2, 50, 1_000, 2_000])
def test_a_decision_is_read_as_it_was_written(tasks: int) -> None:
    it = decision(tasks)
    pieces = encode(PREFIX, it)
    assert decode(PREFIX, pieces) == it
    assert all(len(piece.encode()) <= MOST_BYTES for piece in pieces)


def test_chunks_of_an_older_and_longer_decision_are_ignored() -> None:
    longer, shorter = encode(PREFIX, decision(1_000)), encode(PREFIX, decision(3))
    assert decode(PREFIX, [*shorter, *longer[len(shorter) :]]) == decision(3)


def test_too_many_tasks_for_one_decision_are_an_error() -> None:
    with pytest.raises(DecisionError, match=r"coalesce\(\)"):
        encode(PREFIX, decision(20_000))


@pytest.mark.parametrize("metadata", ["", "x", "1:", "1:!!!", "9:abc", "1:abc"])
def test_other_metadata_is_not_decoded_as_a_decision(metadata: str) -> None:
    with pytest.raises(DecisionError, match="group barnabas-sink-0b1c"):
        decode(PREFIX, {0: metadata})


def test_task_ids_of_a_prefix_do_not_match_another_prefix() -> None:
    import re

    worker = transactional_ids.random_worker_id()
    mine = transactional_ids.task_id("app", worker, 3)
    assert re.fullmatch(transactional_ids.task_id_pattern("app"), mine)
    assert not re.fullmatch(
        transactional_ids.task_id_pattern("app"), transactional_ids.task_id("app-2", "0" * 16, 0)
    )
    assert not re.fullmatch(transactional_ids.task_id_pattern("a.p"), mine)
    assert transactional_ids.split_task_id("app", mine) == (worker, 3)
