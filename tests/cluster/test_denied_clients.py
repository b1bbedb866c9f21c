"""Nothing is served to a denied client while nodes restart and leaders change.

Everyone may do what no ACL denies: a node that serves before it has the ACLs would serve it too.
"""

from pathlib import Path

import pytest
from tests.cluster.chaos.run import OPEN_WITHOUT_ACLS
from tests.cluster.cluster import Cluster
from tests.cluster.denied_client import USER, DeniedClient, denied_clients
from tests.cluster.node import BARNABAS
from tests.cluster.security import ClusterSecurity, deny_everything
from tests.wait import wait_until

TOPIC = "orders"
GOAL = 5
"""Denials that each client gets before the next change."""


def wait_until_all_denied(clients: list[DeniedClient]) -> None:
    """Waits until each client, at every listener of every node, got denials again."""
    goals = {client: client.denied.total() + GOAL for client in clients}
    wait_until(
        lambda: (
            any(client.served for client in clients)
            or all(client.denied.total() >= goal for client, goal in goals.items())
        ),
        "every client is denied again",
    )
    assert not [served for client in clients for served in client.served]


@pytest.mark.timeout(200)
def test_denied_clients_get_nothing_while_nodes_restart_and_leaders_change(tmp_path: Path) -> None:
    security = ClusterSecurity(tmp_path / "security", [USER])
    with Cluster.combined(
        tmp_path, [BARNABAS] * 3, security=security, settings=OPEN_WITHOUT_ACLS
    ) as cluster:
        cluster.create_topic(TOPIC, 3)
        cluster.create_acls(deny_everything(USER))
        nodes = cluster.nodes.values()
        clients = denied_clients(nodes, security.connect_as(USER), [TOPIC])
        for client in clients:
            client.start()
        wait_until_all_denied(clients)

        cluster.stop_node(cluster.leader_of(TOPIC))
        cluster.kill_node(cluster.active_controller())
        for node in nodes:
            if not node.is_running:
                cluster.start_node(node)
        wait_until_all_denied(clients)

        for node in nodes:
            cluster.kill_node(node)
        for node in nodes:
            cluster.start_node(node)
        wait_until_all_denied(clients)
        for client in clients:
            client.stop()
        for client in clients:
            client.join()
        assert not [served for client in clients for served in client.served]
