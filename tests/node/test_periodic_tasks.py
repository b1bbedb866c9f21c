"""Periodic tasks run at their interval until they are stopped."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.harness import on_a_loop, turns

from barnabas.node import periodic_tasks as module
from barnabas.node.errors import FatalErrors
from barnabas.node.periodic_tasks import PeriodicTasks


class FakePartitions:
    """Partitions that record when they are maintained."""

    def __init__(self, *, disks_work: bool = True) -> None:
        self.maintained_at: list[int] = []
        self.log_dirs = SimpleNamespace(online=lambda: disks_work)

    def run_maintenance(self, now_ms: int) -> int:
        self.maintained_at.append(now_ms)
        return 0


def a_task_runner(fatal: FatalErrors) -> PeriodicTasks:
    return PeriodicTasks(fatal, lambda: 1000)


@on_a_loop
async def test_partitions_are_maintained_again_after_the_returned_pause_until_the_stop() -> None:
    partitions: Any = FakePartitions()
    tasks = a_task_runner(FatalErrors())
    tasks.maintain_partitions(partitions)
    assert partitions.maintained_at == [1000]
    while len(partitions.maintained_at) < 3:
        await asyncio.sleep(0)
    tasks.stop()
    count = len(partitions.maintained_at)
    await turns()
    assert len(partitions.maintained_at) == count


@on_a_loop
async def test_a_node_without_an_online_log_directory_stops() -> None:
    fatal = FatalErrors()
    partitions: Any = FakePartitions(disks_work=False)
    a_task_runner(fatal).maintain_partitions(partitions)
    await fatal.wait()
    assert "Every log directory has failed" in fatal.reason
    await turns()
    assert len(partitions.maintained_at) == 1


@on_a_loop
async def test_a_task_is_repeated_until_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAST_INTERVAL_S", 0)
    run_at: list[int] = []
    tasks = a_task_runner(FatalErrors())
    tasks.every_100_ms(run_at.append)
    assert run_at == [1000]
    while len(run_at) < 3:
        await asyncio.sleep(0)
    tasks.stop()
    count = len(run_at)
    await turns()
    assert len(run_at) == count
