"""Our commands and Kafka's with the same arguments have the same output and exit status.

A JVM takes seconds to start, so each line below runs Kafka's command once.
"""

import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conformance.brokers import PEERS, Broker, BrokerProcess, PeerBroker, is_peer_installed
from tests.conformance.clients.confluent import ConfluentClient

from barnabas.cli.kafka import COMMANDS

pytestmark = pytest.mark.peer

TOPIC, GROUP = "beside", "beside-readers"
LONG_NAMED_GROUP = "beside-" + "other-" * 10 + "readers"
"""Wider than the minimum width of a column."""


class CommandOutput(NamedTuple):
    status: int
    lines: list[str]


MASKS = (
    (r"HighWatermark: +\d+", "HighWatermark"),
    (r"Epoch: \d+", "Epoch"),
    (r"usable: \d+", "usable"),
    (r"\t\d+ *\t(\d+) *\t\d{13} *\t\d{13} *\t", r"\t\1\t"),
    (r"\d{13}", "TIME"),
    (r"TopicId: [\w-]{22}", "TopicId"),
    (r'"size":\d+', '"size"'),
    (r"(Group(IdNotFound|NotEmpty)Exception): .*", r"\1"),
)
"""Parts that change over time, or that differ because our clients use later versions, in which
errors have messages.
"""


def normalize_output(status: int, output: str, topic: str) -> CommandOutput:
    text = output.replace(topic, "NAME")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    lines = [line for line in text.splitlines() if not line.startswith(("\tat ", "Caused by"))]
    return CommandOutput(status, sorted(sort_json_parts(line.rstrip()) for line in lines))


def sort_json_parts(line: str) -> str:
    """Sorts the parts of a line of JSON, because partitions have no order."""
    return " ".join(sorted(re.split(r"[][{},]+", line))) if line[:2] == '{"' else line


