"""Console and performance commands: ours have the output of Kafka's for the same arguments.

Times, throughput and help texts are masked. A JVM takes a second or two to start, so each
comparison checks several things.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.brokers import PEERS, Broker

pytestmark = pytest.mark.peer

NOISE = re.compile(r"The consumer rebalance protocol|\[\d{4}-|\tat |Caused by|\t\.\.\. |WARN")
NUMBER = re.compile(r"\b\d+(\.\d+)?([Ee]-?\d+)?\b|NaN")


@dataclass(slots=True, frozen=True)
class CommandOutput:
    status: int
    out: str
    err: list[str]


RunBoth = Callable[..., tuple[CommandOutput, CommandOutput]]


@pytest.fixture
def run_both(broker: Broker) -> RunBoth:
    """Runs Kafka's command and ours, one after the other, on Barnabas."""

    def call(
        name: str, *arguments: object, stdin: bytes = b""
    ) -> tuple[CommandOutput, CommandOutput]:
        texts = [str(argument) for argument in arguments]
        ours = [sys.executable, "-m", "barnabas.cli.kafka", f"kafka-{name}"]
        return (
            _run_command([str(PEERS / "kafka"), "tool", name, *texts], stdin),
            _run_command([*ours, *texts], stdin),
        )

    return call


@pytest.fixture
def on_broker(run_both: RunBoth, broker: Broker) -> RunBoth:
    return lambda name, *arguments, **more: run_both(
        name, "--bootstrap-server", broker.bootstrap, *arguments, **more
    )


def test_both_consumers_print_the_records_of_both_producers(on_broker: RunBoth, topic: str) -> None:
    options = ("parse.key=true", "parse.headers=true", "key.separator==", "null.marker=NIL")
    reading = [part for option in options for part in ("--reader-property", option)]
    lines = "a:1,b:2\tk1=first\nNIL\tk2=NIL\nc:é\tk3=three\n".encode()
    theirs, ours = on_broker("console-producer", "--topic", topic, *reading, stdin=lines)
    assert ours == theirs
    shown = ("print.key=true", "print.headers=true", "print.offset=true", "print.partition=true")
    printing = [part for option in shown for part in ("--formatter-property", option)]
    consumed = ("--topic", topic, "--partition", 0, "--offset", "earliest", "--max-messages", 6)
    theirs, ours = on_broker("console-consumer", *consumed, *printing)
    assert ours == theirs
    assert len(ours.out.splitlines()) == 6


@pytest.mark.parametrize(
    "options",
    [
        ("--topic", "t", "--include", "t"),
        ("--topic", "t", "--offset", "3"),
        ("--topic", "t", "--partition", "0", "--offset", "-3"),
        ("--topic", "t", "--partition", "0", "--group", "g"),
        ("--topic", "t", "--from-beginning", "--command-property", "auto.offset.reset=latest"),
        ("--topic", "t", "--group", "a", "--command-property", "group.id=b"),
    ],
)
def test_the_consumer_rejects_the_same_options(
    on_broker: RunBoth, options: tuple[str, ...]
) -> None:
    theirs, ours = on_broker("console-consumer", *options)
    assert (ours.status, ours.out, ours.err[0]) == (theirs.status, theirs.out, theirs.err[0])


def test_the_producer_has_the_same_messages_for_old_options(on_broker: RunBoth, topic: str) -> None:
    old = ("--topic", topic, "--producer-property", "linger.ms=1", "--property", "parse.key=false")
    theirs, ours = on_broker("console-producer", *old, stdin=b"x\n")
    assert ours == theirs
    theirs, ours = on_broker("console-producer", *old, "--command-property", "linger.ms=1")
    assert (ours.status, ours.err[0]) == (theirs.status, theirs.err[0])


def test_throughput_is_reported_in_the_same_format(
    on_broker: RunBoth, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "payloads"
    file.write_text("one\ntwo\n\nthree\n")
    load = ("--topic", topic, "--num-records", 200, "--throughput", -1, "--warmup-records", 50)
    theirs, ours = on_broker(
        "producer-perf-test",
        *(*load, "--payload-file", file, "--producer-props", "linger.ms=10"),
    )
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    theirs, ours = on_broker("consumer-perf-test", "--topic", topic, "--messages", 100)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    late = ("--topic", topic, "--num-records", 1000, "--timeout", 500, "--hide-header")
    theirs, ours = on_broker("consumer-perf-test", *late)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))


def test_every_metric_exists_in_kafka(on_broker: RunBoth, topic: str) -> None:
    load = ("--topic", topic, "--num-records", 100, "--throughput", -1, "--record-size", 10)
    theirs, ours = on_broker("producer-perf-test", *load, "--print-metrics")
    names = [_metrics(output.out) for output in (theirs, ours)]
    assert names[1] - names[0] == set()
    for name in "batch-size-avg", "record-queue-time-avg", "request-latency-avg":
        assert f"producer-metrics:{name}" in names[1]


def test_latencies_are_reported_in_the_same_format(
    run_both: RunBoth, broker: Broker, topic: str
) -> None:
    run_both("e2e-latency", broker.bootstrap, topic, 3, 1, 10)
    theirs, ours = run_both("e2e-latency", broker.bootstrap, topic, 3, 1, 10)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    theirs, ours = run_both("e2e-latency", "a", "b")
    assert ours == theirs


def test_verifiable_clients_print_the_same_events(on_broker: RunBoth, topic: str) -> None:
    sent = ("--topic", topic, "--max-messages", 3, "--value-prefix", 7, "--repeating-keys", 2)
    theirs, ours = on_broker("verifiable-producer", *sent)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    consumed_options = ("--topic", topic, "--max-messages", 3, "--verbose", "--group-id", topic)
    theirs, ours = on_broker("verifiable-consumer", *consumed_options)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))


@pytest.mark.parametrize(
    "name",
    [
        "console-producer",
        "console-consumer",
        "producer-perf-test",
        "consumer-perf-test",
        "verifiable-producer",
        "verifiable-consumer",
        "dump-log",
        "metadata-shell",
    ],
)
def test_commands_have_the_same_options(run_both: RunBoth, name: str) -> None:
    theirs, ours = run_both(name, "--help")
    assert ours.status == theirs.status
    assert _options(ours) == _options(theirs)


def test_dump_log_prints_the_same_records(run_both: RunBoth, broker: Broker) -> None:
    folder = broker.data / "__cluster_metadata-0"
    segment = next(folder.glob("*.log"))
    options = ("--files", segment, "--cluster-metadata-decoder", "--max-bytes", 4096)
    theirs, ours = run_both("dump-log", *options)
    assert ours == theirs


def _run_command(command: list[str], stdin: bytes) -> CommandOutput:
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    err = [line for line in done.stderr.decode().splitlines() if not NOISE.match(line)]
    return CommandOutput(done.returncode, done.stdout.decode(), err)


def _masked(text: str) -> str:
    return NUMBER.sub("#", text)


def _metrics(text: str) -> set[str]:
    """Returns the names of metrics with their groups, without tags."""
    return {":".join(line.split(":")[:2]) for line in text.splitlines() if " : " in line}


def _options(output: CommandOutput) -> set[str]:
    text = "\n".join([output.out, *output.err])
    return set(re.findall(r"^ *(--\w[\w.-]+)", text, re.MULTILINE)) | set(
        re.findall(r", (--\w[\w.-]+)", text)
    )
