"""Users with passwords."""

import os
from pathlib import Path

import pytest

from barnabas.security.authentication.users import (
    FixedUsers,
    PasswordVerifier,
    UsersFile,
    jaas_users,
    parse_users,
)


def test_users_of_a_jaas_line_are_its_user_options() -> None:
    options = {"username": "a", "password": "b", "user_alice": "x", "user_": "y"}
    assert jaas_users(options) == {"alice": "x", "": "y"}


def test_lines_have_names_and_passwords() -> None:
    lines = ["# users", "", "alice:a:b ", " bob:x"]
    assert parse_users(lines) == {"alice": "a:b", "bob": "x"}


@pytest.mark.parametrize("line", ["alice", "alice:", ":secret", "a:secret\na:secret"])
def test_a_malformed_line_is_an_error_without_the_password(line: str) -> None:
    with pytest.raises(ValueError, match=r"entry 1|twice") as raised:
        parse_users(line.splitlines())
    assert "secret" not in str(raised.value)


def test_the_first_source_that_knows_a_user_decides() -> None:
    verifier = PasswordVerifier([FixedUsers({"a": "1"}), FixedUsers({"a": "2", "b": "3"})])
    assert verifier.is_valid("a", "1")
    assert not verifier.is_valid("a", "2")
    assert verifier.is_valid("b", "3")
    assert not verifier.is_valid("c", "")
    assert not verifier.is_user("c")


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path, now_s = tmp_path / "users", [0.0]
    path.write_text("alice:old")
    verifier = PasswordVerifier([UsersFile(path, lambda: now_s[0])])
    assert verifier.is_valid("alice", "old")

    def change(text: str) -> None:
        path.write_text(text)
        now_s[0] += 2
        os.utime(path, (now_s[0], now_s[0]))

    change("alice:new")
    assert verifier.is_valid("alice", "new")
    assert not verifier.is_valid("alice", "old")
    change("malformed")
    assert verifier.is_valid("alice", "new")
    path.unlink()
    now_s[0] += 2
    assert verifier.is_valid("alice", "new")


def test_a_file_that_is_missing_or_malformed_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        UsersFile(tmp_path / "none")
    (tmp_path / "bad").write_text("alice")
    with pytest.raises(ValueError, match="name:password"):
        UsersFile(tmp_path / "bad")