def run_kafka_command(name: str, *arguments: str, topic: str = TOPIC) -> CommandOutput:
    done = subprocess.run(
        [PEERS / "kafka", "tool", name, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return normalize_output(done.returncode, done.stdout, topic)


def run_our_command(name: str, *arguments: str, topic: str = TOPIC) -> CommandOutput:
    output = io.StringIO()
    main = import_module(f"barnabas.cli.kafka.{COMMANDS[f'kafka-{name}']}").main
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = end.code
    return normalize_output(int(status or 0), output.getvalue(), topic)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the JSON files that commands read."""
    folder = tmp_path_factory.mktemp("files")
    partitions = [{"topic": TOPIC, "partition": 0}]
    (folder / "elect.json").write_text(json.dumps({"partitions": partitions}))
    deleted = [{**partitions[0], "offset": 2}]
    (folder / "delete.json").write_text(json.dumps({"version": 1, "partitions": deleted}))
    moved = [{**partitions[0], "replicas": [1]}]
    (folder / "move.json").write_text(json.dumps({"version": 1, "partitions": moved}))
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(scope="module", params=[BrokerProcess, PeerBroker], ids=["broker", "kafka"])
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A broker that no other tests use, so that the listed resources do not change."""
    if not is_peer_installed():
        pytest.skip("Kafka's commands are not installed: set PEERS to the folder of its script")
    process: Broker = request.param(tmp_path_factory.mktemp("target"))
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def prepared(target: Broker, files: Path) -> Broker:
    """A broker with a topic, records and groups with committed offsets."""
    client = ConfluentClient(target.bootstrap)
    client.create_topic(TOPIC, partitions=2)
    client.close()
    server = ("--bootstrap-server", target.bootstrap)
    lines = "".join(f"{number}\n" for number in range(10))
    subprocess.run(
        [PEERS / "kafka", "tool", "console-producer", *server, "--topic", TOPIC],
        input=lines, text=True, check=True, capture_output=True, timeout=90,
    )  # fmt: skip
    reset = ("--reset-offsets", "--topic", TOPIC, "--to-earliest", "--execute")
    for group in GROUP, LONG_NAMED_GROUP:
        assert run_our_command("consumer-groups", *server, *reset, "--group", group).status == 0
    return target


READING_COMMANDS = """
topics --list
topics --describe --topic beside
topics --describe --topic nope
topics --describe --under-replicated-partitions
topics --delete --topic nope
topics --list --partitions 3
configs --describe --topic beside
configs --describe --topic beside --all
configs --describe --topic nope
configs --describe --entity-type brokers
configs --describe --broker 1 --all
configs --describe --entity-type groups --entity-name beside-readers
configs --alter --topic beside --add-config no.such=1
configs --alter --broker-logger 1 --add-config no.such.logger=INFO
consumer-groups --list
consumer-groups --list --state --type
consumer-groups --list --state tired
consumer-groups --describe --group beside-readers
consumer-groups --describe --group beside-readers --verbose
consumer-groups --describe --group beside-readers --members --verbose
consumer-groups --describe --group beside-readers --state --verbose
consumer-groups --reset-offsets --group beside-readers --all-topics --shift-by 3 --dry-run
consumer-groups --reset-offsets --group beside-readers --topic beside --to-latest --export --dry-run
consumer-groups --reset-offsets --group beside-readers --topic nope --to-latest --dry-run
consumer-groups --reset-offsets --group beside-readers --to-latest
groups --list
get-offsets --topic beside
get-offsets --topic beside --time earliest
get-offsets --topic-partitions beside:1- --time max-timestamp
get-offsets --topic nope
log-dirs --describe --topic-list beside
log-dirs --describe --broker-list 9
metadata-quorum describe --status
metadata-quorum describe --replication
metadata-quorum describe
leader-election --election-type preferred --path-to-json-file elect.json
leader-election --election-type unclean --topic beside --partition 9
reassign-partitions --list
reassign-partitions --execute --reassignment-json-file move.json --throttle 1000000
reassign-partitions --verify --reassignment-json-file move.json
reassign-partitions --cancel --reassignment-json-file move.json
transactions list
transactions find-hanging --topic beside
transactions describe --transactional-id nope
features describe
features upgrade --feature group.version=1
features downgrade --feature share.version=0 --dry-run
features upgrade
features version-mapping --release-version 4.0
features feature-dependencies --feature eligible.leader.replicas.version=1
broker-api-versions
delete-records --offset-json-file delete.json
delete-records --offset-json-file nope.json
"""


@pytest.mark.parametrize("command", READING_COMMANDS.strip().splitlines())
def test_a_command_has_the_output_of_kafkas(prepared: Broker, command: str) -> None:
    name, *arguments = command.split()
    server = ("--bootstrap-server", prepared.bootstrap)
    expected = run_kafka_command(name, *server, *arguments)
    actual = run_our_command(name, *server, *arguments)
    assert actual == expected


@pytest.mark.parametrize("verb", ["cluster-id", "list-endpoints"])
def test_the_cluster_is_described_as_by_kafkas_command(prepared: Broker, verb: str) -> None:
    server = ("--bootstrap-server", prepared.bootstrap)
    assert run_our_command("cluster", verb, *server) == run_kafka_command("cluster", verb, *server)


CHANGING_COMMANDS = """
topics --create --topic {0} --partitions 2 --config retention.ms=60000
topics --create --topic {0}
topics --create --topic {0} --if-not-exists
topics --alter --topic {0} --partitions 3
topics --alter --topic {0} --partitions 1
configs --alter --topic {0} --add-config cleanup.policy=[compact,delete],segment.ms=100000
configs --describe --topic {0}
configs --alter --entity-type topics --entity-name {0} --delete-config segment.ms,retention.ms
configs --alter --group {0} --add-config consumer.session.timeout.ms=50000
configs --describe --group {0}
consumer-groups --reset-offsets --group {0} --topic {0} --to-earliest --execute
consumer-groups --delete-offsets --group {0} --topic {0}:0
consumer-groups --delete-offsets --group {0} --topic nope
consumer-groups --delete --group {0}
consumer-groups --delete --group {0}
topics --delete --topic {0}
"""


@pytest.mark.timeout(400)
def test_changing_commands_have_the_output_of_kafkas(prepared: Broker) -> None:
    """Runs the same commands twice, each with its own topic and group."""
    server = ("--bootstrap-server", prepared.bootstrap)
    for command in CHANGING_COMMANDS.strip().splitlines():
        name, *arguments = command.format("story-a").split()
        expected = run_kafka_command(name, *server, *arguments, topic="story-a")
        name, *arguments = command.format("story-b").split()
        assert run_our_command(name, *server, *arguments, topic="story-b") == expected, command
