"""A cluster of real processes, Barnabas or the real Kafka, to start, stop and isolate."""

import contextlib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.node import NodeProgram, NodeRole, ProcessNode
from tests.cluster.quorum_view import QuorumView, quorum_view
from tests.wait import wait_until

from barnabas.testing.process_cluster import START_TIMEOUT_S, ProcessCluster

SETTINGS = {
    "num.partitions": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
"""Replication factor 3 and min.insync.replicas 2 for all topics."""


class Quorum(Enum):
    """How the voters of the metadata log are configured."""

    STATIC = "controller.quorum.voters"
    DYNAMIC = "--initial-controllers"
    STANDALONE = "--standalone"
    """Only the first controller votes; the others are observers until they are added."""


class Cluster(ProcessCluster):
    """A ProcessCluster of Barnabas and Kafka nodes, with descriptions of its quorum."""

    def __init__(
        self,
        directory: Path,
        roles: Mapping[int, NodeRole],
        *,
        quorum: Quorum = Quorum.DYNAMIC,
        settings: Mapping[str, str] | None = None,
        with_network: bool = False,
    ) -> None:
        super().__init__(
            directory, roles, SETTINGS | dict(settings or {}), with_network=with_network
        )
        self.quorum = quorum

    @classmethod
    def combined(cls, directory: Path, programs: Sequence[NodeProgram], **more: object) -> Self:
        """Creates nodes that are broker and controller, with ids from 1."""
        roles = {number: NodeRole(program) for number, program in enumerate(programs, start=1)}
        return cls(directory, roles, **more)  # type: ignore[arg-type]

    @classmethod
    def separate(
        cls,
        directory: Path,
        controllers: Sequence[NodeProgram],
        brokers: Sequence[NodeProgram],
        **more: object,
    ) -> Self:
        """Creates brokers with ids from 1 and controllers with ids from 101."""
        roles = {
            number: NodeRole(program, controller=False) for number, program in enumerate(brokers, 1)
        }
        roles |= {
            number: NodeRole(program, broker=False)
            for number, program in enumerate(controllers, 101)
        }
        return cls(directory, roles, **more)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            print(self.log_tails())
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(self.log_tails())
        self.close()

    # State

    def quorum_view(self) -> QuorumView | None:
        for node in self.reachable_brokers():
            with contextlib.suppress(OSError):
                if (view := quorum_view(node.port)) is not None:
                    return view
        return None

    def is_ready(self) -> bool:
        """Whether all brokers are ready and there is an active controller."""
        return super().is_ready() and self.quorum_view() is not None

    def create_topic(
        self, topic: str, partitions: int, replication_factor: int = 3, **config: str
    ) -> None:
        config_names = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        new = NewTopic(topic, partitions, replication_factor, config=config_names)
        admin.create_topics([new])[topic].result(START_TIMEOUT_S)
        wait_until(lambda: self.has_leaders(topic, partitions), f"{topic} has leaders")

    def active_controller(self) -> ProcessNode:
        active: list[ProcessNode] = []

        def has_leader() -> bool:
            view = self.quorum_view()
            if view and view.leader in self.nodes:
                active.append(self.nodes[view.leader])
            return bool(active)

        wait_until(has_leader, "the quorum has a leader")
        return active[0]

    # Configuration

    def quorum_settings(self) -> dict[str, str]:
        if self.quorum is not Quorum.STATIC:
            return super().quorum_settings()
        voters = (
            f"{controller.node_id}@{controller.host}:{controller.controller_port}"
            for controller in self.controllers
        )
        return {"controller.quorum.voters": ",".join(voters)}

    def format_flags(self) -> dict[int, list[str]]:
        match self.quorum:
            case Quorum.DYNAMIC:
                return super().format_flags()
            case Quorum.STANDALONE:
                first, *others = self.controllers
                flags = {other.node_id: ["--no-initial-controllers"] for other in others}
                flags[first.node_id] = ["--standalone"]
            case Quorum.STATIC:
                flags = {}
        return {node_id: flags.get(node_id, []) for node_id in self.nodes}
