"""A follower ends up with its leader's log, whatever both have been through."""

import logging
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log_records import barnabas_log_records
from tests.replication.replica_fetcher.pair import Pair, content

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("lead"), st.integers(1, 2)),
        st.tuples(st.just("exchange"), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("stop"), st.integers(1, 2)),
        st.tuples(st.just("kill"), st.integers(1, 2)),
    ),
    max_size=30,
)


def take(pair: Pair, kind: str, number: int, written: list[bytes]) -> None:
    match kind:
        case "append":
            values = [f"{len(written) + extra:040}".encode() for extra in range(number)]
            pair.append(*values)
            written += values
        case "lead":
            pair.lead(number)
        case "exchange":
            for _ in range(number):
                pair.exchange()
        case "stop" | "kill":
            pair.restart(number, clean=kind == "stop")
        case "delete":
            pair.led.delete_records(min(number, pair.led.high_watermark))


def assert_alike(pair: Pair) -> None:
    led, followed = pair.led.log, pair.followed.log
    assert followed.log_end_offset == led.log_end_offset
    start_offset = followed.log_start_offset
    assert start_offset >= led.log_start_offset
    assert content(followed, start_offset) == content(led, start_offset)
    for offset in range(start_offset, led.log_end_offset):
        epochs = [log.leader_epochs.epoch_for_offset(offset) for log in (led, followed)]
        # A kill may bring deleted records back, but not the epoch that was forgotten with them.
        assert epochs[0] == epochs[1] or -1 in epochs


@settings(max_examples=150)
@given(steps=STEPS)
def test_a_follower_always_converges_to_its_leaders_log(
    new_pair: Callable[..., Pair], steps: list[tuple[str, int]]
) -> None:
    pair = new_pair()
    pair.create_topic()
    written: list[bytes] = []
    for kind, number in steps:
        take(pair, kind, number, written)
    pair.settle()
    assert_alike(pair)
    assert pair.led.high_watermark == pair.followed.high_watermark == pair.led.log.log_end_offset


def test_a_follower_that_diverged_truncates_to_the_leaders_epoch_end(pair: Pair) -> None:
    pair.append(b"common")
    pair.settle()
    pair.append(b"lost")
    pair.append(b"lost too")
    pair.lead(2)
    pair.append(b"kept")
    pair.settle()
    assert_alike(pair)
    assert pair.led.log.log_end_offset == 2


def test_logs_that_diverged_in_several_epochs_converge_epoch_by_epoch(pair: Pair) -> None:
    """The case of KIP-279: neither knows the epochs in which the other wrote alone."""
    pair.append(b"common")
    pair.settle()
    for epoch in range(6):
        pair.append(*(b"alone in %d" % epoch,) * (epoch + 1))
        pair.lead(pair.follower_id)
    pair.settle()
    assert_alike(pair)


def test_a_leader_that_wrote_nothing_leaves_no_epoch_behind(pair: Pair) -> None:
    pair.append(b"common")
    pair.settle()
    pair.lead(2)
    pair.lead(1)
    pair.append(b"next")
    pair.settle()
    assert_alike(pair)
    assert pair.followed.log.leader_epochs.entries == pair.led.log.leader_epochs.entries


def test_an_empty_log_does_not_diverge(pair: Pair) -> None:
    pair.append(b"a")
    pair.lead(1)
    pair.append(b"b")
    pair.exchange()
    [request] = pair.leader.requests
    assert request.topics[0].partitions[0].last_fetched_epoch == -1
    pair.settle()
    assert_alike(pair)


def test_a_follower_before_the_leaders_log_start_offset_restarts_there(pair: Pair) -> None:
    pair.append(b"a")
    pair.settle()
    pair.append(b"b")
    pair.append(b"c")
    pair.append(b"d")
    pair.led.high_watermark = 4
    pair.led.delete_records(3)
    pair.exchange()
    pair.settle()
    assert (pair.followed.log.log_start_offset, pair.followed.log.log_end_offset) == (3, 4)
    assert pair.followed.high_watermark == 4


def test_a_log_start_offset_within_a_batch_fetches_the_whole_batch(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.append(b"a")
    pair.append(b"b", b"c", b"d")
    pair.led.high_watermark = 4
    pair.led.delete_records(2)
    pair.settle()
    assert (pair.followed.log.log_start_offset, pair.followed.log.log_end_offset) == (2, 4)
    # Nothing is amiss: the follower had nothing before.
    assert not barnabas_log_records(caplog, logging.WARNING)


def test_a_follower_beyond_the_leaders_end_without_a_common_epoch_truncates_there(
    pair: Pair,
) -> None:
    """An unclean leader that lost its log."""
    pair.append(b"a")
    pair.append(b"b")
    pair.settle()
    pair.led.follower.truncate_fully_and_start_at(0)
    pair.lead(1)
    pair.append(b"x")
    pair.settle()
    assert_alike(pair)
    assert pair.followed.log.log_end_offset == 1


def test_a_future_log_is_truncated_with_the_log_it_copies(new_pair: Callable[..., Pair]) -> None:
    pair = new_pair(disks=2)
    pair.create_topic()
    pair.append(b"common")
    pair.settle()
    pair.append(b"lost")
    pair.append(b"lost too")
    former = pair.worlds[1]
    target = next(
        path for path in former.paths if str(path) != former.partition("orders").directory.path
    )
    former.partitions.move_to_log_dir("orders", 0, str(target))
    move = former.partitions.replica_moves.in_progress[former.partition("orders")]
    while move.copy_next_slice(former.now_ms):
        pass
    assert move.future.log_end_offset == 3
    pair.lead(2)
    pair.append(b"kept")
    pair.append(b"kept too")
    pair.append(b"and this")
    pair.settle()
    former.run_maintenance(for_ms=60_000)
    assert pair.followed.directory.path == str(target)
    assert_alike(pair)
