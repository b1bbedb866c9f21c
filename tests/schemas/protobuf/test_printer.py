"""Printing files as Confluent's registry does, as they were written or normalized."""

from base64 import b64encode
from textwrap import dedent

import pytest
from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    struct_pb2,
    wrappers_pb2,
)

from barnabas.schemas.protobuf import parse
from barnabas.schemas.protobuf.option_normalization import format_number

EVERYTHING = dedent(
    """\
    syntax = "proto3";
    package shop;

    import "confluent/meta.proto";
    import public "google/protobuf/timestamp.proto";

    option java_package = "com.shop";
    option (confluent.file_meta) = {
      doc: "say \\"hi\\", it\\'s",
      tags: [
        "a",
        "b"
      ]
    };

    message Order {
      reserved 9;
      reserved 20 to 30;
      reserved 100 to max;
      reserved "old";

      option deprecated = true;

      repeated .shop.Order.LinesEntry lines = 10;
      string order_id = 1;
      string note = 2 [
        deprecated = true,
        json_name = "remark"
      ];
      .google.protobuf.Timestamp at = 3;
      optional int32 priority = 5;
      repeated .shop.Order.State states = 8 [packed = false];

      oneof payment {
        int32 card = 6;
        .shop.Order.Line voucher = 7;
      }

      message Line {
        .shop.Order of = 1;
    <>
        oneof one {
          int32 x = 2;
        }
      }
      message LinesEntry {
        option map_entry = true;
    <>
        string key = 1;
        .shop.Order.Line value = 2;
      }
      enum State {
        NEW = 0;
        PAID = 1 [deprecated = true];
      }
    }
    message Empty {}
    enum Currency {
      reserved 4 to max;
      reserved "DM";
      option allow_alias = true;
      EUR = 0;
      EURO = 0;
      USD = -1;
    }

    service Orders {
      rpc Place (.shop.Order) returns (stream .shop.Order) {
        option deprecated = true;
      };
      rpc Cancel (stream .shop.Order) returns (.shop.Empty);
    }
    """
).replace("<>", "  ")

PROTO2 = dedent(
    """\

    message Old {
      required int32 id = 1 [default = -4];
      optional string name = 2 [default = "a\\"\\\\b"];
      optional bytes raw = 3 [default = "\\001\\"x"];
      optional double ratio = 4 [default = -inf];
      repeated int32 numbers = 5 [packed = true];

      oneof one {
        group Chosen = 8 {
          optional int32 x = 1;
        }
      }

      repeated group Entry = 6 {
        optional string key = 1;
    <>
        message Deep {}
      }

      extensions 100 to 199;
      extensions 1000 to max;

      extend .Old {
        optional int32 inside = 101;
      }
    }

    extend .Old {
      optional string outside = 100;
    }
    """
).replace("<>", "  ")

EDITION = dedent(
    """\
    edition = "2023";

    option features = {
      field_presence: IMPLICIT
    };

    message A {
      reserved old;

      int32 a = 1;
      repeated int32 b = 2 [features = {
        repeated_field_encoding: EXPANDED
      }];
    }
    """
)


@pytest.mark.parametrize("text", [EVERYTHING, PROTO2, EDITION])
def test_printing_a_canonical_text_does_not_change_it(text: str) -> None:
    schema = parse(text, {})
    assert schema.text == text
    assert parse(schema.serialized, {}).text == text


@pytest.mark.parametrize("file", [descriptor_pb2, api_pb2, struct_pb2, any_pb2, wrappers_pb2])
def test_printed_text_makes_the_same_descriptor(file: object) -> None:
    serialized = file.DESCRIPTOR.serialized_pb  # type: ignore[attr-defined]
    schema = parse(b64encode(serialized).decode(), {})
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(serialized)
    descriptor.name = "default"
    assert parse(schema.text, {}).linked.own == descriptor


def test_groups_of_extensions_are_printed_once() -> None:
    text = """
        syntax = "proto2";
        message A { extensions 1 to 9; extend A { optional group In = 1 {} } }
        extend A { optional group Out = 2 {} }
    """
    schema = parse(text, {})
    assert parse(schema.text, {}).text == schema.text
    assert parse(schema.serialized, {}).normalized == schema.normalized
    assert schema.text.count("group") == 2


def test_texts_that_differ_in_comments_or_layout_are_one_schema() -> None:
    one = 'syntax="proto3";package p;message A{/* of it */B b=1;}message B{}// end'
    text = 'syntax = "proto3";\npackage p;\n\nmessage A {\n  B b = 1;\n}\nmessage B {}\n'
    assert parse(one, {}).text == text
    assert parse(text, {}).text == text


