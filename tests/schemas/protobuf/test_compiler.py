"""Parsing .proto text or a descriptor in base64, with imports."""

import base64
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas import SchemaError, SchemaType, parse
from barnabas.schemas.framing import message_indexes
from barnabas.schemas.protobuf import ProtobufSchema, protoc
from barnabas.schemas.protobuf import parse as parse_protobuf

ORDER = """
syntax = "proto3";
package shop;
import "shop/money.proto";
message Order { Money total = 1; message Line { string sku = 1; message Part {} } }
message Other {}
"""
ENTRY = {"map_entry": True}
MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'


def test_a_schema_is_named_after_its_first_message() -> None:
    assert parse(SchemaType.PROTOBUF, ORDER, {"shop/money.proto": MONEY}).name == "shop.Order"
    assert parse_protobuf('syntax = "proto3";', {}).name is None


def test_an_error_has_its_line_and_column(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SchemaError, match=r'^line 3, column 3: "Money" is not defined'):
        parse_protobuf('syntax = "proto3";\nmessage A {\n  Money money = 1;\n}', {})
    with pytest.raises(SchemaError, match=r"^line 1, column 9: Expected message name"):
        parse_protobuf("message {", {})
    assert capfd.readouterr() == ("", "")


def test_an_error_in_a_reference_names_it() -> None:
    with pytest.raises(SchemaError, match=r"shop/money\.proto: line 2, column 1: "):
        parse_protobuf(ORDER, {"shop/money.proto": 'syntax = "proto3";\nmessag Money {}'})


def test_a_text_without_syntax_is_proto2_and_prints_no_warning(
    capfd: pytest.CaptureFixture[str],
) -> None:
    schema = parse_protobuf("/* syntax */ // and so on\nmessage A { required int32 a = 1; }", {})
    assert schema.text.startswith('syntax = "proto2";\n')
    assert capfd.readouterr() == ("", "")


def test_a_compiler_process_that_died_is_replaced() -> None:
    order()
    process = protoc._process._process
    assert process is not None
    process.kill()
    process.wait()
    assert order().name == "shop.Order"


def test_a_missing_import_is_named() -> None:
    with pytest.raises(SchemaError, match=r"shop/money\.proto"):
        parse_protobuf(ORDER, {})


@pytest.mark.parametrize("name", ["../secret.proto", "/etc/hosts", "a/../../secret.proto", "a\\b"])
def test_imports_cannot_read_other_files(name: str) -> None:
    quoted = name.replace("\\", "\\\\")
    with pytest.raises(SchemaError, match="was not found or had errors"):
        parse_protobuf(f'syntax = "proto3"; import "{quoted}";', {})


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a//b", "a/./b", "", ".", "a\0b", "a\nb", "x" * 999]
)
def test_references_do_not_leave_the_directory(name: str) -> None:
    with pytest.raises(SchemaError, match="cannot be named"):
        parse_protobuf('syntax = "proto3";', {name: MONEY})


def test_a_schema_that_is_too_large_is_rejected() -> None:
    with pytest.raises(SchemaError, match="larger than"):
        parse_protobuf("//" + "x" * 9_000_000, {})


@pytest.mark.parametrize("value", ["{ r ", "{ r: <r: ", "{ r: [{ r: [", "/*\n{*/ { r '{' "])
def test_values_nested_too_deep_for_the_compilers_stack_are_rejected(value: str) -> None:
    text = f"""
        syntax = "proto3";
        import "google/protobuf/descriptor.proto";
        message R {{ repeated R r = 1; }}
        extend google.protobuf.FileOptions {{ R x = 50000; }}
        option (x) = {value * 50000};
    """
    with pytest.raises(SchemaError, match=r"line \d+: braces are nested too deep"):
        parse_protobuf(text, {})


def test_too_many_references_are_rejected() -> None:
    with pytest.raises(SchemaError, match="more than 1000 references"):
        parse_protobuf('syntax = "proto3";', {f"f{i}.proto": MONEY for i in range(1001)})


def test_bundled_files_need_no_reference() -> None:
    schema = parse_protobuf(
        """
        syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        import "google/type/money.proto";
        message A {
          google.protobuf.Timestamp at = 1 [(confluent.field_meta).doc = "when"];
          confluent.type.Decimal price = 2;
          google.type.Money paid = 3;
        }
        """,
        {},
    )
    assert '[(.confluent.field_meta) = { doc: "when" }]' in schema.text


def test_a_reference_does_not_replace_googles_types() -> None:
    schema = parse_protobuf(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
        "message A { google.protobuf.Timestamp at = 1; }",
        {"google/protobuf/timestamp.proto": 'syntax = "proto3";'},
    )
    assert schema.message("google.protobuf.Timestamp").fields_by_name["nanos"].number == 2


def test_a_descriptor_in_base64_is_the_same_schema() -> None:
    references = {"shop/money.proto": MONEY}
    schema = parse_protobuf(ORDER, references)
    again = parse_protobuf(schema.serialized, references)
    assert again.text == schema.text
    assert again.serialized == schema.serialized
    descriptor = FileDescriptorProto.FromString(base64.b64decode(schema.serialized))
    assert descriptor.package == "shop"


def test_references_may_be_descriptors_in_base64() -> None:
    money = parse_protobuf(MONEY, {}).serialized
    text = parse_protobuf(ORDER, {"shop/money.proto": MONEY}).text
    assert parse_protobuf(ORDER, {"shop/money.proto": money}).text == text


def test_references_that_import_each_other_are_an_error() -> None:
    looped = FileDescriptorProto(name="a.proto", dependency=["a.proto"], syntax="proto3")
    serialized = base64.b64encode(looped.SerializeToString()).decode()
    with pytest.raises(SchemaError, match="imports itself"):
        parse_protobuf('syntax = "proto3"; import "a.proto";', {"a.proto": serialized})


@pytest.mark.parametrize(
    "broken",
    [
        {"message_type": [{"name": "A", "field": [{"name": "x", "number": 1, "type": 11}]}]},
        {"message_type": [{"name": "A", "nested_type": [{"name": "E", "options": ENTRY}]}]},
        {"message_type": [{"name": "A B {} message C"}]},
        {"message_type": [{"name": "A"}, {"name": "A"}]},
        {"public_dependency": [4]},
        {"dependency": ["../secret.proto"]},
        {"dependency": ['a"; message B {}']},
    ],
)
def test_an_invalid_descriptor_is_an_error(broken: dict[str, Any]) -> None:
    descriptor = FileDescriptorProto(name="a.proto", syntax="proto3", **broken)
    with pytest.raises(SchemaError):
        parse_protobuf(base64.b64encode(descriptor.SerializeToString()).decode(), {})


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_an_error(text: str) -> None:
    with pytest.raises(SchemaError, match="empty"):
        parse_protobuf(text, {})


def test_the_descriptor_of_a_compiled_class_is_a_schema() -> None:
    sent = base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    assert parse_protobuf(sent, {}).name == "google.protobuf.Timestamp"


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


def order() -> ProtobufSchema:
    return parse_protobuf(ORDER, {"shop/money.proto": MONEY})
