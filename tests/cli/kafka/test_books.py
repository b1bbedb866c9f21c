"""Commands as books print them, run on three brokers."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.up_process import Up

from barnabas.cli.kafka import COMMANDS

BOOKS = [
    (
        "kafka-topics.sh --create --topic orders --partitions 12 --replication-factor 3 "
        "--bootstrap-server localhost:9092",
        "Created topic orders.\n",
    ),
    (
        "kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type topics "
        "--entity-name orders --add-config retention.ms=259200000",
        "Completed updating config for topic orders.\n",
    ),
    (
        "kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type brokers "
        "--entity-default --add-config num.partitions=12",
        "Completed updating default config for brokers in the cluster.\n",
    ),
]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    cluster = Up(tmp_path_factory.mktemp("books") / "data").wait()
    yield cluster
    cluster.end()


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """The scripts that an installation puts on the PATH."""
    for name in COMMANDS:
        for script in tmp_path / name, tmp_path / f"{name}.sh":
            run = f'exec {shlex.quote(sys.executable)} -m barnabas.cli.kafka {name} "$@"'
            script.write_text(f"#!/bin/sh\n{run}\n")
            script.chmod(0o755)
    return tmp_path


def test_commands_printed_in_books_run_unchanged(up: Up, scripts: Path) -> None:
    address = up.bootstrap.split(",")[0]
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    for command, expected in BOOKS:
        done = subprocess.run(
            ["sh", "-c", command.replace("localhost:9092", address)],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
    described = subprocess.run(
        [
            scripts / "kafka-topics",
            "--describe",
            "--topic",
            "orders",
            "--bootstrap-server",
            address,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "PartitionCount: 12\tReplicationFactor: 3\t" in described
    assert "retention.ms=259200000" in described
