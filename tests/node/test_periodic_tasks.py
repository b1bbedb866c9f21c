"""What a node does by itself."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.harness import on_a_loop, turns

from barnabas.node import periodic_tasks as module
from barnabas.node.periodic_tasks import PeriodicTasks
from barnabas.node.errors import FatalErrors


class Work:
    """Partitions that count what is done to them."""

    def __init__(self, *, disks_work: bool = True) -> None:
        self.kept_at: list[int] = []
        self.log_dirs = SimpleNamespace(online=lambda: disks_work)

    def run_maintenance(self, now_ms: int) -> int:
        self.kept_at.append(now_ms)
        return 0


def chores(fatal: FatalErrors) -> PeriodicTasks:
    return PeriodicTasks(fatal, lambda: 1000)


@on_a_loop
async def test_house_is_kept_again_after_the_pause_it_asks_for_until_the_stop() -> None:
    work: Any = Work()
    done = chores(FatalErrors())
    done.maintain_partitions(work)
    assert work.kept_at == [1000]
    while len(work.kept_at) < 3:
        await asyncio.sleep(0)
    done.stop()
    count = len(work.kept_at)
    await turns()
    assert len(work.kept_at) == count


@on_a_loop
async def test_a_node_without_a_working_directory_must_stop() -> None:
    fatal = FatalErrors()
    work: Any = Work(disks_work=False)
    chores(fatal).maintain_partitions(work)
    await fatal.wait()
    assert "Every log directory has failed" in fatal.reason
    await turns()
    assert len(work.kept_at) == 1


@on_a_loop
async def test_what_is_done_often_is_done_until_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OFTEN_S", 0)
    done_at: list[int] = []
    done = chores(FatalErrors())
    done.every_100_ms(done_at.append)
    assert done_at == [1000]
    while len(done_at) < 3:
        await asyncio.sleep(0)
    done.stop()
    count = len(done_at)
    await turns()
    assert len(done_at) == count
