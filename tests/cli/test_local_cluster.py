"""`barnabas up --brokers 3`, and what `cluster describe` and `quorum describe` say of it."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cli.conftest import Barnabas, Hurried
from tests.cli.local import Up
from tests.wait import wait_until

from barnabas.cli.errors import ExitStatus


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Three nodes and a topic with a copy on each."""
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
    """The rows of the tables that begin with a number, by it."""
    lines = [re.split(r"\s{2,}", line) for line in output.splitlines()]
    return {first: rest for first, *rest in lines if first.isdigit()}


def test_it_prints_where_it_is(up: Up) -> None:
    assert len(up.bootstrap.split(",")) == 3
    assert "Controllers: 1, 2, 3" in up.said
    assert f"cluster describe --bootstrap-server {up.bootstrap.split(',')[0]}" in up.said
    assert {line.split()[0] for line in up.said.splitlines() if " serves PLAINTEXT" in line} == {
        "1",
        "2",
        "3",
    }


def test_cluster_describe_shows_every_broker_and_its_share(up: Up, barnabas: Barnabas) -> None:
    said = described_whole(up, barnabas)
    assert re.search(r"^Controller: [123] of 1, 2, 3$", said, re.MULTILINE)
    # ADDRESS, RACK, STATE, LEADERS, REPLICAS, IN SYNC
    assert [row[1:3] + row[4:] for row in rows(said).values()] == [["-", "active", "3", "3"]] * 3
    assert sum(int(row[3]) for row in rows(said).values()) == 3
    assert "Partitions: 3   offline: 0   under-replicated: 0" in said


def described_whole(up: Up, barnabas: Barnabas) -> str:
    """On a busy machine a node may be taken for dead for a moment."""
    said: list[str] = []

    def is_whole() -> bool:
        result = barnabas("cluster", "describe", "-b", up.bootstrap)
        said.append(result.output)
        is_one = "offline: 0   under-replicated: 0" in said[-1]
        return result.exit_code == 0 and is_one and "fenced" not in said[-1]

    wait_until(is_whole, "the cluster is whole")
    return said[-1]


def test_quorum_describe_asks_brokers_or_controllers(up: Up, barnabas: Barnabas) -> None:
    settings = (up.directory / "1.properties").read_text()
    (controllers,) = re.findall(r"controller.quorum.bootstrap.servers=(.*)", settings)
    for whom in ("-b", up.bootstrap), ("-C", controllers):

        def is_whole(whom: tuple[str, str] = whom) -> bool:
            """On a busy machine a node may be taken for dead for a moment."""
            said = barnabas("quorum", "describe", *whom)
            roles = {number: row[0] for number, row in rows(said.output).items()}
            return (
                said.exit_code == 0
                and "Voters: 3   majority: 2   unresponsive: none" in said.output
                and sorted(roles) == ["1", "2", "3"]
                and sorted(roles.values()) == ["leader", "voter", "voter"]
            )

        wait_until(is_whole, "a leader and two voters are described, and none is silent")


def test_every_node_counts_and_one_controller_is_active(up: Up) -> None:
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
        told = all(count in text for text in scraped for count in every_node)
        return told and sorted(counts) == ["0.0", "0.0", "1.0"]

    wait_until(all_count, "three brokers, one active controller, nothing under-replicated")


def test_a_second_one_on_its_directory_is_refused(up: Up, barnabas: Barnabas) -> None:
    for arguments, told in (
        (("--brokers", "3", "--port", "0"), "Node 1 of "),
        (("--brokers", "5"), "has a cluster of 3: use --brokers 3"),
        (("--brokers", "3", "--port", "1234"), "uses port"),
        ((), "has a cluster of 3: use --brokers 3"),
    ):
        result = barnabas("up", "--dir", up.directory, *arguments)
        assert result.exit_code == 1
        assert told in result.output


def test_it_goes_on_without_a_node_and_says_when_too_few_are_left(
    tmp_path: Path, barnabas: Barnabas
) -> None:
    up = Up(tmp_path / "data").wait()
    try:
        make_topic(up, "orders")
        os.kill(up.pid_of(1), signal.SIGKILL)
        wait_until(
            lambda: "Node 1 has exited; the other nodes keep running." in up.said, "its end is told"
        )

        def lacks_one() -> bool:
            said = barnabas("cluster", "describe", "-b", up.bootstrap)
            return said.exit_code == 0 and rows(said.output)["1"][2:] == ["fenced", "0", "3", "0"]

        wait_until(lacks_one, "the broker is fenced and leads nothing")
        said = barnabas("cluster", "describe", "-b", up.bootstrap).output
        assert "offline: 0   under-replicated: 3   under min.insync.replicas: 0" in said
        assert len(re.findall(r"^orders-\d .* under-replicated$", said, re.MULTILINE)) == 3
        assert len(re.findall(r"broker 1 is fenced: 3 partitions changed, 0", up.said)) == 1

        os.kill(up.pid_of(2), signal.SIGKILL)
        wait_until(lambda: "no active controller for 5 s: a majority" in up.said, "it is told")
        alone = barnabas("cluster", "describe", "-b", up.bootstrap)
        assert alone.exit_code == 1
        assert "Controller: no controller is active: a majority of the voters" in alone.output
        quorum = barnabas("quorum", "describe", "-b", up.bootstrap)
        assert quorum.exit_code == 1
        assert "Error: no controller is active" in quorum.output
    finally:
        up.end(signal.SIGKILL)  # the node that is left ends with it
    assert "Traceback" not in up.said

    changed = barnabas(
        *("up", "--brokers", "3", "--port", "0", "--dir", tmp_path / "data"),
        *("--set", "num.partitions=7"),
    )
    assert "has another value of num.partitions: change it there" in changed.output
    again = Up(tmp_path / "data").wait(lives=2)
    assert again.end() == 0
    assert all((tmp_path / "data" / each / ".kafka_cleanshutdown").exists() for each in "123")


@pytest.mark.parametrize("command", ["cluster", "quorum"])
def test_describing_nobody_is_an_error_in_one_line(
    barnabas: Barnabas, hurried: Hurried, command: str
) -> None:
    said = hurried(lambda: barnabas(command, "describe", "-b", "127.0.0.1:1"))
    assert said.exit_code == ExitStatus.UNREACHABLE
    assert said.output.startswith("Error: ")
    assert "127.0.0.1:1: Connection refused" in said.output
    assert said.output.count("\n") == 1
    assert "nonsense" in barnabas(command, "describe", "-b", "nonsense").output
