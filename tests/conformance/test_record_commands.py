"""Kafka's commands that move and measure records, and ours: the same arguments, the same output.

What differs by nature is masked: times, speeds, and the texts of help. A JVM takes a second or two
to start, so each comparison shows several things.
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
class Said:
    status: int
    out: str
    err: list[str]


Both = Callable[..., tuple[Said, Said]]


@pytest.fixture
def both(broker: Broker) -> Both:
    """A command of Kafka's and ours, one after the other, on Barnabas."""

    def call(name: str, *arguments: object, stdin: bytes = b"") -> tuple[Said, Said]:
        words = [str(each) for each in arguments]
        ours = [sys.executable, "-m", "barnabas.cli.kafka", f"kafka-{name}"]
        return (
            _say([str(PEERS / "kafka"), "tool", name, *words], stdin),
            _say([*ours, *words], stdin),
        )

    return call


@pytest.fixture
def on_broker(both: Both, broker: Broker) -> Both:
    return lambda name, *arguments, **more: both(
        name, "--bootstrap-server", broker.bootstrap, *arguments, **more
    )


def test_what_one_sends_either_prints(on_broker: Both, topic: str) -> None:
    options = ("parse.key=true", "parse.headers=true", "key.separator==", "null.marker=NIL")
    reading = [part for each in options for part in ("--reader-property", each)]
    lines = "a:1,b:2\tk1=first\nNIL\tk2=NIL\nc:é\tk3=three\n".encode()
    theirs, ours = on_broker("console-producer", "--topic", topic, *reading, stdin=lines)
    assert ours == theirs
    shown = ("print.key=true", "print.headers=true", "print.offset=true", "print.partition=true")
    printing = [part for each in shown for part in ("--formatter-property", each)]
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
def test_the_consumer_refuses_what_kafkas_does(on_broker: Both, options: tuple[str, ...]) -> None:
    theirs, ours = on_broker("console-consumer", *options)
    assert (ours.status, ours.out, ours.err[0]) == (theirs.status, theirs.out, theirs.err[0])


def test_the_producer_says_the_same_of_old_options(on_broker: Both, topic: str) -> None:
    old = ("--topic", topic, "--producer-property", "linger.ms=1", "--property", "parse.key=false")
    theirs, ours = on_broker("console-producer", *old, stdin=b"x\n")
    assert ours == theirs
    theirs, ours = on_broker("console-producer", *old, "--command-property", "linger.ms=1")
    assert (ours.status, ours.err[0]) == (theirs.status, theirs.err[0])


def test_speeds_are_told_in_the_same_words(on_broker: Both, topic: str, tmp_path: Path) -> None:
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


def test_every_metric_of_ours_is_one_of_kafkas(on_broker: Both, topic: str) -> None:
    load = ("--topic", topic, "--num-records", 100, "--throughput", -1, "--record-size", 10)
    theirs, ours = on_broker("producer-perf-test", *load, "--print-metrics")
    names = [_metrics(said.out) for said in (theirs, ours)]
    assert names[1] - names[0] == set()
    for name in "batch-size-avg", "record-queue-time-avg", "request-latency-avg":
        assert f"producer-metrics:{name}" in names[1]


def test_latencies_are_told_in_the_same_words(both: Both, broker: Broker, topic: str) -> None:
    both("e2e-latency", broker.bootstrap, topic, 3, 1, 10)
    theirs, ours = both("e2e-latency", broker.bootstrap, topic, 3, 1, 10)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    theirs, ours = both("e2e-latency", "a", "b")
    assert ours == theirs


def test_events_are_the_same(on_broker: Both, topic: str) -> None:
    sent = ("--topic", topic, "--max-messages", 3, "--value-prefix", 7, "--repeating-keys", 2)
    theirs, ours = on_broker("verifiable-producer", *sent)
    assert (ours.status, _masked(ours.out)) == (theirs.status, _masked(theirs.out))
    taken = ("--topic", topic, "--max-messages", 3, "--verbose", "--group-id", topic)
    theirs, ours = on_broker("verifiable-consumer", *taken)
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
def test_the_same_options_are_known(both: Both, name: str) -> None:
    theirs, ours = both(name, "--help")
    assert ours.status == theirs.status
    assert _options(ours) == _options(theirs)


def test_files_are_dumped_alike(both: Both, broker: Broker) -> None:
    folder = broker.data / "__cluster_metadata-0"
    segment = next(folder.glob("*.log"))
    options = ("--files", segment, "--cluster-metadata-decoder", "--max-bytes", 4096)
    theirs, ours = both("dump-log", *options)
    assert ours == theirs


def _say(command: list[str], stdin: bytes) -> Said:
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    err = [line for line in done.stderr.decode().splitlines() if not NOISE.match(line)]
    return Said(done.returncode, done.stdout.decode(), err)


def _masked(text: str) -> str:
    return NUMBER.sub("#", text)


def _metrics(text: str) -> set[str]:
    """Their names with their groups, without tags."""
    return {":".join(line.split(":")[:2]) for line in text.splitlines() if " : " in line}


def _options(said: Said) -> set[str]:
    told = "\n".join([said.out, *said.err])
    return set(re.findall(r"^ *(--\w[\w.-]+)", told, re.MULTILINE)) | set(
        re.findall(r", (--\w[\w.-]+)", told)
    )