def test_a_text_keeps_its_names_syntax_and_options_as_they_were_written() -> None:
    text = dedent(
        """\

        import "validate/validate.proto";

        message A {
          reserved 2, 4 to 6, 8 to 8;
          reserved "x", "y";

          optional p.B b = 1 [
            (validate.rules).message.required = true,
            (meta).tags = [
              "a",
              "b"
            ],
            (meta).doc = "d"
          ];
          map<string, p.B> more = 3;
        }
        """
    )
    assert parse(text, {}).text == text


def test_normalization_names_types_and_extensions_in_full_and_merges_options() -> None:
    text = """
        syntax = "proto2"; package p;
        import "google/protobuf/descriptor.proto";
        message Meta { optional string doc = 1; repeated string tags = 2; optional Meta in = 3; }
        extend google.protobuf.FieldOptions { optional Meta meta = 50000; }
        message A {
          optional B b = 2 [(meta).tags = "y", (other) = 0x10, default = 1.50, (meta).tags = "x"];
          map<string, B> more = 1 [(meta).in.doc = "d", (.p.meta) = { in { tags: [] tags: "t" } }];
          message B {}
          enum E { TWO = 2; ONE = 1; }
        }
    """
    normal = parse(text, {}).normalized
    assert normal.startswith("package p;\n")
    assert normal[normal.index("message A") :] == dedent(
        """\
        message A {
          map<string, .p.A.B> more = 1 [(p.meta) = {
            in: {
              doc: "d",
              tags: "t"
            }
          }];
          optional .p.A.B b = 2 [
            default = 1.5,
            (other) = 16,
            (p.meta) = {
              tags: [
                "y",
                "x"
              ]
            }
          ];

          message B {}
          enum E {
            ONE = 1;
            TWO = 2;
          }
        }

        extend .google.protobuf.FieldOptions {
          optional .p.Meta meta = 50000;
        }
        """
    )


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("010", "8"),
        ("0x1F", "31"),
        ("-7", "-7"),
        ("1.50", "1.5"),
        ("1.0f", "1"),
        ("2.0005", "2"),
        ("2.0015", "2.002"),
        ("1e3", "1000"),
        ("-inf", "-inf"),
        ("1e999999999", "1e999999999"),
        ("09", "09"),
    ],
)
def test_normalization_formats_numbers_as_java_does(written: str, normal: str) -> None:
    assert format_number(written) == normal


def test_a_map_is_normalized_alike_in_text_and_in_a_descriptor() -> None:
    text = 'syntax = "proto3"; package p; message A { map<int32, B> b = 1; message B {} }'
    schema = parse(text, {})
    described = parse(schema.serialized, {})
    assert "repeated .p.A.BEntry b = 1;" in described.text
    assert "map<int32, .p.A.B> b = 1;" in schema.normalized
    assert described.normalized == schema.normalized


def test_normalization_sorts_parts_whose_order_has_no_meaning() -> None:
    one = """
        syntax = "proto3"; import "google/protobuf/wrappers.proto";
        import "google/protobuf/timestamp.proto"; option java_package = "p";
        option go_package = "g";
        message A {
          reserved 30; reserved 20; reserved "z"; reserved "y";
          oneof second { int32 e = 5; int32 d = 4; } oneof first { int32 c = 3; }
          string b = 2 [json_name = "x", deprecated = true]; string a = 1;
        }
        enum E { ZERO = 0; TWO = 2; ONE = 1; }
    """
    other = """
        syntax = "proto3"; import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto"; option go_package = "g";
        option java_package = "p";
        message A {
          reserved "y", "z"; reserved 20, 30;
          string a = 1; string b = 2 [deprecated = true, json_name = "x"];
          oneof first { int32 c = 3; } oneof second { int32 d = 4; int32 e = 5; }
        }
        enum E { ZERO = 0; ONE = 1; TWO = 2; }
    """
    normal = parse(one, {}).normalized
    assert parse(one, {}).text != parse(other, {}).text
    assert normal == parse(other, {}).normalized
    assert parse(normal, {}).normalized == normal


def test_normalization_keeps_the_order_of_messages() -> None:
    text = 'syntax = "proto3"; message B {} message A { message D {} message C {} }'
    normal = parse(parse(text, {}).normalized, {})
    assert normal.message_at([0]).name == "B"
    assert normal.message_at([1, 0]).name == "D"


def test_reserved_names_of_an_edition_are_bare_if_they_are_names() -> None:
    text = parse(r'edition = "2023"; message A { reserved good, "foo bar", "\377", ""; }', {}).text
    assert r'reserved good, "foo bar", "\377", "";' in text
    assert parse(text, {}).text == text
