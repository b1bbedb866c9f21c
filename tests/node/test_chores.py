"""What a node does by itself."""

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.server.harness import on_a_loop, turns

from barnabas.node.chores import Chores
from barnabas.node.errors import Fatal


class Work:
    """Partitions and controller in one, that count what is done to them."""

    def __init__(self, *, disks_work: bool = True) -> None:
        self.kept_at: list[int] = []
        self.maintained_at: list[int] = []
        self.disks = SimpleNamespace(working=lambda: disks_work)

    def housekeeping(self, now_ms: int) -> int:
        self.kept_at.append(now_ms)
        return 0

    def maintain(self, now_ms: int) -> None:
        self.maintained_at.append(now_ms)


def chores(work: Any, fatal: Fatal) -> Chores:
    return Chores(work, work, lambda: 1000, fatal)


@on_a_loop
async def test_house_is_kept_again_after_the_pause_it_asks_for_until_the_stop() -> None:
    work = Work()
    done = chores(work, Fatal())
    done.begin()
    assert (work.kept_at, work.maintained_at) == ([1000], [1000])
    while len(work.kept_at) < 3:
        await asyncio.sleep(0)
    done.stop()
    count = len(work.kept_at)
    await turns()
    assert len(work.kept_at) == count


@on_a_loop
async def test_a_node_without_a_working_directory_must_stop() -> None:
    fatal = Fatal()
    done = chores(Work(disks_work=False), fatal)
    done.begin()
    await fatal.wait()
    done.stop()
    assert fatal.reason.startswith("Every log directory has failed")
