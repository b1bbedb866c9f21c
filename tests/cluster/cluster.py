"""A cluster of real processes, Barnabas or the real Kafka, to start, stop and isolate."""

import contextlib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AclBinding, AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.node import NodeProgram, NodeRole, ProcessNode
from tests.cluster.quorum_view import QuorumView, quorum_view
from tests.cluster.security import ADMIN, ClusterSecurity, count_acls
from tests.wait import wait_until

from barnabas.testing.process_cluster import START_TIMEOUT_S, ProcessCluster
from barnabas.testing.requests import connect

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
        security: ClusterSecurity | None = None,
    ) -> None:
        """With `security`, every listener has SASL_SSL, and ACLs decide who may do what."""
        super().__init__(
            directory,
            roles,
            SETTINGS | (security.settings() if security else {}) | dict(settings or {}),
            with_network=with_network,
            connect=security.connect_as() if security else connect,
        )
        self.quorum = quorum
        self.security = security

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

    # Clients

    def client_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Returns the settings with which clients connect, as a user if the cluster has any."""
        security = self.security.client_settings(user) if self.security else {}
        return {"bootstrap.servers": self.bootstrap_servers, **security}

    # State

    def quorum_view(self) -> QuorumView | None:
        for node in self.reachable_brokers():
            with contextlib.suppress(OSError):
                view = quorum_view(node.port, connect=self.connect)
                if view is not None:
                    return view
        return None

    def is_ready(self) -> bool:
        """Whether all brokers are ready and there is an active controller."""
        return super().is_ready() and self.quorum_view() is not None

    def create_topic(
        self, topic: str, partitions: int, replication_factor: int = 3, **config: str
    ) -> None:
        config_names = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient(self.client_settings())
        new = NewTopic(topic, partitions, replication_factor, config=config_names)
        admin.create_topics([new])[topic].result(START_TIMEOUT_S)
        wait_until(lambda: self.has_leaders(topic, partitions), f"{topic} has leaders")

    def create_acls(self, acls: Sequence[AclBinding]) -> None:
        """Creates ACLs, and waits until every node decides by them."""
        admin = AdminClient(self.client_settings())
        for created in admin.create_acls(list(acls)).values():
            created.result(START_TIMEOUT_S)
        wait_until(lambda: self._has_acls(len(acls)), "every node has the ACLs")

    def active_controller(self) -> ProcessNode:
        active: list[ProcessNode] = []

        def has_leader() -> bool:
            view = self.quorum_view()
            if view and view.leader in self.nodes:
                active.append(self.nodes[view.leader])
            return bool(active)

        wait_until(has_leader, "the quorum has a leader")
        return active[0]

    def _has_acls(self, count: int) -> bool:
        with contextlib.suppress(OSError):
            return all(
                count_acls(node.port if node.role.broker else node.controller_port, self.connect)
                >= count
                for node in self.nodes.values()
            )
        return False

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
        users = self.security.format_flags() if self.security else []
        return {node_id: [*voters, *users] for node_id, voters in self._voter_flags().items()}

    def _voter_flags(self) -> dict[int, list[str]]:
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
