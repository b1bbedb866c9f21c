"""`barnabas topics` and the other subcommands that ask a cluster: rows, --json, exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Barnabas, Hurried
from tests.cli.kafka.conftest import commit, produce

from barnabas.cli.errors import ExitStatus
from barnabas.cli.root_command import SUBCOMMANDS
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 2)
        produce(broker, "orders", 5, partition=0)
        commit(broker, "readers", {("orders", 0): 2})
        yield broker


@pytest.fixture
def asked(barnabas: Barnabas, broker: Broker) -> Barnabas:
    def call(*arguments: str | Path) -> Any:
        return barnabas(*arguments, "-b", broker.bootstrap_servers)

    return call


@pytest.fixture
def told(asked: Barnabas) -> Any:
    """What a command answers to programs."""

    def call(*arguments: str) -> Any:
        result = asked(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    return call


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_subcommand_helps(barnabas: Barnabas, name: str) -> None:
    result = barnabas(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_a_topic_from_its_beginning_to_its_end(asked: Barnabas, told: Any) -> None:
    assert asked("topics", "create", "new", "-p", "2", "-c", "retention.ms=1000").exit_code == 0
    (row,) = told("topics", "list", "new")
    assert (row["topic"], row["partitions"], row["replication_factor"]) == ("new", 2, 1)
    assert asked("topics", "grow", "new", "3").output == "new has 3 partitions.\n"
    assert [row["partition"] for row in told("topics", "describe", "new")] == [0, 1, 2]
    asked("topics", "delete", "new", "--yes")
    assert told("topics", "list", "new") == []


def test_settings_are_set_described_and_unset(asked: Barnabas, told: Any) -> None:
    asked("configs", "set", "topics", "orders", "retention.ms=5000", "segment.ms=100000")
    settings = {row["setting"]: row["value"] for row in told("configs", "describe", "topics",
                                                             "orders")}  # fmt: skip
    assert settings == {"retention.ms": "5000", "segment.ms": "100000"}
    asked("configs", "unset", "topics", "orders", "retention.ms", "segment.ms")
    assert told("configs", "describe", "topics", "orders") == []
    asked("configs", "set", "brokers", "all", "num.partitions=3")
    rows = told("configs", "describe", "brokers", "--default")
    assert {"num.partitions": "3"}.items() <= {row["setting"]: row["value"] for row in rows}.items()


def test_groups_are_described_reset_and_deleted(asked: Barnabas, told: Any) -> None:
    assert {"group": "readers", "type": "Classic", "state": "Empty"} in told("groups", "list")
    (row,) = told("groups", "describe", "readers")
    assert (row["current_offset"], row["log_end_offset"], row["lag"], row["client_id"]) == (2, 5, 3, None)
    (moved,) = told("groups", "reset", "readers", "--to-latest", "--dry-run")
    assert moved["new_offset"] == 5
    (moved,) = told("groups", "reset", "readers", "--shift-by", "-1")
    assert told("groups", "describe", "readers")[0]["current_offset"] == moved["new_offset"] == 1
    assert told("groups", "delete", "readers") == {"deleted": ["readers"]}
    gone = asked("groups", "describe", "readers")
    assert (gone.exit_code, gone.output) == (
        ExitStatus.FAILED,
        "Error: Group readers does not exist: see barnabas groups list\n",
    )


def test_what_else_can_be_asked(asked: Barnabas, told: Any, tmp_path: Path) -> None:
    assert [row["latest"] for row in told("offsets", "orders")] == [5, 0]
    assert told("records", "delete", "orders:0:2") == [
        {"topic": "orders", "partition": 0, "low_watermark": 2}
    ]
    assert told("transactions", "list") == []
    assert told("transactions", "hanging") == []
    assert told("log-dirs")[0]["state"] == "online"
    assert {row["partition"] for row in told("log-dirs", "--topic", "orders")} == {
        "orders-0",
        "orders-1",
    }
    assert told("features", "describe")[3]["level"] == "4.3-IV0"
    assert told("leaders", "elect", "orders:0") == [
        {"partition": "orders-0", "result": "not needed"}
    ]
    assert told("quorum", "describe")[0]["role"] == "leader"
    assert told("cluster", "describe")[0]["state"] == "active"
    plan = tmp_path / "plan.json"
    plan.write_text(asked("reassign", "propose", "orders", "--to", "1").output)
    done = told("reassign", "start", str(plan), "--throttle", "1000000", "--wait")
    assert done == {"partitions": 2, "done": True}
    assert told("reassign", "list") == []
    assert told("reassign", "cancel") == {"cancelled": 0}


def test_rows_are_aligned_without_a_terminal(asked: Barnabas) -> None:
    head, row, *_ = asked("offsets", "orders").output.splitlines()
    assert head == "TOPIC   PARTITION  EARLIEST  LATEST  COUNT"
    assert row.startswith("orders  0          ")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("topics", "create", "orders"), ExitStatus.FAILED, "Topic 'orders' already exists."),
        (("topics", "describe", "nope"), ExitStatus.FAILED, "Error: "),
        (("topics", "create", "x", "-c", "a"), ExitStatus.USAGE, "'a' is not KEY=VALUE"),
        (
            ("groups", "reset", "readers"),
            ExitStatus.USAGE,
            "give exactly one of --to-earliest",
        ),
        (("records", "delete", "orders"), ExitStatus.USAGE, "is not TOPIC:PARTITION:OFFSET"),
        (("records", "delete", "orders:0:99"), ExitStatus.FAILED, "orders-0: "),
    ],
)
def test_a_failure_has_a_line_and_a_status(
    asked: Barnabas, arguments: tuple[str, ...], status: ExitStatus, told: str
) -> None:
    result = asked(*arguments)
    assert result.exit_code == status
    assert told in result.output
    assert "Traceback" not in result.output


def test_nobody_answering_is_a_status_of_its_own(barnabas: Barnabas, hurried: Hurried) -> None:
    result = hurried(lambda: barnabas("topics", "list", "-b", "127.0.0.1:1"))
    assert result.exit_code == ExitStatus.UNREACHABLE
    assert "127.0.0.1:1: Connection refused" in result.output


@pytest.mark.parametrize(
    "arguments", [("topics", "describe"), ("offsets",), ("configs", "describe", "topics")]
)
def test_a_topic_that_is_not_there_is_named_with_the_nearest(
    asked: Barnabas, arguments: tuple[str, ...]
) -> None:
    result = asked(*arguments, "ordres")
    assert result.exit_code == ExitStatus.FAILED
    assert result.output == "Error: Topic ordres does not exist: did you mean orders?\n"
    assert "nope does not exist: see barnabas topics list" in asked(*arguments, "nope").output


def test_a_command_that_is_not_there_is_told_with_the_nearest(barnabas: Barnabas) -> None:
    result = barnabas("topic", "list")
    assert result.exit_code == ExitStatus.USAGE
    assert "No such command 'topic'. Did you mean 'topics'?" in result.output
