"""`--add-scram` of `storage format`: the users that it accepts, and its errors."""

import base64
from typing import Any

import pytest

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.scram_users import parse_scram_users
from barnabas.security.scram_credentials import (
    ScramMechanismCode,
    derive_credential,
    salt_password,
)

SALT = base64.b64encode(b"the salt").decode()
SALTED = salt_password(ScramMechanismCode.SCRAM_SHA_512, b"secret", b"the salt", 8192)


def parse(*arguments: str) -> list[Any]:
    return parse_scram_users(arguments)


def test_a_password_gets_a_random_salt_and_the_fewest_iterations() -> None:
    first, second = parse(
        "SCRAM-SHA-256=[name=alice,password=secret]", "SCRAM-SHA-512=[name=alice,password=secret]"
    )
    assert (first.name, first.mechanism, first.iterations) == ("alice", 1, 4096)
    assert (second.name, second.mechanism) == ("alice", 2)
    assert first.salt != second.salt
    salted = salt_password(ScramMechanismCode.SCRAM_SHA_256, b"secret", first.salt, 4096)
    expected = derive_credential(ScramMechanismCode.SCRAM_SHA_256, salted, first.salt, 4096)
    assert (first.stored_key, first.server_key) == (expected.stored_key, expected.server_key)


@pytest.mark.parametrize(
    "secret", ["password=secret", f'saltedpassword="{base64.b64encode(SALTED).decode()}"']
)
def test_salt_iterations_and_salted_passwords_can_be_given(secret: str) -> None:
    (record,) = parse(f'SCRAM-SHA-512=[name="a,b",iterations=8192,salt="{SALT}",{secret}]')
    expected = derive_credential(ScramMechanismCode.SCRAM_SHA_512, SALTED, b"the salt", 8192)
    assert (record.name, record.salt, record.iterations) == ("a,b", b"the salt", 8192)
    assert (record.stored_key, record.server_key) == (expected.stored_key, expected.server_key)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("SCRAM-SHA-256", "needs the form"),
        ("SCRAM-SHA-256=name=a,password=hidden", "needs the form"),
        ("PLAIN=[name=a,password=hidden]", "PLAIN is not supported"),
        ("SCRAM-SHA-256=[password=hidden]", "must supply 'name'"),
        ("SCRAM-SHA-256=[name=,password=hidden]", "must supply 'name'"),
        ("SCRAM-SHA-256=[name=a]", "only supply one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,password=hidden,saltedpassword=eA==]", "only supply one"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=eA==]", "must supply 'salt'"),
        ("SCRAM-SHA-256=[name=a,salt=?,password=hidden]", "'salt' of add-scram is not base64"),
        ("SCRAM-SHA-256=[name=a,salt=eA==,saltedpassword=hidden?]", "is not base64"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=4095]", ">= 4096 and <= 16384"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=x]", ">= 4096 and <= 16384"),
        ("SCRAM-SHA-256=[name=a,pasword=hidden]", "takes name, password"),
        ("SCRAM-SHA-256=[name=a,hidden]", "takes name, password"),
    ],
)
def test_an_error_says_what_is_wrong_without_the_password(argument: str, message: str) -> None:
    with pytest.raises(CommandError, match=message) as raised:
        parse(argument)
    assert "hidden" not in str(raised.value)


def test_a_user_is_given_once_for_a_mechanism() -> None:
    with pytest.raises(CommandError, match="SCRAM-SHA-256 of user a is given twice"):
        parse(*["SCRAM-SHA-256=[name=a,password=secret]"] * 2)
