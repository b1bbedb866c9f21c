"""Nodes with wrong files or settings: they fail or log a line that says what to do.

Each is a process; none ends with a traceback or waits without logging.
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
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller and one broker."""
    directory = tmp_path_factory.mktemp("cluster")
    settings = {"default.replication.factor": "1", "min.insync.replicas": "1"}
    with Cluster.separate(
        directory, [BARNABAS], [BARNABAS], quorum=Quorum.STANDALONE, settings=settings
    ) as running:
        yield running


class ForeignNode:
    """A node that is not part of the cluster, with its own settings."""

    def __init__(self, directory: Path, node_id: int, role: NodeRole, **settings: str) -> None:
        self.node = ProcessNode(node_id, role, directory / f"node-{node_id}")
        self.configured(**settings)

    def configured(self, **settings: str) -> "ForeignNode":
        self.node.configure({key.replace("_", "."): value for key, value in settings.items()})
        return self

    def formatted(self, cluster_id: str, *flags: str) -> "ForeignNode":
        assert self.node.format(cluster_id, *flags).wait(TIMEOUT_S) == 0, self.node.log_tail()
        return self

    def startup_error(self) -> str:
        """Starts the node, which must fail; returns its last error line."""
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", "start", str(self.node.properties_file)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.splitlines()[-1]

    def logged_line(self, about: str) -> str:
        """Starts the node, which must log a line with this text and continue; returns the line."""
        self.node.start()
        try:
            wait_until(lambda: about in self.node.log_file.read_text(), about, TIMEOUT_S)
        finally:
            self.node.stop()
        log = self.node.log_file.read_text()
        assert "Traceback" not in log
        return next(line for line in log.splitlines() if about in line)


def bootstrap_of(cluster: Cluster) -> dict[str, str]:
    ports = ",".join(
        f"127.0.0.1:{controller.controller_port}" for controller in cluster.controllers
    )
    return {"controller_quorum_bootstrap_servers": ports}


def new_id() -> str:
    return to_text(random_uuid())


def test_a_broker_formatted_for_another_cluster_fails(tmp_path: Path, cluster: Cluster) -> None:
    own = new_id()
    foreign = ForeignNode(tmp_path, 7, BROKER, **bootstrap_of(cluster)).formatted(own)
    (controller,) = cluster.controllers
    assert foreign.startup_error() == (
        f"Error: This node belongs to cluster {own}, and 127.0.0.1:{controller.controller_port} to "
        "another one: correct controller.quorum.bootstrap.servers or controller.quorum.voters, or "
        "format this node with the id of that cluster."
    )


def test_a_voter_with_a_controller_of_another_cluster_fails(
    tmp_path: Path, cluster: Cluster
) -> None:
    (controller,) = cluster.controllers
    foreign = ForeignNode(tmp_path, 8, CONTROLLER)
    voters = (
        f"8@127.0.0.1:{foreign.node.controller_port},"
        f"{controller.node_id}@127.0.0.1:{controller.controller_port}"
    )
    foreign.configured(controller_quorum_voters=voters).formatted(new_id())
    assert "to another one: correct controller.quorum" in foreign.startup_error()


def test_a_second_process_of_a_running_broker_fails(tmp_path: Path, cluster: Cluster) -> None:
    (broker,) = cluster.brokers
    second = ForeignNode(
        tmp_path,
        broker.node_id,
        BROKER,
        **bootstrap_of(cluster),
        initial_broker_registration_timeout_ms="3000",
    ).formatted(cluster.cluster_id)
    assert second.startup_error() == (
        f"Error: Another process runs as broker {broker.node_id}: stop it, or give this one "
        "another node.id."
    )
    assert "is in use by process" in SecondProcess(broker).startup_error()


class SecondProcess(ForeignNode):
    """A second process of a node with the same files."""

    def __init__(self, node: ProcessNode) -> None:
        self.node = node


def test_a_broker_without_a_controller_logs_the_configured_addresses(tmp_path: Path) -> None:
    port = free_port()
    broker_node = ForeignNode(
        tmp_path, 7, BROKER, controller_quorum_bootstrap_servers=f"127.0.0.1:{port}"
    ).formatted(new_id())
    line = broker_node.logged_line("no active controller for 5 s")
    assert f"must name a running controller. 127.0.0.1:{port}: Connection refused" in line


def test_a_voter_without_a_majority_logs_the_unreachable_voters(tmp_path: Path) -> None:
    port = free_port()
    voter = ForeignNode(tmp_path, 8, CONTROLLER)
    own_port = voter.node.controller_port
    voters = f"8@127.0.0.1:{own_port},9@127.0.0.1:{port},10@no.such.host.invalid:9093"
    voter.configured(controller_quorum_voters=voters).formatted(new_id())
    line = voter.logged_line("no active controller for 5 s")
    assert "a majority of the voters 8, 9, 10 must run and reach each other" in line
    assert f"127.0.0.1:{port}: Connection refused" in line
    assert "no.such.host.invalid:9093: " in line
