"""The admin subcommands of `barnabas`: rows, --json, exit statuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Barnabas, RetryQuickly
from tests.cli.kafka.conftest import commit, produce

from barnabas.cli.root_command import SUBCOMMANDS, ExitStatus
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 2)
        produce(broker, "orders", 5, partition=0)
        commit(broker, "readers", {("orders", 0): 2})
        yield broker


@pytest.fixture
def run_on_broker(barnabas: Barnabas, broker: Broker) -> Barnabas:
    def call(*arguments: str | Path) -> Any:
        return barnabas(*arguments, "-b", broker.bootstrap_servers)

    return call


@pytest.fixture
def run_json(run_on_broker: Barnabas) -> Any:
    """Runs a command with --json, and returns the parsed output."""

    def call(*arguments: str) -> Any:
        result = run_on_broker(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    return call


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_prints_help(barnabas: Barnabas, name: str) -> None:
    result = barnabas(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


def test_a_topic_is_created_grown_described_and_deleted(
    run_on_broker: Barnabas, run_json: Any
) -> None:
    assert (
        run_on_broker("topics", "create", "new", "-p", "2", "-c", "retention.ms=1000").exit_code
        == 0
    )
    (row,) = run_json("topics", "list", "new")
    assert (row["topic"], row["partitions"], row["replication_factor"]) == ("new", 2, 1)
    assert run_on_broker("topics", "grow", "new", "3").output == "new has 3 partitions.\n"
    assert [row["partition"] for row in run_json("topics", "describe", "new")] == [0, 1, 2]
    run_on_broker("topics", "delete", "new", "--yes")
    assert run_json("topics", "list", "new") == []


def test_settings_are_set_described_and_unset(run_on_broker: Barnabas, run_json: Any) -> None:
    run_on_broker("configs", "set", "topics", "orders", "retention.ms=5000", "segment.ms=100000")
    settings = {row["setting"]: row["value"] for row in run_json("configs", "describe", "topics",
                                                             "orders")}  # fmt: skip
    assert settings == {"retention.ms": "5000", "segment.ms": "100000"}
    run_on_broker("configs", "unset", "topics", "orders", "retention.ms", "segment.ms")
    assert run_json("configs", "describe", "topics", "orders") == []
    run_on_broker("configs", "set", "brokers", "all", "num.partitions=3")
    rows = run_json("configs", "describe", "brokers", "--default")
    assert {"num.partitions": "3"}.items() <= {row["setting"]: row["value"] for row in rows}.items()


def test_groups_are_described_reset_and_deleted(run_on_broker: Barnabas, run_json: Any) -> None:
    assert {"group": "readers", "type": "Classic", "state": "Empty"} in run_json("groups", "list")
    (row,) = run_json("groups", "describe", "readers")
    assert (row["current_offset"], row["log_end_offset"], row["lag"], row["client_id"]) == (
        2,
        5,
        3,
        None,
    )
    (moved,) = run_json("groups", "reset", "readers", "--to-latest", "--dry-run")
    assert moved["new_offset"] == 5
    (moved,) = run_json("groups", "reset", "readers", "--shift-by", "-1")
    assert (
        run_json("groups", "describe", "readers")[0]["current_offset"] == moved["new_offset"] == 1
    )
    assert run_json("groups", "delete", "readers") == {"deleted": ["readers"]}
    gone = run_on_broker("groups", "describe", "readers")
    assert (gone.exit_code, gone.output) == (
        ExitStatus.FAILED,
        "Error: Group readers does not exist: see barnabas groups list\n",
    )


def test_every_other_subcommand_returns_rows(
    run_on_broker: Barnabas, run_json: Any, tmp_path: Path
) -> None:
    assert [row["latest"] for row in run_json("offsets", "orders")] == [5, 0]
    assert run_json("records", "delete", "orders:0:2") == [
        {"topic": "orders", "partition": 0, "low_watermark": 2}
    ]
    assert run_json("transactions", "list") == []
    assert run_json("transactions", "hanging") == []
    assert run_json("log-dirs")[0]["state"] == "online"
    assert {row["partition"] for row in run_json("log-dirs", "--topic", "orders")} == {
        "orders-0",
        "orders-1",
    }
    assert run_json("features", "describe")[3]["level"] == "4.3-IV0"
    assert run_json("leaders", "elect", "orders:0") == [
        {"partition": "orders-0", "result": "not needed"}
    ]
    assert run_json("quorum", "describe")[0]["role"] == "leader"
    assert run_json("cluster", "describe")[0]["state"] == "active"
    plan = tmp_path / "plan.json"
    plan.write_text(run_on_broker("reassign", "propose", "orders", "--to", "1").output)
    done = run_json("reassign", "start", str(plan), "--throttle", "1000000", "--wait")
    assert done == {"partitions": 2, "done": True}
    assert run_json("reassign", "list") == []
    assert run_json("reassign", "cancel") == {"cancelled": 0}


def test_rows_are_aligned_without_a_terminal(run_on_broker: Barnabas) -> None:
    head, row, *_ = run_on_broker("offsets", "orders").output.splitlines()
    assert head == "TOPIC   PARTITION  EARLIEST  LATEST  COUNT"
    assert row.startswith("orders  0          ")


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
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
def test_an_error_has_one_line_and_an_exit_status(
    run_on_broker: Barnabas, arguments: tuple[str, ...], status: ExitStatus, expected: str
) -> None:
    result = run_on_broker(*arguments)
    assert result.exit_code == status
    assert expected in result.output
    assert "Traceback" not in result.output


def test_an_unreachable_broker_has_its_own_exit_status(
    barnabas: Barnabas, retry_quickly: RetryQuickly
) -> None:
    result = retry_quickly(lambda: barnabas("topics", "list", "-b", "127.0.0.1:1"))
    assert result.exit_code == ExitStatus.UNREACHABLE
    assert "127.0.0.1:1: Connection refused" in result.output


@pytest.mark.parametrize(
    "arguments", [("topics", "describe"), ("offsets",), ("configs", "describe", "topics")]
)
def test_a_missing_topic_is_reported_with_the_closest_name(
    run_on_broker: Barnabas, arguments: tuple[str, ...]
) -> None:
    result = run_on_broker(*arguments, "ordres")
    assert result.exit_code == ExitStatus.FAILED
    assert result.output == "Error: Topic ordres does not exist: did you mean orders?\n"
    assert (
        "nope does not exist: see barnabas topics list" in run_on_broker(*arguments, "nope").output
    )


def test_an_unknown_subcommand_is_reported_with_the_closest_name(barnabas: Barnabas) -> None:
    result = barnabas("topic", "list")
    assert result.exit_code == ExitStatus.USAGE
    assert "No such command 'topic'. Did you mean 'topics'?" in result.output
