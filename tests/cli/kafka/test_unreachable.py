"""Unreachable brokers, unknown settings and missing files are reported in one line."""

from pathlib import Path

from tests.cli.kafka.conftest import Command


def test_an_unreachable_broker_is_reported_with_address_and_reason(
    run: Command, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
    result = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", file)
    assert result.status == 1
    assert "127.0.0.1:1" in result.err.splitlines()[-1]
    assert "Connection refused" in result.err.splitlines()[-1]


def test_an_unknown_client_setting_is_reported(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("requst.timeout.ms=300\ndefault.api.timeout.ms=300\n")
    result = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", file)
    assert (result.status, "requst.timeout.ms" in result.err) == (1, True)


def test_a_missing_file_is_reported(run: Command) -> None:
    result = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", "/no/such/file")
    assert (result.status, "cannot read /no/such/file" in result.err) == (1, True)


def test_an_error_that_ends_the_command_at_once_is_no_warning_of_a_long_wait(
    kafka: Command, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    result = kafka("kafka-topics", "--list", "--command-config", file)
    assert result.status == 1
    assert "plain text" in result.out
    assert "trying for" not in result.err
