"""A schema of .proto text or a descriptor in base64: its references, descriptors and messages."""

import base64
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas import SchemaError, SchemaType, parse
from barnabas.schemas.framing import message_indexes
from barnabas.schemas.protobuf import ProtobufSchema
from barnabas.schemas.protobuf import parse as parse_protobuf

ORDER = """
syntax = "proto3";
package shop;
import "shop/money.proto";
message Order { Money total = 1; message Line { string sku = 1; message Part {} } }
message Other {}
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'


def test_a_schema_is_named_after_its_first_message() -> None:
    assert parse(SchemaType.PROTOBUF, ORDER, {"shop/money.proto": MONEY}).name == "shop.Order"
    assert parse_protobuf('syntax = "proto3";', {}).name is None


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_an_error(text: str) -> None:
    with pytest.raises(SchemaError, match="empty"):
        parse_protobuf(text, {})


def test_a_schema_that_is_too_large_is_rejected() -> None:
    with pytest.raises(SchemaError, match="larger than"):
        parse_protobuf("//" + "x" * 9_000_000, {})


def test_too_many_references_are_rejected() -> None:
    with pytest.raises(SchemaError, match="more than 1000 references"):
        parse_protobuf('syntax = "proto3";', {f"f{i}.proto": MONEY for i in range(1001)})


def test_an_error_in_a_reference_names_it() -> None:
    with pytest.raises(SchemaError, match=r"^shop/money\.proto: line 2, column 1: "):
        parse_protobuf(ORDER, {"shop/money.proto": 'syntax = "proto3";\nmessag Money {}'})


# Names that are not defined


def test_an_undefined_type_has_its_position_and_names_the_missing_references() -> None:
    text = 'syntax = "proto3";\nmessage A {\n  map<string, Money> money = 1;\n}'
    with pytest.raises(SchemaError, match=r'^line 3, column 15: "Money" is not defined\.$'):
        require_resolved(parse_protobuf(text, {}))
    with pytest.raises(SchemaError, match=r"have no reference: shop/money\.proto\.$"):
        require_resolved(parse_protobuf(ORDER, {}))
    with pytest.raises(SchemaError, match=r'^line 5, column 17: "Money" is not defined'):
        _ = parse_protobuf(ORDER, {}).descriptor


@pytest.mark.parametrize(
    "text",
    [
        'import "validate/validate.proto"; message A { int32 a = 1; }',
        'import "v.proto"; message A { int32 a = 1 [(validate.rules).int32.gt = 0]; }',
        "option (unknown) = { a: 1 }; option also_unknown = 2; message A {}",
        'import "../secret.proto"; import "/etc/hosts"; import "a\\\\b"; message A {}',
    ],
)
def test_imports_and_options_that_lead_nowhere_are_kept(text: str) -> None:
    schema = parse_protobuf(f'syntax = "proto3"; {text}', {})
    schema.require_resolved(strict=True)
    assert schema.message("A").name == "A"
    assert parse_protobuf(schema.text, {}).text == schema.text
    for written in text.split():
        if written.startswith('"'):
            assert f"import {written}" in schema.text


def test_a_reference_need_not_be_named_as_the_import() -> None:
    schema = parse_protobuf(ORDER, {"money-v1": MONEY})
    require_resolved(schema)
    assert schema.message("Order").fields_by_name["total"].message_type.full_name == "shop.Money"


def test_references_are_visible_through_imports_that_are_not_public() -> None:
    references = {
        "c.proto": 'syntax = "proto3"; package c; message C { int32 x = 1; }',
        "b.proto": 'syntax = "proto3"; import "c.proto"; message B { c.C c = 1; }',
    }
    text = 'syntax = "proto3"; import "b.proto"; message A { B b = 1; c.C c = 2; }'
    fields = parse_protobuf(text, references).message("A").fields_by_name
    nested = fields["b"].message_type.fields_by_name["c"]
    assert nested.message_type is fields["c"].message_type


def test_a_reference_with_an_undefined_type_is_named_if_descriptors_need_it() -> None:
    references = {"b.proto": 'syntax = "proto3"; message B { Undefined u = 1; }'}
    schema = parse_protobuf('syntax = "proto3"; message A { B b = 1; }', references)
    require_resolved(schema)
    with pytest.raises(SchemaError, match=r'^b\.proto: "Undefined" is not defined\.$'):
        schema.require_resolved(strict=True)


def test_references_may_import_each_other_as_long_as_nothing_needs_descriptors() -> None:
    references = {
        "a.proto": 'syntax = "proto3"; import "b.proto"; message A {}',
        "b.proto": 'syntax = "proto3"; import "a.proto"; message B {}',
    }
    schema = parse_protobuf('syntax = "proto3"; message C { A a = 1; }', references)
    require_resolved(schema)
    with pytest.raises(SchemaError, match="not valid"):
        schema.require_resolved(strict=True)


@pytest.mark.parametrize(
    "fields",
    [
        "int32 a = 1; int32 b = 1;",
        "int32 a = 1; int32 a = 2;",
        "int32 a = 1 [deprecated = maybe];",
        "int32 a = 0;",
        "enum E {}",
    ],
)
def test_only_strict_validation_rejects_what_makes_no_descriptor(fields: str) -> None:
    schema = parse_protobuf(f'syntax = "proto3"; message A {{ {fields} }}', {})
    schema.require_resolved(strict=False)
    with pytest.raises(SchemaError):
        schema.require_resolved(strict=True)


def test_bundled_files_need_no_reference() -> None:
    schema = parse_protobuf(
        """
        syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        import "confluent/types/decimal.proto";
        import "confluent/type/variant.proto";
        import "google/type/money.proto";
        message A {
          google.protobuf.Timestamp at = 1 [(confluent.field_meta).doc = "when"];
          confluent.type.Decimal price = 2;
          google.type.Money paid = 3;
          confluent.type.Variant any = 4;
        }
        """,
        {},
    )
    assert [field.name for field in schema.message("A").fields] == ["at", "price", "paid", "any"]
    again = parse_protobuf(schema.serialized, {}).text
    assert '[(confluent.field_meta) = {\n    doc: "when"\n  }]' in again


def test_a_reference_does_not_replace_googles_types() -> None:
    schema = parse_protobuf(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
        "message A { google.protobuf.Timestamp at = 1; }",
        {"google/protobuf/timestamp.proto": 'syntax = "proto3";'},
    )
    assert schema.message("google.protobuf.Timestamp").fields_by_name["nanos"].number == 2


# Descriptors in base64


def test_a_descriptor_in_base64_is_a_schema() -> None:
    references = {"shop/money.proto": MONEY}
    schema = parse_protobuf(ORDER, references)
    again = parse_protobuf(schema.serialized, references)
    assert again.normalized == schema.normalized
    assert again.serialized == schema.serialized
    descriptor = FileDescriptorProto.FromString(base64.b64decode(schema.serialized))
    assert (descriptor.name, descriptor.package) == ("default", "shop")


def test_a_chain_of_imports_may_be_descriptors_or_texts() -> None:
    """confluent_kafka sends descriptors. A registry stores them as text."""
    texts = {
        "c.proto": 'syntax = "proto3"; package c; message C { int32 x = 1; }',
        "b.proto": 'syntax = "proto3"; package b; import "c.proto"; message B { c.C c = 1; }',
        "a.proto": 'syntax = "proto3"; package a; import "b.proto"; message A { b.B b = 1; }',
    }
    sent: dict[str, str] = {}
    stored: dict[str, str] = {}
    for name, text in texts.items():
        sent[name] = parse_protobuf(text, stored).serialized
        stored[name] = parse_protobuf(sent[name], stored).text
    *others, _ = texts
    for references in (sent, stored):
        available = {name: references[name] for name in others}
        schema = parse_protobuf(sent["a.proto"], available)
        require_resolved(schema)
        assert schema.text == stored["a.proto"]
        assert "  .b.B b = 1;" in schema.text


@pytest.mark.parametrize(
    "broken",
    [
        {"message_type": [{"name": "A", "field": [{"name": "x", "number": 1, "type": 11}]}]},
        {"message_type": [{"name": "A B {} message C"}]},
        {"message_type": [{"name": "A"}, {"name": "A"}]},
        {"message_type": [{"name": "A", "field": [{"name": "x", "number": 1, "type": 10}]}]},
        {"message_type": [{"name": "A", "field": [{"name": "x", "number": 1, "oneof_index": 3}]}]},
        {"package": "a; message B {}"},
    ],
)
def test_an_invalid_descriptor_is_an_error(broken: dict[str, Any]) -> None:
    descriptor = FileDescriptorProto(name="a.proto", syntax="proto3", **broken)
    with pytest.raises(SchemaError):
        parse_protobuf(base64.b64encode(descriptor.SerializeToString()).decode(), {})


def test_names_of_imports_in_descriptors_are_quoted() -> None:
    descriptor = FileDescriptorProto(name="a.proto", dependency=['a"; message B {}'])
    schema = parse_protobuf(base64.b64encode(descriptor.SerializeToString()).decode(), {})
    assert schema.text == '\nimport "a\\"; message B {}";\n'


def test_the_descriptor_of_a_compiled_class_is_a_schema() -> None:
    sent = base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    assert parse_protobuf(sent, {}).name == "google.protobuf.Timestamp"


# Messages


@pytest.mark.parametrize(
    ("indexes", "name"),
    [
        ([], "shop.Order"),
        ([0], "shop.Order"),
        ([1], "shop.Other"),
        ([0, 0, 0], "shop.Order.Line.Part"),
    ],
)
def test_an_index_path_selects_a_message(indexes: list[int], name: str) -> None:
    selected = order().message_at(indexes)
    assert selected.full_name == name
    assert message_indexes(selected) == tuple(indexes or [0])


@pytest.mark.parametrize("indexes", [[2], [0, 1], [-1], [0, -1]])
def test_an_index_path_without_a_message_is_an_error(indexes: list[int]) -> None:
    with pytest.raises(SchemaError, match="no message at"):
        order().message_at(indexes)


def test_a_message_is_found_by_either_name() -> None:
    assert order().message("Order.Line").full_name == "shop.Order.Line"
    assert order().message("shop.Money").full_name == "shop.Money"
    with pytest.raises(SchemaError, match=r"'Ordr'.*there are: Order, Other"):
        order().message("Ordr")


def test_indexes_count_the_types_of_maps_as_the_registered_schema_does() -> None:
    """In text, they come after the messages. A descriptor has them where the compiler put them."""
    text = 'syntax = "proto3"; message A { map<int32, B> m = 1; message B {} message C {} }'
    schema = parse_protobuf(text, {})
    assert nested_names(schema) == nested_names(parse_protobuf(schema.text, {}))
    assert nested_names(schema) == ["B", "C", "MEntry"]
    descriptor = FileDescriptorProto.FromString(base64.b64decode(schema.serialized))
    descriptor.message_type[0].nested_type.sort(key=lambda nested: nested.name != "MEntry")
    sent = parse_protobuf(base64.b64encode(descriptor.SerializeToString()).decode(), {})
    assert nested_names(sent) == nested_names(parse_protobuf(sent.text, {}))
    assert nested_names(sent) == ["MEntry", "B", "C"]


def test_an_enum_that_was_normalized_keeps_its_default() -> None:
    text = 'syntax = "proto3"; message A { E e = 1; } enum E { ZERO = 0; BELOW = -1; }'
    schema = parse_protobuf(parse_protobuf(text, {}).normalized, {})
    assert "  BELOW = -1;\n  ZERO = 0;\n" in schema.text
    assert schema.message("A").fields_by_name["e"].default_value == 0


def nested_names(schema: ProtobufSchema) -> list[str]:
    return [message.name for message in schema.message_at([0]).nested_types]


def require_resolved(schema: ProtobufSchema) -> None:
    schema.require_resolved(strict=False)


def order() -> ProtobufSchema:
    return parse_protobuf(ORDER, {"shop/money.proto": MONEY})
