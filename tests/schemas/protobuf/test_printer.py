"""Printing descriptors: in the layout of Confluent's registry, and without loss."""

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

EVERYTHING = dedent(
    """\
    syntax = "proto3";
    package shop;

    import "confluent/meta.proto";
    import public "google/protobuf/timestamp.proto";

    option java_package = "com.shop";
    option (.confluent.file_meta) = { doc: "say \\"hi\\"" tags: "a" tags: "b" };

    message Order {
      reserved 9;
      reserved 20 to 30;
      reserved 100 to max;
      reserved "old";

      option deprecated = true;

      map<string, .shop.Order.Line> lines = 10;
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
)

PROTO2 = dedent(
    """\
    syntax = "proto2";

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
)

EDITION = dedent(
    """\
    edition = "2023";

    option features = { field_presence: IMPLICIT };

    message A {
      reserved old;

      int32 a = 1;
      repeated int32 b = 2 [features = { repeated_field_encoding: EXPANDED }];
    }
    """
)


@pytest.mark.parametrize("text", [EVERYTHING, PROTO2, EDITION])
def test_printing_a_canonical_text_does_not_change_it(text: str) -> None:
    schema = parse(text, {})
    assert schema.text == text
    assert parse(schema.serialized, {}).text == text


@pytest.mark.parametrize("file", [descriptor_pb2, api_pb2, struct_pb2, any_pb2, wrappers_pb2])
def test_printed_text_compiles_to_the_same_descriptor(file: object) -> None:
    serialized = file.DESCRIPTOR.serialized_pb  # type: ignore[attr-defined]
    schema = parse(b64encode(serialized).decode(), {})
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(serialized)
    descriptor.name = schema.own.name
    for message in descriptor.message_type:
        forget_implied_names(message)
    assert schema.own == descriptor


def forget_implied_names(message: descriptor_pb2.DescriptorProto) -> None:
    """Descriptors of the library have a JSON name for every field; compiled schemas do not."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        forget_implied_names(nested)


def test_messages_keep_their_index_among_map_entries() -> None:
    text = """
        syntax = "proto3";
        message A {
          message First {}
          map<string, First> one = 1;
          string plain = 4;
          message Second { map<int32, int32> inner = 1; }
          map<string, Second> two = 2;
          message Third {}
          int32 last = 3;
        }
    """
    names = ["First", "OneEntry", "Second", "TwoEntry", "Third"]
    schema = parse(text, {})
    for same in (schema, parse(schema.text, {}), parse(schema.serialized, {})):
        assert [one.name for one in same.message_at([0]).nested_types] == names
    assert parse(schema.text, {}).text == schema.text


def test_groups_of_extensions_are_printed_once() -> None:
    text = """
        syntax = "proto2";
        message A { extensions 1 to 9; extend A { optional group In = 1 {} } }
        extend A { optional group Out = 2 {} }
    """
    schema = parse(text, {})
    assert parse(schema.text, {}).text == schema.text


def test_texts_that_differ_in_comments_layout_or_short_names_are_one_schema() -> None:
    short = 'syntax="proto3";package p;message A{/* of it */B b=1;}message B{}// end'
    full = 'syntax = "proto3";\npackage p;\n\nmessage A {\n  .p.B b = 1;\n}\nmessage B {}\n'
    assert parse(short, {}).text == full


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
