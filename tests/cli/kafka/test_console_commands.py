"""kafka-console-producer and kafka-console-consumer: lines in, lines out."""

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command, CommandResult, commit, produce

from barnabas.testing import Broker

RunProducer = Callable[..., CommandResult]
FROM_THE_START = ("--from-beginning", "--partition", "0")


@pytest.fixture
def run_producer(kafka: Command, monkeypatch: pytest.MonkeyPatch) -> RunProducer:
    """The producer, with these bytes as its standard input."""

    def call(content: bytes, *arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return kafka("kafka-console-producer", *arguments)

    return call


def test_lines_are_produced_and_consumed_as_records(
    run_producer: RunProducer, kafka: Command, broker: Broker
) -> None:
    broker.create_topic("plain", 1)
    assert run_producer(b"one\n\nthree", "--topic", "plain") == CommandResult(0, "", "")
    result = kafka(
        "kafka-console-consumer", "--topic", "plain", *FROM_THE_START, "--max-messages", 3
    )
    assert result == CommandResult(0, "one\n\nthree\n", "Processed a total of 3 messages\n")


def test_keys_headers_and_null_markers_are_parsed_and_printed(
    run_producer: RunProducer, kafka: Command
) -> None:
    reading = ("parse.key=true", "parse.headers=true", "key.separator=|", "null.marker=NIL")
    options = [part for pair in reading for part in ("--reader-property", pair)]
    run_producer(b"a:1,b:2\tk|v\nNIL\tk|NIL\n", "--topic", "keyed", *options, "--sync")
    printing = ("print.key=true", "print.headers=true", "print.offset=true", "null.literal=-")
    options = [part for pair in printing for part in ("--formatter-property", pair)]
    consumed = ("--topic", "keyed", *FROM_THE_START, "--max-messages", 2)
    result = kafka("kafka-console-consumer", *consumed, *options)
    assert result.lines == ["Offset:0\ta:1,b:2\tk\tv", "Offset:1\tNO_HEADERS\tk\t-"]


def test_empty_input_sends_nothing(run_producer: RunProducer) -> None:
    assert run_producer(b"", "--topic", "silence") == CommandResult(0, "", "")


def test_a_line_without_a_separator_is_an_error(run_producer: RunProducer) -> None:
    result = run_producer(b"x\n", "--topic", "plain", "--reader-property", "parse.key=true")
    assert (result.status, result.err) == (1, "No key separator found on line number 1: 'x'\n")


def test_a_failed_delivery_is_printed(run_producer: RunProducer) -> None:
    result = run_producer(b"x\n", "--topic", "not a name")
    assert result.status == 1
    assert result.err.startswith("Error when sending message to topic not a name: ")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_codec_is_consumed_again(
    run_producer: RunProducer, kafka: Command, codec: str
) -> None:
    run_producer(b"x\n", "--topic", f"in-{codec}", "--compression-codec", codec)
    consumed = ("--topic", f"in-{codec}", *FROM_THE_START, "--max-messages", 1)
    assert kafka("kafka-console-consumer", *consumed).out == "x\n"


def test_the_default_compression_codec_is_gzip(run_producer: RunProducer) -> None:
    assert run_producer(b"x\n", "--compression-codec", "--topic", "plain").status == 0


def test_deprecated_options_print_a_warning(run_producer: RunProducer, kafka: Command) -> None:
    result = run_producer(b"", "--topic", "plain", "--producer-property", "linger.ms=1")
    assert result.out == (
        "Warning: --producer-property is deprecated and will be removed in a future version."
        " Use --command-property instead.\n"
    )
    result = run_producer(b"", "--topic", "t", "--property", "a=b", "--reader-property", "c=d")
    assert result.status == 1
    assert result.err.startswith("Options --reader-property and --property cannot be specified")


def test_settings_of_java_clients_are_ignored(run_producer: RunProducer, tmp_path: Path) -> None:
    file = tmp_path / "java.config"
    file.write_text(
        "key.serializer=org.example.OwnSerializer\nschema.registry.url=http://x\nlinger.ms=1\n"
    )
    result = run_producer(b"x\n", "--topic", "plain", "--command-config", file)
    assert result.status == 0
    assert result.err == ('WARN No such configuration property: "schema.registry.url"\n')


def test_a_group_continues_at_its_committed_offset(kafka: Command, broker: Broker) -> None:
    broker.create_topic("shared", 1)
    produce(broker, "shared", 4)
    options = ("--topic", "shared", "--group", "readers", "--from-beginning", "--max-messages", 2)
    assert kafka("kafka-console-consumer", *options).out == "0\n1\n"
    assert kafka("kafka-console-consumer", *options).out == "2\n3\n"


def test_internal_topics_are_formatted_as_json(kafka: Command, broker: Broker) -> None:
    broker.create_topic("committed", 1)
    commit(broker, "committers", {("committed", 0): 3})
    options = ("--topic", "__consumer_offsets", *FROM_THE_START, "--timeout-ms", 500)
    formatter = ("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter")
    rows = [
        json.loads(line) for line in kafka("kafka-console-consumer", *options, *formatter).lines
    ]
    (row,) = (row for row in rows if row["key"]["data"]["group"] == "committers")
    assert row["key"]["data"] == {"group": "committers", "topic": "committed", "partition": 0}
    assert row["value"]["data"]["offset"] == 3


def test_include_consumes_matching_topics(kafka: Command, broker: Broker) -> None:
    for name in "wild-1", "wild-2":
        broker.create_topic(name, 1)
        produce(broker, name, 1)
    options = ("--include", "wild-.*", "--from-beginning", "--max-messages", 2)
    assert kafka("kafka-console-consumer", *options).lines == ["0", "0"]


def test_the_consumer_exits_after_its_timeout(kafka: Command, broker: Broker) -> None:
    options = ("--topic", "no-such-topic", "--from-beginning", "--timeout-ms", 300)
    result = kafka("kafka-console-consumer", *options)
    assert (result.status, result.out) == (0, "")
    assert result.err.splitlines()[-1] == "Processed a total of 0 messages"


def test_an_unreachable_broker_is_reported_at_once(run: Command) -> None:
    unreachable = ("--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--timeout-ms", 300)
    result = run("kafka-console-consumer", *unreachable)
    assert result.err.splitlines()[0] == "WARN 127.0.0.1:1: Connection refused"


def test_an_undecodable_value_is_an_error_or_skipped(
    kafka: Command, run_producer: RunProducer
) -> None:
    run_producer(b"abc\n12345678\n", "--topic", "longs")
    long = "org.apache.kafka.common.serialization.LongDeserializer"
    options = ("--topic", "longs", *FROM_THE_START, "--max-messages", 2)
    result = kafka("kafka-console-consumer", *options, "--value-deserializer", long)
    assert (result.status, "3 bytes" in result.err) == (1, True)
    skipping = ("--skip-message-on-error", "--value-deserializer", long)
    result = kafka("kafka-console-consumer", *options, *skipping)
    assert result.out == f"{int.from_bytes(b'12345678')}\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "Exactly one of the following arguments is required: [topic], [include]"),
        (("--topic", "t", "--offset", "3"), "The partition is required when offset is specified."),
        (("--include", "t", "--partition", "0"), "The topic is required when partition is"),
        (("--topic", "t", "--partition", "0", "--offset", "soon"), "The provided offset value"),
        (("--topic", "t", "--partition", "0", "--group", "g"), "Options group and partition"),
    ],
)
def test_invalid_options_print_the_help(
    kafka: Command, options: tuple[str, ...], expected: str
) -> None:
    result = kafka("kafka-console-consumer", *options)
    assert result.status == 1
    assert result.err.startswith(expected)
    assert "--from-beginning" in result.err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)
