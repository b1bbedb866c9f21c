"""Reassigning partitions to other brokers, and moving replicas to other log directories.

A JSON file has the target. Throttles limit the rate until the reassignment is completed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, zip_longest
from pathlib import Path
from random import randrange

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.partitions import by_partition, read_json, read_partitions
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.log_dirs import TopicPartitionReplica
from barnabas.client.admin.model import TopicCollection
from barnabas.client.admin.partitions import PartitionReassignment
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.values import PartitionKey, TopicPartition

ANY_DIRECTORY = "any"
MOVE_POLL_S = 0.1

Assignment = dict[PartitionKey, list[int]]
"""The replicas of partitions, the preferred leader first."""


@dataclass(slots=True, frozen=True)
class ReassignmentTarget:
    """The target replicas of partitions, and the target log directories of some replicas."""

    replicas: Assignment
    directories: dict[TopicPartitionReplica, str] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        return list(dict.fromkeys(topic for topic, _ in self.replicas))


@dataclass(slots=True, frozen=True)
class ReassignmentState:
    """The progress of the reassignment of a partition."""

    current: list[int]
    target: list[int]
    is_done: bool


class LogDirMoveState(Enum):
    """The state of moving a replica to another log directory."""

    NO_DIRECTORY = auto()
    ACTIVE = auto()
    ELSEWHERE = auto()  # it is moving, but to another directory
    CANCELLED = auto()
    COMPLETED = auto()


@dataclass(slots=True, frozen=True)
class LogDirMove:
    state: LogDirMoveState
    current: str | None
    target: str
    future: str | None


def read_target(file: str | Path) -> ReassignmentTarget:
    listed = read_partitions(file, "Partition reassignment")
    replicas: Assignment = {}
    directories: dict[TopicPartitionReplica, str] = {}
    for entry in listed:
        topic, index = str(entry["topic"]), int(entry["partition"])
        try:
            ids = [int(replica) for replica in entry["replicas"]]
            paths = [str(path) for path in entry.get("log_dirs") or [ANY_DIRECTORY] * len(ids)]
        except (KeyError, TypeError, ValueError):
            raise CommandError(f'{file}: {topic}-{index} needs "replicas", a list of ids') from None
        if len(ids) != len(paths):
            raise CommandError(
                f"Size of replicas list {ids} is different from size of log dirs list {paths} "
                f"for partition {topic}-{index}"
            )
        replicas[topic, index] = ids
        for replica, path in zip(ids, paths, strict=True):
            if path != ANY_DIRECTORY:
                directories[TopicPartitionReplica(topic, index, replica)] = path
    return ReassignmentTarget(replicas, directories)


def validate_target(target: ReassignmentTarget) -> None:
    if not target.replicas:
        raise CommandError("Partition reassignment list cannot be empty")
    for (topic, index), ids in target.replicas.items():
        if not ids:
            raise CommandError("Partition replica list cannot be empty")
        if twice := sorted({broker_id for broker_id in ids if ids.count(broker_id) > 1}):
            raise CommandError(
                "Partition replica lists may not contain duplicate entries: "
                f"{topic}-{index} contains multiple entries for {','.join(map(str, twice))}"
            )


def read_topics(file: str | Path) -> list[str]:
    content = read_json(file)
    try:
        return [str(topic["topic"]) for topic in content["topics"]]
    except (KeyError, TypeError):
        raise CommandError(f'{file} is not {{"topics": [{{"topic": NAME}}]}}') from None


async def current_assignment(admin: AioAdminClient, topics: Iterable[str]) -> Assignment:
    names = list(dict.fromkeys(topics))
    if not names:
        return {}
    response = await admin.describe_topics(TopicCollection(names))
    for name, error in response.errors.items():
        if error == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise CommandError(f"Topic {name} not found.")
    return {
        (name, partition.id): [replica.id for replica in partition.replicas]
        for name, topic in sorted(response.all().items())
        for partition in topic.partitions
    }


async def current_replicas(admin: AioAdminClient, partitions: Iterable[PartitionKey]) -> Assignment:
    requested = list(partitions)
    current = await current_assignment(admin, (topic for topic, _ in requested))
    if missing := [
        f"{topic}-{index}" for topic, index in requested if (topic, index) not in current
    ]:
        raise CommandError(f"Unable to find partition: {', '.join(missing)}")
    return {partition: current[partition] for partition in requested}


async def replica_log_dirs(
    admin: AioAdminClient, assignment: Assignment
) -> dict[TopicPartitionReplica, str]:
    """Returns the current log directories of replicas."""
    replicas = [
        TopicPartitionReplica(topic, index, replica)
        for (topic, index), ids in assignment.items()
        for replica in ids
    ]
    if not replicas:
        return {}
    response = await admin.describe_replica_log_dirs(replicas)
    return {
        replica: path
        for replica in response
        if replica not in response.errors and (path := response[replica].current_replica_log_dir)
    }


async def propose_assignment(
    admin: AioAdminClient, topics: Sequence[str], brokers: Sequence[int], *, by_rack: bool
) -> Assignment:
    """Returns a new assignment of topics to these brokers, placed like new topics."""
    nodes = {node.id: node for node in (await admin.describe_cluster()).nodes}
    candidates = [nodes[broker] for broker in brokers if broker in nodes]
    racks = [node.rack for node in candidates]
    if by_rack and any(racks) and not all(racks):
        raise CommandError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    rack_of = {node.id: node.rack if by_rack else None for node in candidates}
    proposed: Assignment = {}
    current = await current_assignment(admin, topics)
    for topic in sorted({name for name, _ in current}):
        partitions = [partition for partition in current if partition[0] == topic]
        factor = len(current[partitions[0]])
        if factor > len(candidates):
            raise CommandError(
                f"Replication factor: {factor} larger than available brokers: {len(candidates)}"
            )
        replicas = place_replicas(rack_of, len(partitions), factor)
        proposed |= dict(zip(partitions, replicas, strict=True))
    return proposed


async def require_brokers(admin: AioAdminClient, target: ReassignmentTarget) -> None:
    live = {node.id for node in (await admin.describe_cluster()).nodes}
    for ids in target.replicas.values():
        for replica in ids:
            if replica not in live:
                raise CommandError(f"Unknown broker id {replica}")


async def start_reassignment(
    admin: AioAdminClient, target: ReassignmentTarget, *, keep_factor: bool = False
) -> dict[PartitionKey, KafkaError]:
    """Starts the reassignment; returns the errors of partitions."""
    replicas: dict[TopicPartition, list[int] | None] = {
        TopicPartition(*partition): ids for partition, ids in target.replicas.items()
    }
    response = await admin.alter_partition_reassignments(
        replicas, allow_replication_factor_change=not keep_factor
    )
    return by_partition(response.errors)


async def cancel_reassignments(
    admin: AioAdminClient, partitions: Iterable[PartitionKey]
) -> dict[PartitionKey, KafkaError]:
    cancelled: dict[TopicPartition, list[int] | None] = {
        TopicPartition(*partition): None for partition in partitions
    }
    response = await admin.alter_partition_reassignments(cancelled)
    return by_partition(response.errors)


async def list_reassignments(admin: AioAdminClient) -> dict[PartitionKey, PartitionReassignment]:
    """Returns all reassignments in progress."""
    return by_partition(await admin.list_partition_reassignments())


async def reassignment_states(
    admin: AioAdminClient,
    target: ReassignmentTarget,
    moves: Mapping[PartitionKey, PartitionReassignment],
) -> dict[PartitionKey, ReassignmentState]:
    current: Assignment = {}
    for topic in target.topics:
        try:
            current |= await current_assignment(admin, [topic])
        except (CommandError, KafkaException):
            continue  # a deleted topic has no replicas
    return {
        partition: ReassignmentState(moves[partition].replicas, ids, is_done=False)
        if partition in moves
        else ReassignmentState(current.get(partition, []), ids, is_done=True)
        for partition, ids in sorted(target.replicas.items())
    }


async def log_dir_moves(
    admin: AioAdminClient, directories: Mapping[TopicPartitionReplica, str]
) -> dict[TopicPartitionReplica, LogDirMove]:
    if not directories:
        return {}
    response = await admin.describe_replica_log_dirs(list(directories))
    moves = {}
    for replica, target in directories.items():
        location = response[replica]
        current, future = location.current_replica_log_dir, location.future_replica_log_dir
        if current is None:
            state = LogDirMoveState.NO_DIRECTORY
        elif future is not None:
            state = LogDirMoveState.ACTIVE if future == target else LogDirMoveState.ELSEWHERE
        else:
            state = LogDirMoveState.COMPLETED if current == target else LogDirMoveState.CANCELLED
        moves[replica] = LogDirMove(state, current, target, future)
    return moves


async def move_log_dirs(
    admin: AioAdminClient, directories: Mapping[TopicPartitionReplica, str], timeout_ms: int
) -> list[TopicPartitionReplica]:
    """Starts moving replicas; returns those whose broker does not have them in time."""
    pending = dict(directories)
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    while pending:
        response = await admin.alter_replica_log_dirs(pending)
        pending = {replica: pending[replica] for replica in response.errors}
        if not pending or asyncio.get_running_loop().time() >= deadline:
            break
        await asyncio.sleep(MOVE_POLL_S)
    return list(pending)


def place_replicas(
    racks: Mapping[int, str | None], partition_count: int, replication_factor: int
) -> list[list[int]]:
    """Returns the replicas of each partition. Starts at a random broker of `racks`."""
    order = _alternate_racks(racks)
    start, shift = randrange(len(order)), randrange(len(order))
    placed = []
    for partition in range(partition_count):
        if partition and partition % len(order) == 0:
            shift += 1  # every broker leads once: use other followers from here on
        first = (start + partition) % len(order)
        others = [order[(first + 1 + step) % len(order)] for step in range(len(order) - 1)]
        turned = shift % max(1, len(others))
        placed.append(
            _prefer_new_racks(
                [order[first], *others[turned:], *others[:turned]], racks, replication_factor
            )
        )
    return placed


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Returns the brokers with one of each rack before the second of any rack."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _prefer_new_racks(brokers: list[int], racks: Mapping[int, str | None], count: int) -> list[int]:
    """Returns the first `count` brokers, those of unused racks first."""
    new, others = [], []
    used: set[str | None] = set()
    for broker in brokers:
        if racks[broker] is None or racks[broker] not in used:
            new.append(broker)
            used.add(racks[broker])
        else:
            others.append(broker)
    return [*new, *others][:count]
