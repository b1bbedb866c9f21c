"""`barnabas produce`, `consume` and `perf`: output and exit statuses."""

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import RetryQuickly
from tests.cli.kafka.conftest import produce

from barnabas.cli.root_command import ExitStatus, barnabas
from barnabas.testing import Broker

UNREACHABLE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("numbers", 1)
        produce(broker, "numbers", 5)
        yield broker


@pytest.fixture
def call(broker: Broker) -> Any:
    def call(*arguments: object, stdin: bytes | None = None, at: str | None = None) -> Result:
        words = [*map(str, arguments), "-b", at or broker.bootstrap_servers]
        result = CliRunner().invoke(barnabas, words, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return call


def test_lines_are_produced_and_consumed(call: Any) -> None:
    produced = call("produce", "lines", stdin=b"one\ntwo\n\xff\n")
    assert (produced.exit_code, produced.stderr) == (0, "3 records produced to lines.\n")
    assert call("consume", "lines", "--exit").stdout_bytes == b"one\ntwo\n\xff\n"


def test_keys_headers_and_nulls_are_produced(call: Any) -> None:
    options = ("-k", ":", "-H", "from=test", "--null", "NIL", "--acks", "all", "-z", "lz4")
    produced = call("produce", "keyed", *options, "--json", stdin=b"a:1\nb:NIL\n")
    assert json.loads(produced.stdout) == {"topic": "keyed", "records": 2}
    consumed = call("consume", "keyed", "-e", "--json")
    first, second = map(json.loads, consumed.stdout.splitlines())
    assert (first["key"], first["value"], first["headers"]) == ("a", "1", [["from", "test"]])
    assert (second["key"], second["value"]) == ("b", None)


def test_a_line_without_a_separator_is_an_error(call: Any) -> None:
    result = call("produce", "keyed", "-k", ":", stdin=b"no key\n")
    assert result.exit_code == ExitStatus.FAILED
    assert "line number 1" in result.stderr


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (("--from-beginning", "-n", "2"), "0\n1\n"),
        (("-o", "3", "-e"), "3\n4\n"),
        (("-o", "-2", "-e"), "3\n4\n"),
        (("-o", "latest", "-e"), ""),
        (("-p", "0", "-e", "--committed", "-f", r"%t-%p@%o=%v;"), None),
        (("--timeout", "0.1"), ""),
    ],
)
def test_consume_starts_and_stops_where_the_options_say(
    call: Any, options: tuple[str, ...], printed: str | None
) -> None:
    consumed = call("consume", "numbers", *options)
    expected = "".join(f"numbers-0@{n}={n};" for n in range(5)) if printed is None else printed
    assert (consumed.exit_code, consumed.stdout) == (0, expected)


def test_a_group_continues_at_its_committed_offset(call: Any) -> None:
    first = call("consume", "numbers", "-g", "readers", "--from-beginning", "-n", "2")
    rest = call("consume", "numbers", "-g", "readers", "--exit")
    assert (first.stdout, rest.stdout) == ("0\n1\n", "2\n3\n4\n")


def test_invalid_arguments_are_an_error_in_one_line(call: Any) -> None:
    nowhere = call("consume", "nowhere", "-e")
    assert nowhere.exit_code == ExitStatus.FAILED
    assert nowhere.stderr.startswith("Error: Topic nowhere does not exist;")
    misspelt = call("consume", "nubmers", "-e").stderr
    assert "Topic nubmers does not exist; did you mean numbers? Or create it with" in misspelt
    assert "no partition 9" in call("consume", "numbers", "-p", "9").stderr
    assert "%x" in call("consume", "numbers", "-f", "%x").stderr
    assert call("consume", "numbers", "-o", "soon").exit_code == ExitStatus.USAGE
    assert call("consume", "numbers", "-g", "g", "-p", "0").exit_code == ExitStatus.USAGE
    assert call("produce", "numbers", "-H", "novalue", stdin=b"").exit_code == ExitStatus.USAGE
    assert "linger.msec" in call("produce", "numbers", "-X", "linger.msec=1", stdin=b"").stderr


@pytest.mark.parametrize("command", [("produce",), ("consume",), ("perf", "produce")])
def test_an_unreachable_broker_has_its_own_exit_status(
    call: Any, command: tuple[str, ...], retry_quickly: RetryQuickly
) -> None:
    ended = retry_quickly(lambda: call(*command, "numbers", at=UNREACHABLE, stdin=b""))
    assert ended.exit_code == ExitStatus.UNREACHABLE
    assert UNREACHABLE in ended.stderr


def test_perf_prints_throughput_and_latency(call: Any) -> None:
    produced = json.loads(call("perf", "produce", "fast", "-n", "500", "-s", "10", "--json").stdout)
    assert produced[0]["records"] == 500
    consumed = json.loads(call("perf", "consume", "fast", "-n", "500", "--json").stdout)
    assert consumed[0]["records"] == 500
    waited = json.loads(call("perf", "latency", "fast", "-n", "5", "--json").stdout)
    assert waited[0]["p50_ms"] > 0
    late = call("perf", "consume", "fast", "-n", "506", "--timeout", "0.1")
    assert late.exit_code == ExitStatus.FAILED
    assert late.stdout.split()[0] == "RECORDS"


def test_a_progress_bar_is_only_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.cli.display import progress_bar

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, is_drawn in (Terminal(), True), (io.StringIO(), False):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar("counting", 10) as advance:
            advance(10)
        assert ("counting" in stream.getvalue()) == is_drawn


def test_producing_to_a_topic_that_no_broker_creates_is_an_error(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.options.CONNECT_TIMEOUT_S", 1.0)
    with Broker(settings={"auto.create.topics.enable": "false"}) as broker:
        produced = call("produce", "later", stdin=b"one\n", at=broker.bootstrap_servers)
    assert produced.exit_code == ExitStatus.FAILED
    assert produced.stderr == (
        "Error: Topic later does not exist, and the brokers do not create it; create it with"
        " `barnabas topics create later`.\n"
    )
