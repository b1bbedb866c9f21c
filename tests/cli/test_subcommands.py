"""The admin subcommands of `barnabas`: rows, --json, exit statuses."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from confluent_kafka import Consumer, Producer
from tests.cli.conftest import Barnabas, RetryQuickly
from tests.cli.kafka.conftest import commit, produce

from barnabas.cli.root_command import ExitStatus
from barnabas.cli.root_command import barnabas as root
from barnabas.server.api import log_dirs
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


def command_paths(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from command_paths(found, *path, name)


@pytest.mark.parametrize("path", list(command_paths(root)), ids=" ".join)
def test_every_command_explains_itself_with_an_example_in_80_columns(
    barnabas: Barnabas, path: tuple[str, ...]
) -> None:
    result = barnabas(*path, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")
    examples = [line for line in result.output.splitlines() if f"barnabas {path[0]}" in line]
    assert examples[1:]
    assert [line for line in result.output.splitlines() if len(line) > 80] == []


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


def test_compacted_topics_are_described_with_their_dirty_ratio(
    run_on_broker: Barnabas, run_json: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on_broker("topics", "create", "table", "-c", "cleanup.policy=compact")
    produce(broker, "table", 2, key="key")
    (row,) = run_json("topics", "describe", "table")
    assert (row["dirty_ratio"], row["last_cleaned"]) == (0.0, None)
    broker.compact()
    (row,) = run_json("topics", "describe", "table")
    assert row["dirty_ratio"] == 0.0
    assert datetime.fromisoformat(row["last_cleaned"])
    lines = run_on_broker("topics", "describe", "table", "orders").output.splitlines()
    assert lines[0].endswith("DIRTY RATIO  LAST CLEANED")
    assert lines[1].split() == ["orders", "0", "1", "1", "1", "-", "-"]
    assert "dirty_ratio" not in run_json("topics", "describe", "orders")[0]
    with monkeypatch.context() as other_broker:
        other_broker.setattr(log_dirs, "requests_compaction_status", lambda _: False)
        assert "dirty_ratio" not in run_json("topics", "describe", "table")[0]
    run_on_broker("topics", "delete", "table", "--yes")


def test_an_uncleanable_log_is_described_with_its_reason(
    run_on_broker: Barnabas, run_json: Any, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    run_on_broker("topics", "create", "table", "-c", "cleanup.policy=compact")
    produce(broker, "table", 2, key="key")
    (path,) = (broker.directory / "table-0").glob("*.log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    broker.compact()
    (row,) = run_json("topics", "describe", "table")
    assert (row["dirty_ratio"], row["last_cleaned"]) == (1.0, None)
    assert row["uncleanable"] == "The batch at offset 0 is malformed."
    assert "table-0 is not compacted any more" in caplog.text
    run_on_broker("topics", "delete", "table", "--yes")


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


def test_settings_without_effect_are_warnings_on_standard_error(run_on_broker: Barnabas) -> None:
    warning = "WARN local.retention.ms has no effect yet: "
    created = run_on_broker("topics", "create", "table", "-c", "local.retention.ms=9")
    assert created.stdout == "table is created.\n"
    assert created.stderr.startswith(warning)
    altered = run_on_broker("configs", "set", "topics", "table", "local.retention.ms=8")
    assert altered.stdout == "table: local.retention.ms set.\n"
    assert altered.stderr.startswith(warning)
    run_on_broker("topics", "delete", "table", "--yes")


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
    (moved,) = run_json("groups", "reset", "readers", "--shift-by", "-1", "--yes")
    assert (
        run_json("groups", "describe", "readers")[0]["current_offset"] == moved["new_offset"] == 1
    )
    assert run_json("groups", "delete", "readers", "--yes") == {"deleted": ["readers"]}
    gone = run_on_broker("groups", "describe", "readers")
    assert (gone.exit_code, gone.output) == (
        ExitStatus.FAILED,
        "Error: Group readers does not exist: see barnabas groups list\n",
    )


def test_transactions_describe_shows_the_partitions_of_an_open_transaction(
    barnabas: Barnabas, fresh_kafka_broker: Broker
) -> None:
    servers = fresh_kafka_broker.bootstrap_servers

    def describe(transactional_id: str) -> Any:
        return barnabas("transactions", "describe", transactional_id, "-b", servers, "--json")

    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    producer.init_transactions()
    missing = describe("nosuch")
    assert (missing.exit_code, missing.output.count("\n")) == (ExitStatus.FAILED, 1)
    producer.begin_transaction()
    producer.produce("orders", b"open", partition=0)
    producer.flush()
    (row,) = json.loads(describe("t").output)
    assert (row["state"], row["partitions"]) == ("Ongoing", ["orders-0"])
    producer.abort_transaction()
    (row,) = json.loads(describe("t").output)
    assert row["partitions"] == []


def test_every_other_subcommand_returns_rows(
    run_on_broker: Barnabas, run_json: Any, tmp_path: Path
) -> None:
    assert [row["latest"] for row in run_json("offsets", "orders")] == [5, 0]
    assert run_json("records", "delete", "orders:0:2", "--yes") == [
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
    done = run_json("reassign", "start", str(plan), "--throttle", "1000000", "--wait", "--yes")
    assert done == {"partitions": 2, "done": True}
    assert run_json("reassign", "list") == []
    assert run_json("reassign", "cancel", "--yes") == {"cancelled": 0}


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
        (("records", "delete", "orders:0:99", "--yes"), ExitStatus.FAILED, "orders-0: "),
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


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (("topics", "delete", "orders"), "Delete orders with all records?"),
        (("groups", "reset", "waiting", "--to-earliest"), "Reset 1 offset of waiting?"),
        (("groups", "delete", "waiting"), "Delete waiting with all committed offsets?"),
        (("records", "delete", "orders:0:end"), "Delete records: all of orders-0?"),
        (("transactions", "abort", "orders", "0", "7"), "Abort the transaction at 7 of orders-0?"),
        (("leaders", "elect", "--unclean"), "Elect leaders that may lose records, of all"),
        (("features", "set", "a=1", "--down"), "Downgrade to a=1?"),
        (("reassign", "cancel"), "Cancel all reassignments in progress?"),
    ],
)
def test_a_command_that_cannot_be_undone_needs_confirmation(
    run_on_broker: Barnabas,
    run_json: Any,
    broker: Broker,
    arguments: tuple[str, ...],
    question: str,
) -> None:
    commit(broker, "waiting", {("orders", 0): 3})
    result = run_on_broker(*arguments)
    assert result.exit_code == ExitStatus.FAILED
    assert f"Error: {question}" in result.output
    assert result.output.endswith("Standard input is not a terminal: confirm with --yes.\n")
    assert run_json("groups", "describe", "waiting")[0]["current_offset"] == 3


def test_a_reset_shows_what_changes_before_it_asks(
    run_on_broker: Barnabas, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(broker, "waiting", {("orders", 0): 3})
    asked = []
    monkeypatch.setattr(
        "barnabas.cli.commands.groups.confirm", lambda question, *, yes: asked.append(question)
    )
    result = run_on_broker("groups", "reset", "waiting", "--to-latest")
    head, row, done = result.output.splitlines()
    assert head.split("  ")[-2:] == ["CURRENT OFFSET", "NEW OFFSET"]
    assert row.split() == ["waiting", "orders", "0", "3", "5"]
    assert (asked, done) == (["Reset 1 offset of waiting?"], "1 offset of waiting reset.")


def test_the_offsets_of_a_group_are_shown_with_the_ids_of_their_members(
    run_json: Any, broker: Broker
) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "active"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(60) is not None
    rows = run_json("groups", "describe", "active")
    assert {row["consumer_id"] for row in rows} == {consumer.memberid()}
    consumer.close()


def test_an_unknown_command_of_a_group_is_reported_with_the_closest_name(
    barnabas: Barnabas,
) -> None:
    result = barnabas("topics", "creat", "orders")
    assert result.exit_code == ExitStatus.USAGE
    assert "No such command 'creat'. Did you mean 'create'?" in result.output
