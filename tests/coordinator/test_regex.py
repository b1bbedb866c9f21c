"""Regular expressions: RE2's syntax, whole names, and no pattern that stops the loop."""

import subprocess
import sys
from itertools import islice

import pytest

from barnabas.coordinator import regex
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("(?i)ORDERS", {"orders"}),
        (r"\Qorders-eu\E|clicks", {"orders-eu", "clicks"}),
        ("(?<name>c).+", {"clicks"}),
        ("__.*", {"__consumer_offsets"}),
        ("rders", set()),
        ("", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, names: set[str]) -> None:
    topics = ["orders", "orders-eu", "clicks", "__consumer_offsets"]
    assert {name for actual in regex.search(pattern, topics) for name in actual} == names


@pytest.mark.parametrize("pattern", ["(", "[", "a**", r"\1", "(?=a)", "a{1001}", "x{2,1}", "a\\"])
def test_unsupported_syntax_is_an_error_with_the_reason(pattern: str) -> None:
    with pytest.raises(KafkaError, match=r"is not a valid regular expression: .+") as append_error:
        regex.check(pattern, "SubscribedTopicRegex")
    assert append_error.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_needs_too_much_memory_is_an_error() -> None:
    with pytest.raises(KafkaError):
        regex.check(r"(?:(?:\pL{100}){10}){10}", "SubscribedTopicRegex")


def test_a_costly_pattern_is_searched_for_in_slices() -> None:
    names = ["a" * 249] * 10
    slices = regex.search("(?:(?:a?){100}){9}" + "a" * 900, names)
    assert len(list(islice(slices, 10))) == 10
    assert list(regex.search("a+", names)) == [names]


def test_without_patterns_the_library_is_not_loaded() -> None:
    code = "import sys, barnabas.coordinator.regex; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
