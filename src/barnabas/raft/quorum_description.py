"""What DescribeQuorum reports: the leader, and how far every replica has fetched."""

from dataclasses import dataclass

from barnabas.raft.driver import RaftDriver
from barnabas.raft.roles import Leader, ReplicaProgress
from barnabas.raft.voters import VoterSet

_NEVER = -1


@dataclass(slots=True, frozen=True)
class QuorumReplicaState:
    """One replica as the leader sees it. Times are those of the wall clock, or -1."""

    node_id: int
    directory_id: bytes
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(slots=True, frozen=True)
class QuorumDescription:
    """The quorum. Only the leader knows the states of the replicas."""

    leader_id: int
    epoch: int
    high_watermark: int
    end_offset: int
    voters: VoterSet
    voter_states: list[QuorumReplicaState]
    observer_states: list[QuorumReplicaState]


def describe(driver: RaftDriver) -> QuorumDescription:
    raft, now_ms = driver.raft, driver.now_ms
    voters: list[QuorumReplicaState] = []
    observers: list[QuorumReplicaState] = []
    if isinstance(raft.role, Leader):
        progress = raft.role.progress
        voters = [_state(driver, replica) for replica in progress.voters_progress()]
        observers = [_state(driver, replica) for replica in progress.observers_progress(now_ms)]
    return QuorumDescription(
        raft.leader_id,
        raft.epoch,
        raft.high_watermark,
        driver.log.end_offset,
        raft.voters,
        voters,
        observers,
    )


def _state(driver: RaftDriver, replica: ReplicaProgress) -> QuorumReplicaState:
    key = replica.key
    if key.node_id == driver.node.node_id:
        now_ms = driver.wall_ms()
        return QuorumReplicaState(
            key.node_id, key.directory_id, driver.log.end_offset, now_ms, now_ms
        )
    # The consensus uses a monotonic clock.
    offset_ms = driver.wall_ms() - driver.now_ms
    fetch_ms, last_caught_up_ms = (
        at_ms if at_ms == _NEVER else at_ms + offset_ms
        for at_ms in (replica.last_fetch_ms, replica.last_caught_up_ms)
    )
    return QuorumReplicaState(
        key.node_id, key.directory_id, replica.end_offset, fetch_ms, last_caught_up_ms
    )
