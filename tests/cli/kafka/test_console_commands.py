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
from tests.cli.kafka.conftest import Command, Said, commit, produce

from barnabas.testing import Broker

Typed = Callable[..., Said]
FROM_THE_START = ("--from-beginning", "--partition", "0")


@pytest.fixture
def typed(kafka: Command, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """The producer, with these bytes as its standard input."""

    def call(content: bytes, *arguments: object) -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return kafka("kafka-console-producer", *arguments)

    return call


def test_lines_are_records(typed: Typed, kafka: Command) -> None:
    assert typed(b"one\n\nthree", "--topic", "plain") == Said(0, "", "")
    said = kafka("kafka-console-consumer", "--topic", "plain", *FROM_THE_START, "--max-messages", 3)
    assert said == Said(0, "one\n\nthree\n", "Processed a total of 3 messages\n")


def test_keys_headers_and_markers(typed: Typed, kafka: Command) -> None:
    reading = ("parse.key=true", "parse.headers=true", "key.separator=|", "null.marker=NIL")
    options = [part for each in reading for part in ("--reader-property", each)]
    typed(b"a:1,b:2\tk|v\nNIL\tk|NIL\n", "--topic", "keyed", *options, "--sync")
    printing = ("print.key=true", "print.headers=true", "print.offset=true", "null.literal=-")
    options = [part for each in printing for part in ("--formatter-property", each)]
    consumed = ("--topic", "keyed", *FROM_THE_START, "--max-messages", 2)
    said = kafka("kafka-console-consumer", *consumed, *options)
    assert said.lines == ["Offset:0\ta:1,b:2\tk\tv", "Offset:1\tNO_HEADERS\tk\t-"]


def test_nothing_typed_is_nothing_sent(typed: Typed) -> None:
    assert typed(b"", "--topic", "silence") == Said(0, "", "")


def test_a_line_without_its_separator_ends_it(typed: Typed) -> None:
    said = typed(b"x\n", "--topic", "plain", "--reader-property", "parse.key=true")
    assert (said.status, said.err) == (1, "No key separator found on line number 1: 'x'\n")


def test_a_record_that_is_lost_is_told(typed: Typed) -> None:
    said = typed(b"x\n", "--topic", "not a name")
    assert said.status == 1
    assert said.err.startswith("Error when sending message to topic not a name: ")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(typed: Typed, kafka: Command, codec: str) -> None:
    typed(b"x\n", "--topic", f"in-{codec}", "--compression-codec", codec)
    consumed = ("--topic", f"in-{codec}", *FROM_THE_START, "--max-messages", 1)
    assert kafka("kafka-console-consumer", *consumed).out == "x\n"


def test_a_codec_without_a_name_is_gzip(typed: Typed) -> None:
    assert typed(b"x\n", "--compression-codec", "--topic", "plain").status == 0


def test_old_names_of_options_are_told(typed: Typed, kafka: Command) -> None:
    said = typed(b"", "--topic", "plain", "--producer-property", "linger.ms=1")
    assert said.out == (
        "Warning: --producer-property is deprecated and will be removed in a future version."
        " Use --command-property instead.\n"
    )
    said = typed(b"", "--topic", "t", "--property", "a=b", "--reader-property", "c=d")
    assert said.status == 1
    assert said.err.startswith("Options --reader-property and --property cannot be specified")


def test_settings_of_java_alone_are_passed_over(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "java.config"
    file.write_text(
        "key.serializer=org.example.OwnSerializer\nschema.registry.url=http://x\nlinger.ms=1\n"
    )
    said = typed(b"x\n", "--topic", "plain", "--command-config", file)
    assert said.status == 0
    assert said.err == ('WARN No such configuration property: "schema.registry.url"\n')


def test_a_group_goes_on_where_it_was(kafka: Command, broker: Broker) -> None:
    broker.create_topic("shared", 1)
    produce(broker, "shared", 4)
    options = ("--topic", "shared", "--group", "readers", "--from-beginning", "--max-messages", 2)
    assert kafka("kafka-console-consumer", *options).out == "0\n1\n"
    assert kafka("kafka-console-consumer", *options).out == "2\n3\n"


def test_the_clusters_own_topics_are_json(kafka: Command, broker: Broker) -> None:
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


def test_topics_by_pattern(kafka: Command, broker: Broker) -> None:
    for name in "wild-1", "wild-2":
        broker.create_topic(name, 1)
        produce(broker, name, 1)
    options = ("--include", "wild-.*", "--from-beginning", "--max-messages", 2)
    assert kafka("kafka-console-consumer", *options).lines == ["0", "0"]


def test_patience_ends(kafka: Command, broker: Broker) -> None:
    options = ("--topic", "no-such-topic", "--from-beginning", "--timeout-ms", 300)
    said = kafka("kafka-console-consumer", *options)
    assert (said.status, said.out) == (0, "")
    assert said.err.splitlines()[-1] == "Processed a total of 0 messages"


def test_nobody_there_is_told_at_once(run: Command) -> None:
    nobody = ("--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--timeout-ms", 300)
    said = run("kafka-console-consumer", *nobody)
    assert said.err.splitlines()[0] == "WARN 127.0.0.1:1: Connection refused"


def test_what_is_no_number_ends_it_or_is_skipped(kafka: Command, typed: Typed) -> None:
    typed(b"abc\n12345678\n", "--topic", "longs")
    long = "org.apache.kafka.common.serialization.LongDeserializer"
    options = ("--topic", "longs", *FROM_THE_START, "--max-messages", 2)
    said = kafka("kafka-console-consumer", *options, "--value-deserializer", long)
    assert (said.status, "3 bytes" in said.err) == (1, True)
    skipping = ("--skip-message-on-error", "--value-deserializer", long)
    said = kafka("kafka-console-consumer", *options, *skipping)
    assert said.out == f"{int.from_bytes(b'12345678')}\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "Exactly one of the following arguments is required: [topic], [include]"),
        (("--topic", "t", "--offset", "3"), "The partition is required when offset is specified."),
        (("--include", "t", "--partition", "0"), "The topic is required when partition is"),
        (("--topic", "t", "--partition", "0", "--offset", "soon"), "The provided offset value"),
        (("--topic", "t", "--partition", "0", "--group", "g"), "Options group and partition"),
    ],
)
def test_what_makes_no_sense_is_refused_with_help(
    kafka: Command, options: tuple[str, ...], told: str
) -> None:
    said = kafka("kafka-console-consumer", *options)
    assert said.status == 1
    assert said.err.startswith(told)
    assert "--from-beginning" in said.err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)
def test_a_signal_ends_it_cleanly(broker: Broker, number: signal.Signals, status: int) -> None:
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


def test_whoever_reads_may_have_seen_enough(broker: Broker) -> None:
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


def test_whoever_has_seen_enough_of_a_quiet_topic_is_not_waited_for(broker: Broker) -> None:
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
