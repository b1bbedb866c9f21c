"""Members with real files die, restart, are cut off and slow: what is committed stays.

The consensus alone is tried far harder in `tests/raft/simulation`; here it is the driver around
it, with its logs, snapshots, downloads and flushes.
"""

import asyncio
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from tests.raft.cluster import Cluster, Member, simulated, until
from tests.raft.test_voter_changes import adding, removing

from barnabas.raft.quorum_config import QuorumConfig

ROUNDS = 60
OBSERVER = 8
JOINER = 6
CONFIG = QuorumConfig(segment_bytes=3000, retention_bytes=2000, fetch_snapshot_max_bytes=900)


class Trouble:
    """What happens to a cluster, by a seed; and what must be so all the while."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(path, voters=self.random.choice([3, 5]), dynamic=True, config=CONFIG)
        self.cluster.add(OBSERVER, is_controller=False)
        self.cluster.add(JOINER)
        self.frames = 0
        self.appended: list[tuple[Member, int, bytes]] = []
        self.committed: set[bytes] = set()

    async def live(self) -> None:
        self.cluster.start()
        for _ in range(ROUNDS):
            self.happen()
            self.append()
            await asyncio.sleep(self.random.choice([0.001, 0.01, 0.1, 1.0]))
            self.note_commits()
            self.check()
        await self.recover()

    def happen(self) -> None:
        network, random = self.cluster.network, self.random
        member = random.choice(list(network.members.values()))
        down = [item for item in network.members.values() if not item.is_up]
        match random.randrange(10):
            case 0 | 1 if member.is_up and len(down) < 2:
                member.kill()
            case 2 | 3 if down:
                random.choice(down).start()
            case 4:
                network.cut.add((member.node_id, random.choice(list(network.members))))
            case 5:
                network.cut_off(member.node_id)
            case 6:
                network.heal()
            case 7 if member.is_up:
                member.disk.delay_s = random.choice([0.0005, 0.002, 0.3])
            case 8 if member.is_up:
                snapshot(member)
            case 9 if member.is_up:
                self.change_voters(member)

    def change_voters(self, leader: Member) -> None:
        joiner = self.cluster[JOINER]
        votes = JOINER in leader.quorum.voters.ids()
        loop = asyncio.get_running_loop()
        if votes:
            leader.tasks.add(loop.create_task(leader.serve(removing(joiner))))
        else:
            leader.tasks.add(loop.create_task(leader.serve(adding(joiner))))

    def append(self) -> None:
        for member in self.cluster.leaders:
            if member.quorum.is_leader:
                for _ in range(self.random.randrange(4)):
                    self.frames += 1
                    frame = b"%d" % self.frames
                    member.append(frame)
                    self.appended.append((member, member.life, frame))

    def note_commits(self) -> None:
        for member, scenario, frame in self.appended:
            if member.is_up and member.life == scenario and frame in member.listener.frames:
                self.committed.add(frame)

    def check(self) -> None:
        result = sorted((member.listener.frames for member in self.cluster.up), key=len)
        for shorter, longer in pairwise(result):
            assert longer[: len(shorter)] == shorter, "what is committed is the same everywhere"
        assert not [member for member in self.cluster.up if member.listener.failure]

    async def recover(self) -> None:
        self.cluster.network.heal()
        for member in self.cluster.network.members.values():
            if not member.is_up:
                member.start()
            member.disk.delay_s = 0.001
        await asyncio.sleep(5)  # what the last trouble set off is over by then
        leader = await self.cluster.leader()
        leader.append(b"end")
        await until(lambda: all(item.listener.frames[-1:] == [b"end"] for item in self.cluster.up))
        frames = leader.listener.frames
        assert len(frames) == len(set(frames))
        assert self.committed <= set(frames)


def snapshot(member: Member) -> None:
    result, newest = member.listener, member.quorum.newest_snapshot
    if result.next_offset > (newest.end_offset if newest else 0):
        writer = member.quorum.begin_snapshot(result.next_offset, result.last_epoch, 1)
        writer.append(result.frames)
        member.quorum.finish_snapshot(writer)
        member.quorum.clean(1 << 50)


@pytest.mark.parametrize("seed", range(4))
def test_committed_records_survive_random_faults(tmp_path: Path, seed: int) -> None:
    simulated(Trouble(tmp_path, seed).live())
