"""kafka-consumer-groups: groups without and with members, and every way of moving offsets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.cli.kafka.conftest import Command, commit, produce
from tests.wait import wait_until

from barnabas.testing import Broker


@pytest.fixture(scope="module", autouse=True)
def records(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    produce(broker, "orders", 10, partition=0)
    produce(broker, "orders", 4, partition=1)


@pytest.fixture(autouse=True)
def idle(broker: Broker) -> None:
    commit(broker, "idle", {("orders", 0): 3, ("orders", 1): 4})


@pytest.fixture
def busy(broker: Broker) -> Iterator[Consumer]:
    """A member that has both partitions."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "busy",
                "client.id": "app", "auto.offset.reset": "earliest"}  # fmt: skip
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.1) is not None, "the member reads")
    yield consumer
    consumer.close()


def test_groups_are_listed_with_their_states_and_types(kafka: Command, busy: Consumer) -> None:
    assert kafka("kafka-consumer-groups", "--list").lines == ["busy", "idle"]
    assert kafka("kafka-consumer-groups", "--list", "--state").lines == [
        f"{'GROUP':<25} {'STATE':<20}",
        f"{'busy':<25} {'Stable':<20}",
        f"{'idle':<25} {'Empty':<20}",
    ]
    empty = kafka("kafka-consumer-groups", "--list", "--state", "empty", "--type", "classic")
    assert empty.lines[1:] == [f"{'idle':<25} {'Classic':<20} {'Empty':<20}"]


@pytest.mark.parametrize("name", ["narrow", "a-group-of-thirty-characters--"])
def test_all_groups_are_listed_in_columns_of_one_width(
    kafka: Command, broker: Broker, name: str
) -> None:
    commit(broker, name, {("orders", 0): 3})
    listed = kafka("kafka-groups", "--list").lines
    kafka("kafka-consumer-groups", "--delete", "--group", name)
    width = max(20, len(name))
    assert listed[0] == f"{'GROUP':<{width}} {'TYPE':<{width}} {'PROTOCOL':<{width}}"
    assert f"{name:<{width}} {'Classic':<{width}} {'':<{width}} " in listed


def test_offsets_of_a_group_are_described_with_lag(kafka: Command) -> None:
    result = kafka("kafka-consumer-groups", "--describe", "--group", "idle")
    assert result.out == (
        "\nGROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
        "             CONSUMER-ID     HOST            CLIENT-ID"
        "\nidle            orders          0          3               10              7"
        "               -               -               -"
        "\nidle            orders          1          4               4               0"
        "               -               -               -\n"
    )
    assert result.err == "\nConsumer group 'idle' has no active members.\n"


def test_members_and_state_are_described(kafka: Command, busy: Consumer) -> None:
    members = kafka("kafka-consumer-groups", "--describe", "--group", "busy", "--members").lines
    assert members[1].split() == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert members[2].split()[0] == "busy"
    assert members[2].split()[-2:] == ["app", "2"]
    verbose = kafka("kafka-consumer-groups", "--describe", "--group", "busy", "--members",
                    "--verbose").lines  # fmt: skip
    assert verbose[2].split()[-3:] == ["orders:0,1", "-", "-"]
    state = kafka("kafka-consumer-groups", "--describe", "--group", "busy", "--state").lines
    assert state[2].split()[-3:] == ["range", "Stable", "1"]


@pytest.mark.parametrize(
    ("way", "moved"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 4}),
        (("--to-current",), {0: 3, 1: 4}),
        (("--to-offset", 5), {0: 5, 1: 4}),
        (("--shift-by", -2), {0: 1, 1: 2}),
        (("--shift-by", 100), {0: 10, 1: 4}),
        (("--to-datetime", "2001-01-01T00:00:00.000"), {0: 0, 1: 0}),
        (("--by-duration", "P1DT2H"), {0: 0, 1: 0}),
    ],
)
def test_offsets_are_reset(kafka: Command, way: tuple[object, ...], moved: dict[int, int]) -> None:
    result = kafka("kafka-consumer-groups", "--reset-offsets", "--group", "idle", "--all-topics",
                 "--execute", *way)  # fmt: skip
    assert [line.split() for line in result.lines[1:]] == [
        ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"],
        *(["idle", "orders", str(partition), str(moved[partition])] for partition in (0, 1)),
    ]
    described = kafka("kafka-consumer-groups", "--describe", "--group", "idle").lines[2:]
    assert [int(line.split()[3]) for line in described] == list(moved.values())


