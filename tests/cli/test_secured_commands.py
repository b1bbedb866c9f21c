"""Every command that connects to brokers logs in with --command-config, and says if it cannot."""

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.command_lines import BARNABAS_LINES, KAFKA_LINES
from tests.cli.conftest import CONNECT_TIMEOUTS
from tests.cli.test_hostile_input import HARMLESS, PLACEHOLDER
from tests.conformance.secured_broker import PASSWORD, SecuredBroker, secured_broker
from tests.conformance.secured_clients import our_producer
from tests.registry.http_requests import send_request
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

from barnabas.cli.kafka import COMMANDS
from barnabas.cli.operations.configs import parse_added
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.settings import parse_pairs
from barnabas.cli.root_command import barnabas
from barnabas.schema_registry import Schema, SchemaRegistryClient

_CONNECTION = "--bootstrap-server <broker> --command-config <config>"
VALID_LINES = (
    f"kafka-console-producer {_CONNECTION} --topic numbers --timeout 1",
    f"kafka-delete-records {_CONNECTION} --offset-json-file <json>",
    f"kafka-get-offsets {_CONNECTION} --topic numbers",
    f"kafka-groups {_CONNECTION} --list",
    f"kafka-producer-perf-test {_CONNECTION} --topic numbers --num-records 1 --record-size 9"
    " --throughput -1 --command-property delivery.timeout.ms=3000"
    " --command-property request.timeout.ms=2000",
    f"kafka-reassign-partitions {_CONNECTION} --list",
    f"kafka-verifiable-consumer {_CONNECTION} --topic numbers --group-id g --max-messages 1",
    f"kafka-verifiable-producer {_CONNECTION} --topic numbers --max-messages 1",
)
"""Of commands whose lines in `command_lines` end before they connect."""

WRONG = "the user name or the password is wrong"
CONFIG = "--command-config"


def lines_that_connect(lines: Iterable[str]) -> list[str]:
    """Returns a line of each command that has the address of a broker, with its settings."""
    found = {line.split()[0]: line for line in VALID_LINES if lines is KAFKA_LINES}
    for line in lines:
        if line.split()[0] == "connect":
            continue  # the settings of its clients are in the file of the worker
        if "<broker>" in line and "<registry>" not in line:
            line = line.replace(f" {CONFIG} <file>", "")
            line = line.replace("<broker>", f"<broker> {CONFIG} <config>")
            found.setdefault(line.split()[0], line)
    return list(found.values())


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("commands")) as running:
        running.create_topic("numbers", "alice")
        with our_producer(running.login("PLAIN")) as send:
            send("numbers", b"1")
        yield running


def config_file(secured: SecuredBroker, folder: Path, password: str) -> Path:
    file = folder / ("right.properties" if password == PASSWORD else "wrong.properties")
    file.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secured.connection.ca}\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="{password}";\n'
    )
    return file


def filled(line: str, secured: SecuredBroker, config: Path) -> list[str]:
    empty = config.with_name("empty")
    empty.write_text("")
    json = config.with_name("offsets.json")
    json.write_text('{"partitions": [{"topic": "numbers", "partition": 0, "offset": 0}]}')
    values = HARMLESS | {"broker": secured.connection.bootstrap, "file": str(empty)}
    words = line.replace("<config>", str(config)).replace("<json>", str(json)).split()
    return [PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in words]


@pytest.mark.parametrize("line", lines_that_connect(KAFKA_LINES))
def test_a_kafka_command_logs_in(
    line: str,
    secured: SecuredBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(password: str) -> str:
        name, *arguments = filled(line, secured, config_file(secured, tmp_path, password))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n")))
        main = import_module(f"barnabas.cli.kafka.{COMMANDS[name]}").main
        with suppress(SystemExit):
            main(arguments)
        printed = capsys.readouterr()
        return printed.out + printed.err

    require_login(run, secured)


@pytest.mark.parametrize("line", lines_that_connect(BARNABAS_LINES))
def test_a_barnabas_command_logs_in(
    line: str, secured: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(password: str) -> str:
        words = filled(line, secured, config_file(secured, tmp_path, password))
        return CliRunner().invoke(barnabas, words, input=b"1\n").output

    require_login(run, secured)


def require_login(run, secured: SecuredBroker) -> None:  # type: ignore[no-untyped-def]
    """Runs a command with the right and with a wrong password."""
    logins = secured.successful_logins()
    assert WRONG not in run(PASSWORD)
    assert secured.successful_logins() > logins
    logins = secured.successful_logins()
    with pytest.MonkeyPatch.context() as patch:
        for name in CONNECT_TIMEOUTS:
            patch.setattr(name, 3.0)
        printed = run("guessed")
    assert WRONG in printed
    assert "guessed" not in printed
    assert secured.successful_logins() == logins


def test_the_registry_logs_in_and_serves_its_clients(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    right = config_file(secured, tmp_path, PASSWORD)
    bootstrap = secured.connection.bootstrap
    registry = RegistryProcess(bootstrap, tmp_path / "log", CONFIG, str(right)).wait()
    try:
        with SchemaRegistryClient({"url": registry.url}) as client:
            schema = Schema('{"type": "string"}', "AVRO")
            schema_id = client.register_schema("orders-value", schema)
            assert client.get_schema(schema_id).schema_type == "AVRO"
        assert send_request(registry.url, "GET", "/subjects").json == ["orders-value"]
    finally:
        registry.process.terminate()
        registry.process.wait()


def test_a_registry_that_cannot_log_in_says_why(secured: SecuredBroker, tmp_path: Path) -> None:
    wrong = config_file(secured, tmp_path, "guessed")
    bootstrap = secured.connection.bootstrap
    registry = RegistryProcess(bootstrap, tmp_path / "log", CONFIG, str(wrong))
    try:
        wait_until(lambda: WRONG in registry.output, "the registry says why", 60)
        assert "guessed" not in registry.output
    finally:
        registry.process.terminate()
        registry.process.wait()


@pytest.mark.parametrize(
    "text",
    ["SCRAM-SHA-256=[password=hidden", "SCRAM-SHA-256=password=hidden", "ssl.key.password:hidden"],
)
def test_the_error_of_a_malformed_setting_shows_no_password(text: str) -> None:
    with pytest.raises(CommandError) as failed:
        parse_added(text)
    assert "hidden" not in str(failed.value)
    if "=" not in text:
        with pytest.raises(CommandError, match=r"'ssl\.key\.password\.\.\.' is not KEY=VALUE"):
            parse_pairs([text])
