"""Reads that wait for the disk: few at a time, in order, and none for a client that has gone."""

import asyncio

import pytest
from tests.replication.world import InlineExecutor
from tests.server.harness import on_a_loop

from barnabas.log import ColdRead
from barnabas.server.disk_reads import MAX_CONCURRENT_READS, DiskReads


@pytest.fixture
def threads() -> InlineExecutor:
    threads = InlineExecutor()
    threads.hold()
    return threads


def end_one(threads: InlineExecutor) -> None:
    """The read that began first ends."""
    assert threads.held
    threads.held.pop(0)()


@on_a_loop
async def test_the_result_of_a_read_is_awaited(threads: InlineExecutor) -> None:
    read = DiskReads(threads).run(lambda: 17)
    assert not read.done()
    end_one(threads)
    assert await read == 17


@on_a_loop
async def test_the_failure_of_a_read_is_raised(threads: InlineExecutor) -> None:
    def fail() -> None:
        raise OSError("broken")

    read = DiskReads(threads).run(fail)
    end_one(threads)
    with pytest.raises(OSError, match="broken"):
        await read


@on_a_loop
async def test_reads_run_in_order_and_leave_threads_for_flushes(threads: InlineExecutor) -> None:
    reads = DiskReads(threads)
    begun: list[int] = []
    for number in range(5):
        reads.run(lambda number=number: begun.append(number))  # type: ignore[misc]
    while reads:
        assert len(threads.held or ()) == min(MAX_CONCURRENT_READS, len(reads))
        end_one(threads)
    assert begun == [0, 1, 2, 3, 4]


@on_a_loop
async def test_a_read_that_failed_lets_the_next_begin(threads: InlineExecutor) -> None:
    reads = DiskReads(threads)
    failing = [reads.run(lambda: 1 // 0) for _ in range(MAX_CONCURRENT_READS)]
    last = reads.run(lambda: "read")
    for read in failing:
        end_one(threads)
        assert isinstance(read.exception(), ZeroDivisionError)
    end_one(threads)
    assert await last == "read"


@on_a_loop
async def test_a_cancelled_read_never_runs(threads: InlineExecutor) -> None:
    reads = DiskReads(threads)
    begun: list[str] = []
    for _ in range(MAX_CONCURRENT_READS):
        reads.run(lambda: None)
    cancelled = reads.run(lambda: begun.append("cancelled"))
    reads.run(lambda: begun.append("next"))
    cancelled.cancel()
    while reads:
        end_one(threads)
    assert begun == ["next"]


@on_a_loop
async def test_a_read_that_is_cancelled_while_it_runs_ends_without_an_error(
    threads: InlineExecutor,
) -> None:
    reads = DiskReads(threads)
    read = reads.run(lambda: None)
    read.cancel()
    end_one(threads)
    assert read.cancelled()
    assert len(reads) == 0


@on_a_loop
async def test_a_load_ahead_that_fails_is_left_to_the_read(
    threads: InlineExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("broken")

    DiskReads(threads).start_load(ColdRead(fail))
    end_one(threads)
    await asyncio.sleep(0)
    assert not caplog.records