def test_a_reset_is_a_dry_run_without_execute(kafka: Command) -> None:
    result = kafka("kafka-consumer-groups", "--reset-offsets", "--group", "idle", "--topic",
                 "orders:0", "--to-earliest")  # fmt: skip
    assert "No action will be performed" in result.err
    assert [line.split() for line in result.lines[2:]] == [["idle", "orders", "0", "0"]]
    described = kafka("kafka-consumer-groups", "--describe", "--group", "idle").lines[2:]
    assert [line.split()[3] for line in described] == ["3", "4"]


def test_an_exported_plan_can_be_applied(kafka: Command, tmp_path: Path) -> None:
    reset = ("kafka-consumer-groups", "--reset-offsets", "--group", "idle")
    exported = kafka(*reset, "--topic", "orders", "--to-offset", 2, "--export", "--dry-run").out
    assert exported == "orders,0,2\norders,1,2\n\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported)
    result = kafka(*reset, "--from-file", file, "--execute")
    assert [line.split()[-1] for line in result.lines[2:]] == ["2", "2"]


def test_offsets_of_a_group_with_members_are_not_reset(kafka: Command, busy: Consumer) -> None:
    result = kafka("kafka-consumer-groups", "--reset-offsets", "--group", "busy", "--topic",
                 "orders", "--to-earliest", "--execute")  # fmt: skip
    assert (
        "Error: Assignments can only be reset if the group 'busy' is inactive, but the current "
        "state is Stable." in result.lines
    )
    deleted = kafka("kafka-consumer-groups", "--delete", "--group", "busy", "--group", "idle")
    failed, busy_failed, *rest = deleted.lines[1:]
    assert failed == "Error: Deletion of some consumer groups failed:"
    assert busy_failed.startswith(
        "* Group 'busy' could not be deleted due to: org.apache.kafka.common.errors."
        "GroupNotEmptyException: "
    )
    assert rest == ["", "These consumer groups were deleted successfully: 'idle'"]


def test_offsets_and_groups_are_deleted(kafka: Command) -> None:
    result = kafka("kafka-consumer-groups", "--delete-offsets", "--group", "idle", "--topic",
                 "orders:1", "--topic", "nope")  # fmt: skip
    assert result.lines[0] == "Request succeeded for deleting offsets from group idle."
    assert [line.split()[:3] for line in result.lines[3:]] == [
        ["nope", "-", "Error:"],
        ["orders", "1", "Successful"],
    ]
    deleted = kafka("kafka-consumer-groups", "--delete", "--group", "idle")
    assert deleted.out == "Deletion of requested consumer groups ('idle') was successful.\n"
    gone = kafka("kafka-consumer-groups", "--describe", "--group", "idle")
    assert (gone.status, "GroupIdNotFoundException: Group idle not found." in gone.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "exactly one action"),
        (("--describe",), "takes one of these options: [group], [all-groups]"),
        (("--describe", "--group", "g", "--members", "--state"), "at most one of these options"),
        (("--list", "--members"), "[members]"),
        (("--list", "--state", "tired"), "Invalid state list 'tired'. Valid states are: "),
        (("--reset-offsets", "--group", "g", "--topic", "t"), "one of the following scenarios"),
        (("--reset-offsets", "--group", "g", "--to-latest"), "One of the reset scopes"),
        (("--reset-offsets", "--group", "g", "--to-latest", "--to-earliest", "--all-topics"),
         "can't be used with option"),
        (("--reset-offsets", "--group", "g", "--topic", "orders:x", "--to-latest"),
         "Invalid partition 'x'"),
        (("--reset-offsets", "--group", "idle", "--topic", "orders", "--by-duration", "1h"),
         "is not a duration"),
        (("--delete-offsets", "--group", "g"), "takes the following options"),
    ],
)  # fmt: skip
def test_invalid_options_print_the_help(
    kafka: Command, arguments: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-consumer-groups", *arguments)
    assert result.status == 1
    assert expected in result.err


@pytest.mark.parametrize(("pattern", "verdict"), [("a.*", "valid."), ("a(", "invalid: missing )")])
def test_a_regular_expression_is_checked_without_a_broker(
    run: Command, pattern: str, verdict: str
) -> None:
    result = run("kafka-consumer-groups", "--validate-regex", pattern)
    assert result.out.startswith(f"The regular expression `{pattern}` is {verdict}")