def test_a_signal_stops_the_consumer_cleanly(
    broker: Broker, number: signal.Signals, status: int
) -> None:
    broker.create_topic(f"endless-{status}", 1)
    produce(broker, f"endless-{status}", 1)
    process = _start(broker, f"endless-{status}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"0\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err.startswith(b"Processed a total of ")
    assert len(err.splitlines()) == 1


def test_a_closed_output_ends_the_consumer(broker: Broker) -> None:
    broker.create_topic("long", 1)
    process = _start(broker, "long")
    assert process.stdout is not None
    produce(broker, "long", 1)
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    produce(broker, "long", 1)
    ended = threading.Timer(30, process.kill)
    ended.start()
    assert process.wait() == 0
    ended.cancel()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()


def test_a_closed_output_ends_the_consumer_of_an_idle_topic(broker: Broker) -> None:
    broker.create_topic("quiet", 1)
    produce(broker, "quiet", 1)
    process = _start(broker, "quiet")
    assert process.stdout is not None
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.wait(30) == 0


def _start(broker: Broker, topic: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "barnabas.cli.kafka", "kafka-console-consumer"]
    command += ["--bootstrap-server", broker.bootstrap_servers, "--topic", topic]
    return subprocess.Popen(
        [*command, *FROM_THE_START], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(
    "options", [(), ("--partition", "0"), ("--command-property", "group.protocol=consumer")]
)
def test_a_consumer_that_waits_for_a_missing_topic_says_so_once(
    kafka: Command, options: tuple[str, ...]
) -> None:
    result = kafka("kafka-console-consumer", "--topic", "later", "--timeout-ms", 600, *options)
    assert result.err.splitlines() == [
        "WARN Topic later does not exist; waiting until it is created.",
        "No record came within 600 ms.",
        "Processed a total of 0 messages",
    ]


MISSING = "WARN Topic later does not exist; the brokers create it if"


@pytest.mark.parametrize(
    "command",
    [
        ("kafka-console-producer", "--topic", "later"),
        ("kafka-verifiable-producer", "--topic", "later", "--max-messages", "1"),
        ("kafka-producer-perf-test", "--topic", "later", "--num-records", "1", "--record-size", "1",
         "--throughput", "-1"),
    ],
)  # fmt: skip
def test_a_producer_says_that_its_topic_does_not_exist(
    run: Command,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    settings = tmp_path / "producer.properties"
    settings.write_text("delivery.timeout.ms=200\nrequest.timeout.ms=100\nlinger.ms=0\n")
    with Broker(settings={"auto.create.topics.enable": "false"}) as broker:
        own = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", settings)
        result = run(*command, *own)
    assert sum(line.startswith(MISSING) for line in result.err.splitlines()) == 1
