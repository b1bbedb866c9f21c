"""`barnabas up --brokers 3`, `cluster describe` and `quorum describe`."""

import os
import random
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cli.conftest import Barnabas, RetryQuickly
from tests.cli.up_process import Up
from tests.wait import wait_until

from barnabas.cli.commands.up import _settings_of_one
from barnabas.cli.local_cluster import prepare_nodes
from barnabas.cli.local_ports import is_free
from barnabas.cli.root_command import ExitStatus
from barnabas.cli.up_options import UpOptions


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Three nodes, and a topic with a replica on each."""
    running = Up(tmp_path_factory.mktemp("local") / "data", 3, "--metrics-port", "0").wait()
    try:
        make_topic(running, "orders")
        yield running
    finally:
        running.end()


def make_topic(up: Up, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": up.bootstrap})
    admin.create_topics([NewTopic(topic, 3)])[topic].result(30)
    producer = Producer({"bootstrap.servers": up.bootstrap})
    for number in range(3):
        producer.produce(topic, "paid", partition=number)
    assert producer.flush(30) == 0


def rows(output: str) -> dict[str, list[str]]:
    """Returns the table rows that start with a number, by that number."""
    lines = [re.split(r"\s{2,}", line) for line in output.splitlines()]
    return {first: rest for first, *rest in lines if first.isdigit()}


def test_the_banner_has_the_brokers_with_their_addresses_pids_and_metrics(up: Up) -> None:
    addresses = up.bootstrap.split(",")
    assert [row[:2] for row in rows(up.output).values()] == [
        [address, str(up.pid_of(node_id))] for node_id, address in enumerate(addresses, start=1)
    ]
    assert len(up.metrics) == 3
    assert "Controllers: 1, 2, 3" in up.output
    assert f"cluster describe -b {addresses[0]}" in up.output


def test_each_node_logs_to_its_own_file_and_not_to_the_terminal(up: Up) -> None:
    for node_id in (1, 2, 3):
        assert f"node {node_id} of cluster" in up.log_of(node_id)
    assert "listens on PLAINTEXT" not in up.output
    assert f"Logs: {up.directory}/1/server.log" in up.output


def test_cluster_describe_counts_leaders_and_replicas_of_each_broker(
    up: Up, barnabas: Barnabas
) -> None:
    output = describe_until_healthy(up, barnabas)
    assert re.search(r"^Controller: [123] of 1, 2, 3$", output, re.MULTILINE)
    # ADDRESS, PID, RACK, STATE, LEADERS, REPLICAS, IN SYNC
    assert [row[1:4] + row[5:] for row in rows(output).values()] == [
        [str(up.pid_of(node_id)), "-", "active", "3", "3"] for node_id in (1, 2, 3)
    ]
    assert sum(int(row[4]) for row in rows(output).values()) == 3
    assert "Partitions: 3   offline: 0   under-replicated: 0" in output


def describe_until_healthy(up: Up, barnabas: Barnabas) -> str:
    """On a busy machine a node may be fenced for a moment."""
    output: list[str] = []

    def is_healthy() -> bool:
        result = barnabas("cluster", "describe", "-b", up.bootstrap)
        output.append(result.output)
        is_one = "offline: 0   under-replicated: 0" in output[-1]
        return result.exit_code == 0 and is_one and "fenced" not in output[-1]

    wait_until(is_healthy, "the cluster is healthy")
    return output[-1]


def test_quorum_describe_works_through_brokers_and_controllers(up: Up, barnabas: Barnabas) -> None:
    settings = (up.directory / "1.properties").read_text()
    (controllers,) = re.findall(r"controller.quorum.bootstrap.servers=(.*)", settings)
    for servers in ("-b", up.bootstrap), ("-C", controllers):

        def is_healthy(servers: tuple[str, str] = servers) -> bool:
            """On a busy machine a node may be fenced for a moment."""
            output = barnabas("quorum", "describe", *servers)
            roles = {number: row[0] for number, row in rows(output.output).items()}
            return (
                output.exit_code == 0
                and "Voters: 3   majority: 2   unresponsive: none" in output.output
                and sorted(roles) == ["1", "2", "3"]
                and sorted(roles.values()) == ["leader", "voter", "voter"]
            )

        wait_until(is_healthy, "a leader and two voters are described, and none is silent")


def test_every_node_serves_metrics_and_one_controller_is_active(up: Up) -> None:
    active = "kafka_controller_kafkacontroller_activecontrollercount "
    every_node = (
        "kafka_controller_kafkacontroller_activebrokercount 3.0",
        "kafka_server_replicamanager_underreplicatedpartitions 0.0",
        'kafka_server_raftmetrics_current_state{current_state="',
    )

    def all_count() -> bool:
        scraped = [urlopen(address).read().decode() for address in up.metrics]
        counts = [
            line.removeprefix(active)
            for text in scraped
            for line in text.splitlines()
            if line.startswith(active)
        ]
        expected = all(count in text for text in scraped for count in every_node)
        return expected and sorted(counts) == ["0.0", "0.0", "1.0"]

    wait_until(all_count, "three brokers, one active controller, nothing under-replicated")


def test_a_second_cluster_on_a_directory_is_rejected(up: Up, barnabas: Barnabas) -> None:
    for arguments, expected in (
        (("--brokers", "3", "--port", "0"), f"1 is in use by process {up.pid_of(1)} (barnabas"),
        (("--brokers", "5"), "has a cluster of 3: use --brokers 3"),
        (("--brokers", "3", "--port", "1234"), "uses port"),
        ((), "has a cluster of 3: use --brokers 3"),
    ):
        result = barnabas("up", "--dir", up.directory, *arguments)
        assert result.exit_code == 1
        assert expected in result.output


def test_a_cluster_survives_a_node_and_reports_a_lost_quorum(
    tmp_path: Path, barnabas: Barnabas
) -> None:
    up = Up(tmp_path / "data").wait()
    try:
        make_topic(up, "orders")
        os.kill(up.pid_of(1), signal.SIGKILL)
        wait_until(
            lambda: "Node 1 has exited; the other nodes keep running." in up.output,
            "the exit of node 1 is reported",
        )

        def lacks_one() -> bool:
            output = barnabas("cluster", "describe", "-b", up.bootstrap)
            return output.exit_code == 0 and rows(output.output)["1"][1:] == [
                "-",
                "-",
                "fenced",
                "0",
                "3",
                "0",
            ]

        wait_until(lacks_one, "the broker is fenced and leads nothing")
        output = barnabas("cluster", "describe", "-b", up.bootstrap).output
        assert "offline: 0   under-replicated: 3   under min.insync.replicas: 0" in output
        assert len(re.findall(r"^orders-\d .* under-replicated$", output, re.MULTILINE)) == 3
        logs = up.log_of(2) + up.log_of(3)
        assert len(re.findall(r"broker 1 is fenced: 3 partitions changed, 0", logs)) == 1
        assert len(re.findall(r"^[23] \| .* WARNING: broker 1 is dead: ", up.output, re.M)) == 1

        os.kill(up.pid_of(2), signal.SIGKILL)
        wait_until(
            lambda: "no active controller for 5 s: a majority" in up.output,
            "the lost quorum is reported",
        )
        alone = barnabas("cluster", "describe", "-b", up.bootstrap)
        assert alone.exit_code == 1
        assert "Controller: no controller is active: a majority of the voters" in alone.output
        quorum = barnabas("quorum", "describe", "-b", up.bootstrap)
        assert quorum.exit_code == 1
        assert "Error: no controller is active" in quorum.output
    finally:
        up.end(signal.SIGKILL)  # the last node stops with it
    assert "Traceback" not in up.output

    changed = barnabas(
        *("up", "--brokers", "3", "--port", "0", "--dir", tmp_path / "data"),
        *("--set", "num.partitions=7"),
    )
    assert "has another value of num.partitions: change it there" in changed.output
    again = Up(tmp_path / "data").wait(starts=2)
    warnings = again.output.count("WARNING")
    assert again.end() == 0
    assert again.output.count("WARNING") == warnings, "a clean stop is no warning"
    assert all((tmp_path / "data" / node_id / ".kafka_cleanshutdown").exists() for node_id in "123")


def test_a_new_cluster_needs_only_the_ports_of_its_brokers(
    barnabas: Barnabas, tmp_path: Path
) -> None:
    """Nothing is written, so that the next attempt can use another port."""
    first_port = free_ports_in_a_row()
    port = first_port + 2
    with socket.create_server(("127.0.0.1", port)):
        result = barnabas(
            *("up", "--brokers", "3", "--host", "127.0.0.1", "--port", str(first_port)),
            "--no-registry",
            *("--dir", tmp_path / "data"),
        )
    assert result.exit_code == 1
    assert f"Error: Port {port} is in use by " in result.output
    assert "Stop it, or choose other ports: " in result.output
    assert not (tmp_path / "data").exists()


def test_the_controllers_of_a_new_cluster_take_the_next_free_ports(tmp_path: Path) -> None:
    first_port = free_ports_in_a_row()
    with socket.create_server(("127.0.0.1", first_port + 1)):
        options = UpOptions("127.0.0.1", first_port, tmp_path / "data", 2, None, True, False, {})
        first, second = prepare_nodes(options)
    (controller,) = first.settings.controller_listeners
    assert controller.port > first_port + 2 == second.settings.listeners[0].port


def test_nodes_do_not_take_the_port_of_the_registry(tmp_path: Path) -> None:
    first_port = free_ports_in_a_row()
    for brokers in (1, 2):
        options = UpOptions(
            *("127.0.0.1", first_port, tmp_path / str(brokers), brokers, None, True, False, {}),
            reserved_ports=(first_port + 1, first_port + 3),
        )
        settings = (
            [_settings_of_one(options)]
            if brokers == 1
            else [node.settings for node in prepare_nodes(options)]
        )
        ports = {listener.port for node in settings for listener in node.listeners}
        assert not ports & {first_port + 1, first_port + 3}


def free_ports_in_a_row() -> int:
    """Returns the first of ten free ports, which neither the kernel nor other tests hand out."""
    starts = random.SystemRandom().sample(range(10_000, 19_990, 10), 100)
    return next(
        start
        for start in starts
        if all(is_free("127.0.0.1", port) for port in range(start, start + 10))
    )


@pytest.mark.parametrize("command", ["cluster", "quorum"])
def test_an_unreachable_cluster_is_an_error_in_one_line(
    barnabas: Barnabas, retry_quickly: RetryQuickly, command: str
) -> None:
    output = retry_quickly(lambda: barnabas(command, "describe", "-b", "127.0.0.1:1"))
    assert output.exit_code == ExitStatus.UNREACHABLE
    assert output.output.startswith("Error: ")
    assert "127.0.0.1:1: Connection refused" in output.output
    assert output.output.count("\n") == 1
    assert "nonsense" in barnabas(command, "describe", "-b", "nonsense").output
