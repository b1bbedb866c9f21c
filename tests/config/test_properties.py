"""A .properties file is read as by java.util.Properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a\t=  1  ", {"a": "1  "}),
        ("a", {"a": ""}),
        ("a==1", {"a": "=1"}),
        ("a : = 1", {"a": "= 1"}),
        ("a=1\nb=2\r\nc=3\rd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# a=1\n  ! b=2\n\nc=3", {"c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u4e2d", {"a": "é中"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\\", {"a": "1"}),
        ("a=x\u2028y\x0bz", {"a": "x\u2028y\x0bz"}),
        ("", {}),
    ],
)
def test_a_file_is_read_as_by_java(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "\\uzzzz=1"])
def test_a_malformed_escape_raises_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)


words = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(words.filter(bool), words))
def test_escaped_pairs_are_read_back(pairs: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs.items())
    assert parse_properties(text) == pairs


def escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
