"""A cluster that does not answer, and settings that nobody knows: told in a line."""

from pathlib import Path

from tests.cli.kafka.conftest import Command


def test_nobody_answering_is_told_with_address_and_reason(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
    said = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", file)
    assert said.status == 1
    assert "127.0.0.1:1" in said.err.splitlines()[-1]
    assert "Connection refused" in said.err.splitlines()[-1]


def test_an_unknown_setting_of_the_client_is_told(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("requst.timeout.ms=300\ndefault.api.timeout.ms=300\n")
    said = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", file)
    assert (said.status, "requst.timeout.ms" in said.err) == (1, True)


def test_a_file_that_is_not_there_is_told(run: Command) -> None:
    said = run("kafka-cluster", "cluster-id", "-b", "127.0.0.1:1", "-c", "/no/such/file")
    assert (said.status, "cannot read /no/such/file" in said.err) == (1, True)
