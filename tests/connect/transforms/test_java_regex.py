"""Java's regular expressions match in Python what they match in Java."""

import pytest

from barnabas.connect.errors import InvalidConfigError
from barnabas.connect.transforms.java_regex import (
    InvalidReplacementError,
    compile_java,
    replace_first,
)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"a\.b", ["a.b"], ["axb"]),
        (r"[a-z&&[^b]]+", ["acd"], ["abc", "A"]),
        (r"[^a[bc]]", ["d"], ["a", "b", "c"]),
        (r"[a[0-9]&&[^5]]", ["a", "4"], ["5", "b"]),
        (r"\p{Alpha}\p{IsDigit}\P{Upper}", ["a1b"], ["11b", "a1B"]),
        (r"[\p{Lower}_]+", ["a_b"], ["A"]),
        (r"\Qa.*\E\d", ["a.*1"], ["abc1"]),
        (r"(?<first>a|b)-\k<first>", ["a-a", "b-b"], ["a-b"]),
        (r"a*+b", ["aab"], ["aaa"]),
        (r"(?>a|ab)c", ["ac"], ["abc"]),
        (r"(?i)orders", ["ORDERS"], ["order"]),
        (r"\x41\u0042\x{43}\0104", ["ABCD"], []),
        (r"a\hb\z", ["a b", "a\tb"], ["ab"]),
        (r"[]a]+", ["]a"], ["b"]),
        (r"[\Q^]\E]+", ["]^"], ["a"]),
        (r"\w+", ["abc_1"], ["\u00e9"]),
    ],
)
def test_a_pattern_matches_what_it_matches_in_java(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    compiled = compile_java(pattern)
    assert [text for text in matching if not compiled.fullmatch(text)] == []
    assert [text for text in others if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "[", "a\\", r"\p{Greek}", r"\G", r"\k", "*", r"\1("]
)
def test_a_pattern_that_cannot_be_translated_is_an_error(pattern: str) -> None:
    with pytest.raises(InvalidConfigError):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "result"),
    [
        ("(a)(b)", "$2$1", "xaby", "xbay"),
        ("(a)", "$12", "a", "a2"),
        ("(?<n>a)", "<${n}>", "ba", "b<a>"),
        ("a", r"\$\\$0", "a", "$\\a"),
        ("(x)?a", "[$1]", "a", "[]"),
        ("b", "c", "a", "a"),
    ],
)
def test_groups_are_replaced_as_in_java(
    pattern: str, replacement: str, text: str, result: str
) -> None:
    assert replace_first(compile_java(pattern), replacement, text) == result


@pytest.mark.parametrize("replacement", ["$2", "$", "\\", "${n}", "${", "$x"])
def test_a_replacement_that_does_not_fit_is_an_error(replacement: str) -> None:
    with pytest.raises(InvalidReplacementError):
        replace_first(compile_java("(a)"), replacement, "a")
