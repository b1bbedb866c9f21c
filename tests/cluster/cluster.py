"""A cluster of real processes, each of them Barnabas or the real Kafka, to start, hurt and heal."""

import contextlib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.ask import QuorumView, quorum_view
from tests.cluster.node import NodeProgram, NodeRole, ProcessNode
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
"""Three copies of everything, two of which must know what is acknowledged."""


class Quorum(Enum):
    """How the voters of the metadata log are known."""

    STATIC = "controller.quorum.voters"
    DYNAMIC = "--initial-controllers"
    STANDALONE = "--standalone"
    """The first controller alone; the others observe until they are added."""


class Cluster(ProcessCluster):
    """Nodes of any kind, by id, and more ways to look at them."""

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
        """Every node is both, numbered from 1."""
        roles = {number: NodeRole(each) for number, each in enumerate(programs, start=1)}
        return cls(directory, roles, **more)  # type: ignore[arg-type]

    @classmethod
    def separate(
        cls,
        directory: Path,
        controllers: Sequence[NodeProgram],
        brokers: Sequence[NodeProgram],
        **more: object,
    ) -> Self:
        """Brokers numbered from 1, controllers from 101."""
        roles = {number: NodeRole(each, controller=False) for number, each in enumerate(brokers, 1)}
        roles |= {
            number: NodeRole(each, broker=False) for number, each in enumerate(controllers, 101)
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

    # What it looks like

    def quorum_view(self) -> QuorumView | None:
        for node in self.reachable_brokers():
            with contextlib.suppress(OSError):
                if (answer := quorum_view(node.port)) is not None:
                    return answer
        return None

    def is_ready(self) -> bool:
        """Also that there is an active controller."""
        return super().is_ready() and self.quorum_view() is not None

    def create_topic(self, topic: str, partitions: int, copies: int = 3, **config: str) -> None:
        named = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        new = NewTopic(topic, partitions, copies, config=named)
        admin.create_topics([new])[topic].result(START_TIMEOUT_S)
        wait_until(lambda: self.has_leaders(topic, partitions), f"{topic} has leaders")

    def active_controller(self) -> ProcessNode:
        found: list[ProcessNode] = []

        def is_led() -> bool:
            seen = self.quorum_view()
            if seen and seen.leader in self.nodes:
                found.append(self.nodes[seen.leader])
            return bool(found)

        wait_until(is_led, "the quorum has a leader")
        return found[0]

    # Its files

    def quorum_settings(self) -> dict[str, str]:
        if self.quorum is not Quorum.STATIC:
            return super().quorum_settings()
        voters = (f"{each.node_id}@{each.host}:{each.controller_port}" for each in self.controllers)
        return {"controller.quorum.voters": ",".join(voters)}

    def format_flags(self) -> dict[int, list[str]]:
        match self.quorum:
            case Quorum.DYNAMIC:
                return super().format_flags()
            case Quorum.STANDALONE:
                first, *others = self.controllers
                flags = {each.node_id: ["--no-initial-controllers"] for each in others}
                flags[first.node_id] = ["--standalone"]
            case Quorum.STATIC:
                flags = {}
        return {node_id: flags.get(node_id, []) for node_id in self.nodes}
