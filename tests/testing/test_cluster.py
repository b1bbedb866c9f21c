"""A cluster of broker processes under kills, pauses and network partitions."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import is_process_alive
from tests.testing.clients import produce, values
from tests.wait import wait_until

from barnabas import Producer
from barnabas.testing import BrokerError, Cluster


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """Restores the cluster after each test."""
    yield running
    running.heal()
    for number, node in running.nodes.items():
        with contextlib.suppress(BrokerError):
            running.resume(number)
        if not node.is_running:
            running.restart(number)
    running.wait_until_healthy()


def another_leads(cluster: Cluster, topic: str, former: int) -> None:
    wait_until(lambda: cluster.leader_of(topic) != former, f"{topic} is led by another")


def test_acknowledged_records_survive_the_kill_of_their_leader(cluster: Cluster) -> None:
    cluster.create_topic("killed")
    assert produce(cluster.bootstrap_servers, "killed", b"before") == []
    leader = cluster.leader_of("killed")
    cluster.kill(leader)
    another_leads(cluster, "killed", leader)
    assert produce(cluster.bootstrap_servers, "killed", b"after") == []
    assert values(cluster.bootstrap_servers, "killed", 2) == [b"before", b"after"]
    cluster.restart(leader)
    cluster.wait_until_healthy()


def test_a_paused_broker_is_fenced_and_rejoins(cluster: Cluster) -> None:
    cluster.create_topic("paused")
    leader = cluster.leader_of("paused")
    cluster.pause(leader)
    another_leads(cluster, "paused", leader)
    assert produce(cluster.bootstrap_servers, "paused", b"meanwhile") == []
    cluster.resume(leader)
    cluster.wait_until_healthy()
    assert values(cluster.bootstrap_servers, "paused", 1) == [b"meanwhile"]


def test_the_majority_side_of_a_partition_continues_and_the_other_catches_up(
    cluster: Cluster,
) -> None:
    cluster.create_topic("split")
    alone = cluster.leader_of("split")
    others = set(cluster.nodes) - {alone}
    cluster.partition({alone}, others)
    outside = cluster.nodes[min(others)]
    wait_until(lambda: leader_seen_from(cluster, outside.node_id) in others, "they lead it")
    assert produce(outside.bootstrap_server, "split", b"meanwhile") == []
    cluster.heal()
    cluster.wait_until_healthy()
    assert values(cluster.bootstrap_servers, "split", 1) == [b"meanwhile"]


def leader_seen_from(cluster: Cluster, number: int) -> int | None:
    seen = cluster.partitions_seen_by(number).get(("split", 0))
    return seen and seen.leader


def test_a_restarted_broker_keeps_its_records(cluster: Cluster) -> None:
    cluster.create_topic("kept")
    assert produce(cluster.bootstrap_servers, "kept", b"one") == []
    for number in cluster.nodes:
        cluster.restart(number)
        cluster.wait_until_healthy()
    assert values(cluster.bootstrap_servers, "kept", 1) == [b"one"]


def test_a_stopped_broker_moves_its_leaders_first(cluster: Cluster) -> None:
    cluster.create_topic("handed")
    leader = cluster.leader_of("handed")
    cluster.stop(leader)
    assert cluster.leader_of("handed") != leader
    with pytest.raises(BrokerError, match=f"Broker {leader} is not running"):
        cluster.kill(leader)


def test_every_running_broker_compacts_its_replicas(cluster: Cluster) -> None:
    cluster.create_topic("prices", partitions=1, config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in range(50):
        producer.produce("prices", str(value), "key")
    assert producer.flush(20) == 0
    paused = (cluster.leader_of("prices") + 1) % 3
    cluster.pause(paused)
    for _ in range(2):
        cluster.compact()
    assert values(cluster.bootstrap_servers, "prices", 1) == [b"49"]
    cluster.resume(paused)
    cluster.compact()


def test_an_unknown_broker_number_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="no broker 3, only 0, 1, 2"):
        cluster.kill(3)
    with pytest.raises(ValueError, match="no broker 7"):
        cluster.partition({7})


def test_an_invalid_topic_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        cluster.create_topic("no/such")


def test_the_leader_of_what_does_not_exist_is_an_error_at_once(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    with pytest.raises(BrokerError, match="Topic ordres does not exist: did you mean orders"):
        cluster.leader_of("ordres")
    with pytest.raises(BrokerError, match="Topic orders has no partition 1"):
        cluster.leader_of("orders", 1)


def test_a_cluster_is_an_async_context_manager_that_cleans_up() -> None:
    async def live() -> Cluster:
        async with Cluster(brokers=1) as cluster:
            assert cluster.nodes[0].is_running
        return cluster

    cluster = asyncio.run(live())
    assert not cluster.nodes[0].is_running
    assert not cluster.directory.exists()


def test_invalid_settings_are_reported_by_the_broker() -> None:
    with pytest.raises(BrokerError, match=r"num\.partitions"), Cluster(1, {"num.partitions": "x"}):
        pytest.fail("it started")


PARENT = """
import sys
from barnabas.testing import Cluster
with Cluster(brokers=1) as cluster:
    print(cluster.nodes[0].pid, flush=True)
    sys.stdin.read()
"""


def test_the_processes_end_when_the_test_process_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path)},
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_process_alive(pid)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_process_alive(pid), "the broker has ended too")
