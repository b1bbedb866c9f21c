"""Parsing .proto text: errors have positions, and hostile texts are rejected."""

import pytest

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.parser import parse_text
from barnabas.schemas.protobuf.syntax import OptionWord, ProtoOption


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message {", 'line 1, column 9: Expected the name of a message, not "{".'),
        (
            'syntax = "proto3";\nmessage A {\n  int32 a = one;\n}',
            'line 3, column 13: Expected the number of a field, not "one".',
        ),
        ("message A {", "line 1, column 12: Expected the type of a field, and the text ends here."),
        ("message A { int32 a = 1; }", "line 1, column 13: The field a of proto2 needs a label:"),
        ('syntax = "proto4";', 'line 1, column 10: The syntax "proto4" is not proto2 or proto3.'),
        ('import "a\n";', "line 1, column 8: The string has no end on its line."),
        ("/* a */ /* b", "line 1, column 9: The comment has no end."),
        ("message A {} §", "line 1, column 14: '§' has no meaning in .proto text."),
        ("enum E { A = 99999999999; }", "line 1, column 14: 99999999999 is not the number of"),
        ("message A { reserved 5 to 4; }", "line 1, column 27: 4 is not a number or max."),
        ('syntax = "proto3"; message A { required int32 a = 1; }', "cannot be required"),
        ('syntax = "proto3"; message A { repeated map<int32, A> a = 1; }', "map cannot be"),
        ("message A {}\nenum A {}", "line 2, column 1: A is defined twice."),
        ("message A { message B {} enum B { X = 0; } }", "column 26: B is defined twice."),
        ("message A { enum B { X = 0; } optional group B = 1 {} }", "B is defined twice."),
        ("message A { oneof o { group B = 1 {} } message B {} }", "B is defined twice."),
        ("message A { extend A { optional group B = 1 {} } message B {} }", "B is defined twice."),
        ("extend A { optional group A = 1 {} } message A {}", "A is defined twice."),
        (f"enum E {{ A = {'9' * 5000}; }}", f"column 14: {'9' * 40} is not the number of"),
        ('syntax = "\\377";', "column 10: The string is not UTF-8."),
        ('import "\\377";', "column 8: The string is not UTF-8."),
        ("messag A {}", "Expected a declaration such as message, enum or import"),
        ("import public;", "Expected the imported file in quotes"),
        ("option (a.b = 1;", 'Expected ")", not "="'),
    ],
)
def test_an_error_has_its_line_and_column(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        parse_text(text)
    assert str(raised.value).startswith("line ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (r'"a\"b\'c\\d"', "a\"b'c\\d"),
        (r'"\a\b\f\n\r\t\v\?\q"', "\a\b\f\n\r\t\v?q"),
        (r'"\303\244\xc3\xa4ä\u00e4\U000000e4"', "äääää"),
        ("'one' \"two\"\n'three'", "onetwothree"),
        (r'"\377"', "\udcff"),
    ],
)
def test_strings_are_unescaped_and_joined(written: str, content: str) -> None:
    (option,) = parse_text(f"option x = {written};").options
    assert option.value == content


def test_options_keep_what_was_written() -> None:
    (option,) = parse_text(
        """
        option (a.b).c.(.d) = {
          text: "t" number: -1.5e3, word: FOO; flag: true
          inner { x: 1 } inner < x: 2 > [an.extension]: 0x1F
          [type.googleapis.com/a.B] { }
          many: [1, "two", { three: 3 }] many: 4
        };
        """
    ).options

    def number(text: str) -> OptionWord:
        return OptionWord(text, is_number=True)

    assert (option.name, option.is_custom) == ("a.b", True)
    assert isinstance(option.value, ProtoOption)
    assert option.value.name == "c"
    assert option.value.value == ProtoOption(
        ".d",
        {
            "text": "t",
            "number": number("-1.5e3"),
            "word": OptionWord("FOO"),
            "flag": OptionWord("true"),
            "inner": [{"x": number("1")}, {"x": number("2")}],
            "[an.extension]": number("0x1F"),
            "[type.googleapis.com/a.B]": {},
            "many": [number("1"), "two", {"three": number("3")}, number("4")],
        },
        is_custom=True,
    )


def test_keywords_are_names_where_a_name_is_expected() -> None:
    file = parse_text(
        """
        syntax = "proto3"; ; package message.option;
        message message { message message = 1; ; optional option optional = 2; map map = 3; }
        message option {} message map {} enum enum { reserved = 0; option = 1; }
        service service { rpc rpc (stream) returns (stream stream); } message stream {}
        """.replace("reserved = 0", "returns = 0")
        .replace("option = 1", "to = 1")
        .replace("message message = 1", ".message.option.message message = 1")
    )
    assert [one.name for one in file.messages[0].fields] == ["message", "optional", "map"]
    assert file.services[0].rpcs[0].response_streams
    assert not file.services[0].rpcs[0].request_streams


@pytest.mark.parametrize("value", ["{ r ", "{ r: <r: ", "{ r: [{ r: [", "/*\n{*/ { r "])
def test_values_that_nest_too_deep_are_rejected(value: str) -> None:
    with pytest.raises(SchemaError, match=r"line \d+, column \d+: braces are nested too deep"):
        parse_text(f"option (x) = {value * 50000};")


def test_messages_that_nest_too_deep_are_rejected() -> None:
    with pytest.raises(SchemaError, match="braces are nested too deep"):
        parse_text("message A {" * 50_000)
    for text in (f"package a{'.a' * 50_000};", f"option (x){'.a' * 50_000} = 1;"):
        with pytest.raises(SchemaError, match="more than 100 parts"):
            parse_text(text)


def test_a_text_with_too_many_declarations_is_rejected() -> None:
    with pytest.raises(SchemaError, match="more than 50000 steps"):
        parse_text("".join(f"message M{i} {{}}" for i in range(50_001)))
    with pytest.raises(SchemaError, match="more than 50000 steps"):
        parse_text(f"option x = [{'1,' * 50_001}1];")


def test_names_may_be_used_again_in_other_scopes() -> None:
    file = parse_text("message A { message A { enum A { X = 0; } } } message B { message A {} }")
    assert [message.name for message in file.messages] == ["A", "B"]


@pytest.mark.parametrize("text", [";" * 500_001, "option a = " + '""' * 500_001])
def test_a_text_with_too_many_tokens_is_rejected(text: str) -> None:
    with pytest.raises(SchemaError, match="more than 500000 tokens"):
        parse_text(text)
