"""`barnabas users`, `quotas` and `acls`: rows, --json, errors."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Barnabas

from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(barnabas: Barnabas, broker: Broker) -> Barnabas:
    def call(*arguments: str | Path) -> Any:
        return barnabas(*arguments, "-b", broker.bootstrap_servers)

    return call


def rows(run: Barnabas, *arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_user_is_added_with_both_mechanisms_and_removed(run: Barnabas, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    added = run("users", "add", "alice", "--password-file", file)
    assert added.output == "alice can log in with SCRAM-SHA-256 and SCRAM-SHA-512.\n"
    assert rows(run, "users", "list") == [
        {"user": "alice", "mechanism": mechanism, "iterations": 4096}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    removed = run("users", "remove", "alice", "-m", "scram-sha-256", "--yes")
    assert removed.output == "alice can no longer log in with SCRAM-SHA-256.\n"
    run("users", "remove", "alice", "--yes")
    assert rows(run, "users", "list") == []
    again = run("users", "remove", "alice", "--yes")
    assert again.exit_code == 1
    assert "alice has no password for SCRAM-SHA-256 or SCRAM-SHA-512" in again.output


def test_a_password_comes_from_a_file_or_a_terminal(
    run: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin\n"))
    asked = run("users", "add", "bob")
    assert asked.exit_code == 1
    assert "Standard input is not a terminal: give --password-file." in asked.output
    missing = run("users", "add", "bob", "--password-file", tmp_path / "none")
    assert f"cannot read {tmp_path}/none" in missing.output
    (tmp_path / "empty").touch()
    empty = run("users", "add", "bob", "--password-file", tmp_path / "empty")
    assert "has no password in its first line" in empty.output
    assert rows(run, "users", "list") == []


def test_quotas_are_set_listed_and_unset(run: Barnabas) -> None:
    assert run("quotas", "set", "-u", "alice", "-c", "app", "producer_byte_rate=1024").output == (
        "producer_byte_rate set.\n"
    )
    run("quotas", "set", "--user", "default", "request_percentage=50", "consumer_byte_rate=9")
    run("quotas", "set", "--ip", "10.0.0.1", "connection_creation_rate=3")
    listed = [list(row.values()) for row in rows(run, "quotas", "list")]
    assert listed == [
        [None, None, "10.0.0.1", "connection_creation_rate", 3.0],
        ["alice", "app", None, "producer_byte_rate", 1024.0],
        ["default", None, None, "consumer_byte_rate", 9.0],
        ["default", None, None, "request_percentage", 50.0],
    ]
    run("quotas", "unset", "-u", "alice", "-c", "app", "producer_byte_rate")
    run("quotas", "unset", "-u", "default", "request_percentage", "consumer_byte_rate")
    run("quotas", "unset", "--ip", "10.0.0.1", "connection_creation_rate")
    assert rows(run, "quotas", "list") == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("quotas", "set", "producer_byte_rate=1"), "name a --user, a --client-id or an --ip"),
        (("quotas", "set", "-u", "a", "producer_byte_rate=x"), "Cannot parse quota"),
        (("quotas", "set", "-u", "a", "producer_byte_rate=0"), "must be greater than 0"),
        (("quotas", "unset", "-u", "a", "producer_byte_rate"), "Invalid config(s): producer_byte"),
        (("acls", "add", "alice"), "name a resource, such as --topic orders or --cluster"),
        (("acls", "add", "alice", "--consumer", "-t", "t"), "a consumer needs --topic and --group"),
        (("acls", "add", "alice", "-t", "t", "-o", "fly"), "fly is not a list of operations"),
        (("acls", "add", "alice", "-t", "t", "-o", "cluster_action"), "TOPIC only supports"),
        (("acls", "add", ":a", "-t", "t"), "principalType:principalName"),
    ],
)
def test_errors_say_what_is_missing(run: Barnabas, arguments: tuple[str, ...], error: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert error in result.output
