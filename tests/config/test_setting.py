"""One setting: from text to a typed value and back, and its errors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.checks import OffsetReset, OneOf, ThrottledReplicas, VoterList
from barnabas.config.errors import InvalidConfig
from barnabas.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_DOUBLE,
    PASSWORD,
    SHORT,
    STRING,
    Secret,
    Setting,
    SettingType,
    to_text,
)


def setting(kind: SettingType, **more: Any) -> Setting:
    return Setting("some.setting", kind, None, LOW, **more)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, " false ", False),
        (INT, "+5", 5),
        (INT, "-2147483648", -(2**31)),
        (LONG, "9223372036854775807", 2**63 - 1),
        (DOUBLE, "1e-1", 0.1),
        (STRING, " padded ", "padded"),
        (LIST, "a, b ,a", ("a", "b")),
        (LIST, " ", ()),
        (PASSWORD, "secret", Secret("secret")),
    ],
)
def test_text_becomes_a_typed_value(kind: SettingType, text: str, value: object) -> None:
    assert setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "yes"),
        (INT, "1_000"),
        (INT, "1e3"),
        (INT, ""),
        (INT, "٣"),
        (INT, "2147483648"),
        (SHORT, "40000"),
        (LONG, "9223372036854775808"),
        (DOUBLE, "half"),
    ],
)
def test_a_value_that_java_rejects_raises_an_error_with_name_and_value(
    kind: SettingType, text: str
) -> None:
    with pytest.raises(InvalidConfig) as raised:
        setting(kind).parse(text)
    assert str(raised.value).startswith(f"Invalid value {text} for configuration some.setting: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-12345678.0, "-1.2345678E7"),
        (MAX_DOUBLE, "1.7976931348623157E308"),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
        (Secret("x"), None),
    ],
)
def test_values_have_kafkas_text(value: object, text: str | None) -> None:
    assert to_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_parsed_from_its_text(value: float) -> None:
    text = to_text(value)
    assert text is not None
    assert setting(DOUBLE).parse(text) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_is_parsed_from_its_text(value: int) -> None:
    text = to_text(value)
    assert text is not None
    assert setting(LONG).parse(text) == value


def test_only_reveal_shows_a_secret() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "hunter2"
    with pytest.raises(InvalidConfig) as raised:
        setting(PASSWORD, check=OneOf("x")).parse("hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("value", [("0:1",), ("0:1", "12:3"), ("*",), ()])
def test_throttled_replicas_are_partition_broker_pairs_or_a_star(value: tuple[str, ...]) -> None:
    assert ThrottledReplicas().find_problem(value) is None


@pytest.mark.parametrize("value", [("none",), ("a:1",), ("1",), ("*", "0:1"), None])
def test_malformed_throttled_replicas_are_invalid(value: tuple[str, ...] | None) -> None:
    assert ThrottledReplicas().find_problem(value)


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ("earliest", True),
        ("by_duration:P1D", True),
        ("by_duration:PT1H30M", True),
        ("by_duration:P2DT0.5S", True),
        ("EARLIEST", False),
        ("by_duration:", False),
        ("by_duration:P", False),
        ("by_duration:PT", False),
        ("by_duration:-P1D", False),
        ("by_duration:P1DT", False),
        (None, False),
    ],
)
def test_an_offset_reset_is_a_strategy_or_a_duration(value: str | None, is_valid: bool) -> None:
    assert (OffsetReset("latest", "earliest").find_problem(value) is None) is is_valid


@pytest.mark.parametrize("voter", ["x@h:1", "1@h", "1@:9", "@h:1", "1@h:99999", "-1@h:1"])
def test_the_error_of_a_malformed_voter_shows_it(voter: str) -> None:
    problem = VoterList().find_problem(("1@good:9093", voter))
    assert problem is not None
    assert "is not of the form" in problem or "has no host" in problem
