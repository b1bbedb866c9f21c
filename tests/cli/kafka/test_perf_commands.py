"""kafka-producer-perf-test, kafka-consumer-perf-test, kafka-e2e-latency: what they measure."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import RetryQuickly
from tests.cli.kafka.conftest import Command, CommandResult, produce

from barnabas.testing import Broker

SUMMARY = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
    r"[\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\."
)


def load(topic: str, records: int, *more: object) -> tuple[object, ...]:
    return ("--topic", topic, "--num-records", records, "--throughput", -1, *more)


def metrics(result: CommandResult) -> dict[str, str]:
    pairs = (line.split(" : ") for line in result.lines if " : " in line)
    return {name.split(":")[1]: value.strip() for name, value in pairs}


def test_the_command_printed_in_books_runs_unchanged(
    run: Command, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java.config").write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    monkeypatch.chdir(tmp_path)
    written = (
        "--producer.config java.config --throughput 2000 --record-size 1000 --num-records 1000"
        " --topic perf-test-topic --producer-props linger.ms=100 batch.size=300000 --print-metrics"
    )
    result = run("kafka-producer-perf-test", *written.split())
    assert result.status == 0
    assert any(SUMMARY.fullmatch(line) for line in result.lines)
    assert float(metrics(result)["record-send-total"]) == 1000


def test_linger_and_batch_size_show_in_the_metrics(kafka: Command) -> None:
    figures = []
    for linger in "100", "0":
        result = kafka(
            "kafka-producer-perf-test",
            *("--topic", f"lingering-{linger}", "--num-records", 300, "--throughput", 1000),
            *("--record-size", 1000, "--print-metrics"),
            *("--command-property", f"linger.ms={linger}", "batch.size=300000"),
        )
        figures.append(metrics(result))
    waited, at_once = figures
    assert float(waited["batch-size-avg"]) > 5 * float(at_once["batch-size-avg"])
    assert float(waited["records-per-request-avg"]) > 5 * float(at_once["records-per-request-avg"])
    assert float(waited["record-queue-time-avg"]) > float(at_once["record-queue-time-avg"])
    assert float(waited["request-latency-avg"]) > 0


def test_payloads_are_read_from_a_file(kafka: Command, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one\ntwo\n\nthree\n")
    result = kafka("kafka-producer-perf-test", *load("lines", 20, "--payload-file", file))
    assert result.lines[:2] == [f"Reading payloads from: {file}", "Number of records read: 4"]
    consumed = ("--topic", "lines", "--from-beginning", "--partition", 0, "--max-messages", 20)
    assert set(kafka("kafka-console-consumer", *consumed).lines) <= {"one", "two", "", "three"}


def test_steady_state_is_printed_after_a_warmup(kafka: Command) -> None:
    more = ("--payload-monotonic", "--warmup-records", 5)
    warmup, whole, steady = kafka("kafka-producer-perf-test", *load("counted", 20, *more)).lines
    assert warmup.startswith("Warmup first 5 records.")
    assert whole.startswith("20 records sent, ")
    assert steady.startswith("15 steady state records sent, ")


def test_transactions_are_committed(kafka: Command) -> None:
    more = ("--record-size", 10, "--transaction-duration-ms", 50, "--throughput", 200)
    assert kafka("kafka-producer-perf-test", *load("in-transactions", 40, *more)).status == 0
    options = ("--topic", "in-transactions", "--from-beginning", "--timeout-ms", 500)
    committed = ("--isolation-level", "read_committed", "--partition", 0)
    assert len(kafka("kafka-console-consumer", *options, *committed).lines) == 40


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--record-size", "0"), "--record-size should be greater than zero."),
        ((), "one of the arguments --record-size --payload-file --payload-monotonic is required"),
        (("--record-size", "1", "--warmup-records", "9"), "The value for --warmup-records must be"),
        (
            ("--record-size", "1", "--transaction-duration-ms", "0"),
            "--transaction-duration-ms should be greater than zero.",
        ),
        (
            ("--record-size", "1", "--producer-props", "a=b", "--command-property", "c=d"),
            "--command-property and --producer-props cannot be specified together.",
        ),
    ],
)
def test_invalid_options_are_rejected(
    kafka: Command, options: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-producer-perf-test", *load("t", 9, *options))
    assert result.status == 1
    assert expected in result.err


def test_an_unreachable_broker_is_reported(run: Command, retry_quickly: RetryQuickly) -> None:
    at = ("--bootstrap-server", "127.0.0.1:1")
    for name, options in (
        ("kafka-producer-perf-test", load("t", 1, "--record-size", 1)),
        ("kafka-consumer-perf-test", ("--topic", "t", "--num-records", 1)),
        (
            "kafka-e2e-latency",
            (*load("t", 1, "--record-size", 1)[:4], "--producer-acks", 1, "--record-size", 1),
        ),
    ):
        result = retry_quickly(lambda name=name, options=options: run(name, *at, *options))
        assert (result.status, "127.0.0.1:1: Connection refused" in result.err) == (1, True)


def test_consumer_throughput_is_printed(kafka: Command, broker: Broker) -> None:
    broker.create_topic("taken", 1)
    produce(broker, "taken", 100)
    head, row = kafka("kafka-consumer-perf-test", "--topic", "taken", "--num-records", 100).lines
    assert head.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    cells = dict(zip(head.split(", "), row.split(", "), strict=True))
    assert cells["data.consumed.in.nMsg"] == "100"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells["start.time"])


def test_detailed_stats_are_printed_every_interval(kafka: Command, broker: Broker) -> None:
    options = ("--topic", "taken", "--messages", 101, "--show-detailed-stats", "--timeout", 500)
    result = kafka("kafka-consumer-perf-test", *options, "--reporting-interval", 100)
    deprecated, head, first, *_, late = result.lines
    assert deprecated == "Warning: --messages is deprecated. Use --num-records instead."
    assert head.startswith("time, threadId, ")
    assert first.split(", ")[1] == "0"
    assert late.startswith("WARNING: Exiting before consuming the expected number of records")


def test_exactly_one_of_topic_and_include_is_required(kafka: Command) -> None:
    result = kafka("kafka-consumer-perf-test", "--num-records", 1)
    assert result.status == 1
    assert result.err.startswith(
        "Exactly one of the following arguments is required: [topic], [include]"
    )


def test_end_to_end_latency_is_printed(kafka: Command) -> None:
    options = ("--topic", "through", "--num-records", 5, "--producer-acks", "all")
    more = ("--record-size", 10, "--record-key-size", 2, "--num-headers", 1)
    created, first, average, percentiles = kafka("kafka-e2e-latency", *options, *more).lines
    assert created.startswith('Topic "through" does not exist. Will create topic with 1 partition')
    assert re.fullmatch(r"0\t[\d.]+", first)
    assert re.fullmatch(r"Avg latency: [\d.]+ ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", percentiles)


def test_positional_arguments_are_deprecated(run: Command, broker: Broker) -> None:
    result = run("kafka-e2e-latency", broker.bootstrap_servers, "bare", 3, 1, 10)
    assert result.status == 0
    assert result.lines[0].startswith("WARNING: Positional argument usage is deprecated")
    result = run("kafka-e2e-latency", "a", "b")
    assert (result.status, "Expected 5 or 6 positional arguments, but got 2" in result.err) == (
        1,
        True,
    )
