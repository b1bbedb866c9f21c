"""Offsets committed in transactions: pending until the marker, and never over newer ones."""

import pytest
from tests.coordinator.environment import START_MS
from tests.coordinator.offsets.harness import DAY_MS, PRODUCER, OffsetHarness, StubGroup

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.uuid import ZERO

OK = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


@pytest.fixture
def harness() -> OffsetHarness:
    return OffsetHarness()


def offset_of(harness: OffsetHarness, partition: int = 0) -> object:
    return harness.fetch({"t": [partition]})["t"][partition]


def test_pending_offsets_are_not_visible_before_the_marker(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}})
    assert harness.txn_commit({"t": {0: 5, 1: (6, "m")}}) == {"t": {0: OK, 1: OK}}
    assert harness.fetch({"t": [0, 1]}) == {"t": {0: 1, 1: -1}}
    assert harness.fetch({"t": [0, 1, 2]}, stable=True) == {"t": {0: UNSTABLE, 1: UNSTABLE, 2: -1}}
    assert harness.fetch(None, stable=True) == {"t": {0: UNSTABLE}}
    harness.end(committed=True)
    assert harness.fetch({"t": [0, 1]}, stable=True) == {"t": {0: 5, 1: 6}}
    assert harness.held()["g", "t", 1].metadata == "m"


def test_a_transactional_commit_is_written_without_a_topic_id(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: (5, "m")}})
    (record,) = harness.written
    assert record == (("g", "t", 0), (5, -1, "m", START_MS, -1, ZERO), 4)


def test_an_abort_drops_pending_offsets(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}})
    harness.txn_commit({"t": {0: 5}})
    harness.end(committed=False)
    harness.end(committed=True)
    assert harness.fetch({"t": [0]}, stable=True) == {"t": {0: 1}}


def test_a_plain_commit_supersedes_pending_offsets(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5}})
    harness.commit({"t": {0: 3}})
    assert harness.fetch({"t": [0]}, stable=True) == {"t": {0: UNSTABLE}}
    harness.end(committed=True)
    assert offset_of(harness) == 3


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_of_two_transactions_the_later_commit_wins(
    harness: OffsetHarness, first_ends_first: bool
) -> None:
    harness.txn_commit({"t": {0: 5}}, producer=1)
    harness.txn_commit({"t": {0: 6}}, producer=2)
    for producer in (1, 2) if first_ends_first else (2, 1):
        harness.end(committed=True, producer=producer)
    assert offset_of(harness) == 6


def test_a_repeated_commit_of_a_producer_is_the_later_one(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5}}, producer=1)
    harness.txn_commit({"t": {0: 6}}, producer=2)
    harness.txn_commit({"t": {0: 7}}, producer=1)
    harness.end(committed=True, producer=1)
    harness.end(committed=True, producer=2)
    assert offset_of(harness) == 7


def test_an_aborted_transaction_supersedes_nothing(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5}}, producer=1)
    harness.txn_commit({"t": {0: 6}}, producer=2)
    harness.end(committed=False, producer=2)
    harness.end(committed=True, producer=1)
    assert offset_of(harness) == 5


def test_pending_offsets_survive_a_change_of_coordinator(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5}})
    harness.txn_commit({"t": {1: 9}}, producer=2)
    harness.commit({"t": {1: 3}})
    harness.reload()
    assert harness.fetch({"t": [0, 1]}, stable=True) == {"t": {0: UNSTABLE, 1: UNSTABLE}}
    harness.end(committed=True)
    harness.end(committed=True, producer=2)
    harness.reload()
    assert harness.fetch({"t": [0, 1]}, stable=True) == {"t": {0: 5, 1: 3}}


def test_deleting_offsets_deletes_pending_offsets(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5, 1: 5}})
    assert harness.delete_offsets({"t": [0]}) == {"t": {0: OK}}
    harness.end(committed=True)
    assert harness.fetch(None) == {"t": {1: 5}}


def test_deleting_a_group_deletes_pending_offsets(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}})
    harness.txn_commit({"t": {0: 5, 1: 5}})
    assert harness.delete_group() is OK
    harness.end(committed=True)
    assert not harness.groups.by_id
    assert not harness.held()
    assert not harness.groups.offsets.pending.by_key


def test_pending_offsets_keep_group_and_offset_from_expiring(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}})
    harness.txn_commit({"t": {0: 5}})
    harness.environment.advance(30 * DAY_MS)
    assert offset_of(harness) == 1
    harness.end(committed=False)
    harness.environment.advance(DAY_MS)
    assert not harness.groups.by_id


def test_a_group_with_only_pending_offsets_does_not_expire(harness: OffsetHarness) -> None:
    harness.txn_commit({"t": {0: 5}})
    harness.environment.advance(DAY_MS)
    assert harness.list() == ["g"]
    harness.end(committed=False)
    harness.environment.advance(DAY_MS)
    assert harness.list() == []


def test_unknown_partitions_and_long_metadata_are_partition_errors(harness: OffsetHarness) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    offered = {"t": {0: 1, 9: 1, 1: (1, "m" * 5000)}, "nope": {0: 1}}
    assert harness.txn_commit(offered) == {
        "t": {0: OK, 9: unknown, 1: ErrorCode.OFFSET_METADATA_TOO_LARGE},
        "nope": {0: unknown},
    }
    stranger = b"s" * 16
    assert harness.txn_commit({harness.ids["t"]: {0: 1}, stranger: {0: 1}}, version=6) == {
        harness.ids["t"]: {0: OK},
        stranger: {0: ErrorCode.UNKNOWN_TOPIC_ID},
    }


def test_a_transactional_commit_checks_the_member_as_others_do(harness: OffsetHarness) -> None:
    raised = harness.txn_commit({"t": {0: 1}}, group="")
    assert raised is ErrorCode.INVALID_GROUP_ID
    assert harness.txn_commit({"t": {0: 1}}, epoch=4, member="m") is ErrorCode.ILLEGAL_GENERATION
    assert harness.txn_commit({"t": {0: 1}}, member="m") == {"t": {0: OK}}
    group = harness.groups.by_id["g"] = StubGroup()
    harness.txn_commit({"t": {0: 1}}, epoch=4, member="m", instance="i")
    assert group.checked == [("m", "i", 4, True, 5)]
    for code, response in (
        (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION),
        (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID),
    ):
        group.append_error = KafkaError(code, "")
        assert harness.txn_commit({"t": {0: 1}}) is response


def test_a_transaction_that_committed_nothing_here_may_end(harness: OffsetHarness) -> None:
    harness.end(committed=True, producer=PRODUCER + 1)
    assert not harness.held()
