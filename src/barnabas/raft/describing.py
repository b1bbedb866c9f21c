"""What DescribeQuorum tells: who leads, and how far every replica has come."""

from dataclasses import dataclass

from barnabas.raft.driver import Driver
from barnabas.raft.progress import ReplicaProgress
from barnabas.raft.roles import Leader
from barnabas.raft.voters import Voters

_NEVER = -1


@dataclass(slots=True, frozen=True)
class ReplicaState:
    """One replica as the leader sees it; its times are those of the wall clock, or -1."""

    node_id: int
    directory_id: bytes
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(slots=True, frozen=True)
class QuorumDescription:
    """The quorum; the states of the replicas are known to the leader alone."""

    leader_id: int
    epoch: int
    high_watermark: int
    end_offset: int
    voters: Voters
    voter_states: list[ReplicaState]
    observer_states: list[ReplicaState]


def describe(driver: Driver) -> QuorumDescription:
    raft, now_ms = driver.raft, driver.now_ms
    voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []
    if isinstance(raft.role, Leader):
        progress = raft.role.progress
        voters = [_state(driver, each) for each in progress.voter_states()]
        observers = [_state(driver, each) for each in progress.observer_states(now_ms)]
    return QuorumDescription(
        raft.leader_id,
        raft.epoch,
        raft.high_watermark,
        driver.log.end_offset,
        raft.voters,
        voters,
        observers,
    )


def _state(driver: Driver, replica: ReplicaProgress) -> ReplicaState:
    key = replica.key
    if key.node_id == driver.node.node_id:
        now_ms = driver.wall_ms()
        return ReplicaState(key.node_id, key.directory_id, driver.log.end_offset, now_ms, now_ms)
    # The consensus has a clock of its own, which nobody sets.
    ahead_ms = driver.wall_ms() - driver.now_ms
    fetch_ms, caught_up_ms = (
        at_ms if at_ms == _NEVER else at_ms + ahead_ms
        for at_ms in (replica.fetched_ms, replica.caught_up_ms)
    )
    return ReplicaState(key.node_id, key.directory_id, replica.end_offset, fetch_ms, caught_up_ms)
