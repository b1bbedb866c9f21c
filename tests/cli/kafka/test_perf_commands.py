"""kafka-producer-perf-test, kafka-consumer-perf-test, kafka-e2e-latency: what they measure."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Hurried
from tests.cli.kafka.conftest import Command, Said, produce

from barnabas.testing import Broker

SUMMARY = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
    r"[\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\."
)


def load(topic: str, records: int, *more: object) -> tuple[object, ...]:
    return ("--topic", topic, "--num-records", records, "--throughput", -1, *more)


def metrics(said: Said) -> dict[str, str]:
    pairs = (line.split(" : ") for line in said.lines if " : " in line)
    return {name.split(":")[1]: value.strip() for name, value in pairs}


def test_the_books_command_runs_as_written(
    run: Command, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java.config").write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    monkeypatch.chdir(tmp_path)
    written = (
        "--producer.config java.config --throughput 2000 --record-size 1000 --num-records 1000"
        " --topic perf-test-topic --producer-props linger.ms=100 batch.size=300000 --print-metrics"
    )
    said = run("kafka-producer-perf-test", *written.split())
    assert said.status == 0
    assert any(SUMMARY.fullmatch(line) for line in said.lines)
    assert float(metrics(said)["record-send-total"]) == 1000


def test_linger_and_batch_size_show_in_the_figures(kafka: Command) -> None:
    figures = []
    for linger in "100", "0":
        said = kafka(
            "kafka-producer-perf-test",
            *("--topic", f"lingering-{linger}", "--num-records", 300, "--throughput", 1000),
            *("--record-size", 1000, "--print-metrics"),
            *("--command-property", f"linger.ms={linger}", "batch.size=300000"),
        )
        figures.append(metrics(said))
    waited, at_once = figures
    assert float(waited["batch-size-avg"]) > 5 * float(at_once["batch-size-avg"])
    assert float(waited["records-per-request-avg"]) > 5 * float(at_once["records-per-request-avg"])
    assert float(waited["record-queue-time-avg"]) > float(at_once["record-queue-time-avg"])
    assert float(waited["request-latency-avg"]) > 0


def test_payloads_of_a_file(kafka: Command, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one\ntwo\n\nthree\n")
    said = kafka("kafka-producer-perf-test", *load("lines", 20, "--payload-file", file))
    assert said.lines[:2] == [f"Reading payloads from: {file}", "Number of records read: 4"]
    consumed = ("--topic", "lines", "--from-beginning", "--partition", 0, "--max-messages", 20)
    assert set(kafka("kafka-console-consumer", *consumed).lines) <= {"one", "two", "", "three"}


def test_numbers_after_a_warmup(kafka: Command) -> None:
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
    ("options", "told"),
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
def test_what_makes_no_sense_is_refused(
    kafka: Command, options: tuple[str, ...], told: str
) -> None:
    said = kafka("kafka-producer-perf-test", *load("t", 9, *options))
    assert said.status == 1
    assert told in said.err


def test_nobody_there_is_told(run: Command, hurried: Hurried) -> None:
    at = ("--bootstrap-server", "127.0.0.1:1")
    for name, options in (
        ("kafka-producer-perf-test", load("t", 1, "--record-size", 1)),
        ("kafka-consumer-perf-test", ("--topic", "t", "--num-records", 1)),
        (
            "kafka-e2e-latency",
            (*load("t", 1, "--record-size", 1)[:4], "--producer-acks", 1, "--record-size", 1),
        ),
    ):
        said = hurried(lambda name=name, options=options: run(name, *at, *options))
        assert (said.status, "127.0.0.1:1: Connection refused" in said.err) == (1, True)


def test_consuming_is_measured(kafka: Command, broker: Broker) -> None:
    broker.create_topic("taken", 1)
    produce(broker, "taken", 100)
    head, row = kafka("kafka-consumer-perf-test", "--topic", "taken", "--num-records", 100).lines
    assert head.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    cells = dict(zip(head.split(", "), row.split(", "), strict=True))
    assert cells["data.consumed.in.nMsg"] == "100"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells["start.time"])


def test_details_every_interval(kafka: Command, broker: Broker) -> None:
    options = ("--topic", "taken", "--messages", 101, "--show-detailed-stats", "--timeout", 500)
    said = kafka("kafka-consumer-perf-test", *options, "--reporting-interval", 100)
    deprecated, head, first, *_, late = said.lines
    assert deprecated == "Warning: --messages is deprecated. Use --num-records instead."
    assert head.startswith("time, threadId, ")
    assert first.split(", ")[1] == "0"
    assert late.startswith("WARNING: Exiting before consuming the expected number of records")


def test_one_of_topic_and_pattern(kafka: Command) -> None:
    said = kafka("kafka-consumer-perf-test", "--num-records", 1)
    assert said.status == 1
    assert said.err.startswith(
        "Exactly one of the following arguments is required: [topic], [include]"
    )


def test_a_record_is_followed_from_end_to_end(kafka: Command) -> None:
    options = ("--topic", "through", "--num-records", 5, "--producer-acks", "all")
    more = ("--record-size", 10, "--record-key-size", 2, "--num-headers", 1)
    created, first, average, percentiles = kafka("kafka-e2e-latency", *options, *more).lines
    assert created.startswith('Topic "through" does not exist. Will create topic with 1 partition')
    assert re.fullmatch(r"0\t[\d.]+", first)
    assert re.fullmatch(r"Avg latency: [\d.]+ ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", percentiles)


def test_bare_words_are_an_old_way_to_say_it(run: Command, broker: Broker) -> None:
    said = run("kafka-e2e-latency", broker.bootstrap_servers, "bare", 3, 1, 10)
    assert said.status == 0
    assert said.lines[0].startswith("WARNING: Positional argument usage is deprecated")
    said = run("kafka-e2e-latency", "a", "b")
    assert (said.status, "Expected 5 or 6 positional arguments, but got 2" in said.err) == (1, True)
