"""Nodes that cannot be what their files say: refused, or told, with what to do about it.

Each is a process of its own; none may end with a traceback, or wait without a word.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, NodeRole, ProcessNode
from tests.conformance.brokers import free_port
from tests.wait import wait_until

from barnabas.wire.uuid import random_uuid, to_text

BROKER = NodeRole(BARNABAS, controller=False)
CONTROLLER = NodeRole(BARNABAS, broker=False)
END_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller, one broker: what a stranger would join."""
    directory = tmp_path_factory.mktemp("cluster")
    settings = {"default.replication.factor": "1", "min.insync.replicas": "1"}
    with Cluster.separate(
        directory, [BARNABAS], [BARNABAS], quorum=Quorum.STANDALONE, settings=settings
    ) as running:
        yield running


class Stranger:
    """A node that is not part of the cluster, with settings of its own."""

    def __init__(self, directory: Path, node_id: int, role: NodeRole, **settings: str) -> None:
        self.node = ProcessNode(node_id, role, directory / f"node-{node_id}")
        self.configured(**settings)

    def configured(self, **settings: str) -> "Stranger":
        self.node.configure({key.replace("_", "."): value for key, value in settings.items()})
        return self

    def formatted(self, cluster_id: str, *flags: str) -> "Stranger":
        assert self.node.format(cluster_id, *flags).wait(END_S) == 0, self.node.log_tail()
        return self

    def refusal(self) -> str:
        """What it says when it is started: it must end by itself, with a reason."""
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", "start", str(self.node.properties_file)],
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.splitlines()[-1]

    def complaint(self, about: str) -> str:
        """The line about it that it goes on after."""
        self.node.start()
        try:
            wait_until(lambda: about in self.node.log_file.read_text(), about, END_S)
        finally:
            self.node.stop()
        said = self.node.log_file.read_text()
        assert "Traceback" not in said
        return next(line for line in said.splitlines() if about in line)


def bootstrap_of(cluster: Cluster) -> dict[str, str]:
    ports = ",".join(f"127.0.0.1:{each.controller_port}" for each in cluster.controllers)
    return {"controller_quorum_bootstrap_servers": ports}


def new_id() -> str:
    return to_text(random_uuid())


def test_a_broker_formatted_for_another_cluster_is_refused(
    tmp_path: Path, cluster: Cluster
) -> None:
    own = new_id()
    stranger = Stranger(tmp_path, 7, BROKER, **bootstrap_of(cluster)).formatted(own)
    (controller,) = cluster.controllers
    assert stranger.refusal() == (
        f"Error: This node belongs to cluster {own}, and 127.0.0.1:{controller.controller_port} to "
        "another one: correct controller.quorum.bootstrap.servers or controller.quorum.voters, or "
        "format this node with the id of that cluster."
    )


def test_a_voter_that_meets_another_clusters_controller_is_refused(
    tmp_path: Path, cluster: Cluster
) -> None:
    (controller,) = cluster.controllers
    stranger = Stranger(tmp_path, 8, CONTROLLER)
    voters = (
        f"8@127.0.0.1:{stranger.node.controller_port},"
        f"{controller.node_id}@127.0.0.1:{controller.controller_port}"
    )
    stranger.configured(controller_quorum_voters=voters).formatted(new_id())
    assert "to another one: correct controller.quorum" in stranger.refusal()


def test_a_second_process_of_a_broker_is_refused_while_the_first_lives(
    tmp_path: Path, cluster: Cluster
) -> None:
    (broker,) = cluster.brokers
    second = Stranger(
        tmp_path,
        broker.node_id,
        BROKER,
        **bootstrap_of(cluster),
        initial_broker_registration_timeout_ms="3000",
    ).formatted(cluster.cluster_id)
    assert second.refusal() == (
        f"Error: Another process runs as broker {broker.node_id}: stop it, or give this one "
        "another node.id."
    )
    assert "another broker uses" in Again(broker).refusal()


class Again(Stranger):
    """The same node once more, from the same files."""

    def __init__(self, node: ProcessNode) -> None:
        self.node = node


def test_a_broker_that_nobody_registers_says_whom_it_asks(tmp_path: Path) -> None:
    port = free_port()
    lost = Stranger(
        tmp_path, 7, BROKER, controller_quorum_bootstrap_servers=f"127.0.0.1:{port}"
    ).formatted(new_id())
    line = lost.complaint("no active controller for 5 s")
    assert f"must lead to a controller that runs. 127.0.0.1:{port}: Connection refused" in line


def test_a_voter_that_is_alone_says_who_is_missing(tmp_path: Path) -> None:
    port = free_port()
    lonely = Stranger(tmp_path, 8, CONTROLLER)
    own_port = lonely.node.controller_port
    voters = f"8@127.0.0.1:{own_port},9@127.0.0.1:{port},10@no.such.host.invalid:9093"
    lonely.configured(controller_quorum_voters=voters).formatted(new_id())
    line = lonely.complaint("no active controller for 5 s")
    assert "a majority of the voters 8, 9, 10 must run and reach each other" in line
    assert f"127.0.0.1:{port}: Connection refused" in line
    assert "no.such.host.invalid:9093: " in line
