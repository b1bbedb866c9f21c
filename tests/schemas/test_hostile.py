"""Any input is parsed or rejected with a SchemaError."""

import base64
import json
from contextlib import suppress

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.schemas import SchemaError, SchemaType, parse
from barnabas.schemas.bounds import MAX_STEPS

AVRO_KEYS = (
    "type name namespace fields items values symbols size default order aliases doc logicalType"
    " precision scale"
)
AVRO_WORDS = "record enum fixed array map int string null A A.B decimal date descending"
JSON_KEYS = (
    "type properties items $ref $id $schema $defs definitions required enum const anyOf oneOf allOf"
    " not maximum minLength pattern additionalProperties patternProperties dependencies if then"
    " prefixItems unevaluatedProperties $dynamicRef $anchor multipleOf uniqueItems format"
)
JSON_WORDS = (
    "object array string # #/definitions/a #/$defs/a a http://a/b http://[ ^( % #%zz #a"
    " https://json-schema.org/draft/2020-12/schema http://json-schema.org/draft-04/schema#"
)


def documents(keys: str, words: str) -> st.SearchStrategy:
    texts = st.sampled_from(words.split())
    scalars = st.one_of(texts, texts, st.none(), st.booleans(), st.integers(-2, 5), st.floats())
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.sampled_from([*keys.split(), "a"]), inner, max_size=5),
        ),
        max_leaves=25,
    )


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_any_json_document_is_parsed_or_rejected(kind: SchemaType) -> None:
    keys, words = (AVRO_KEYS, AVRO_WORDS) if kind is SchemaType.AVRO else (JSON_KEYS, JSON_WORDS)

    @settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
    @given(documents(keys, words), documents(keys, words))
    def check(document: object, referenced: object) -> None:
        with suppress(SchemaError):
            schema = parse(kind, json.dumps(document), {"a": json.dumps(referenced)})
            assert parse(kind, schema.text, {"a": json.dumps(referenced)}).text == schema.text
            schema.find_incompatibilities(schema)

    check()


PROTO_WORDS = (
    "syntax edition = ; { } [ ] ( ) < > , . : - / message enum oneof group map option extend"
    " extensions reserved service rpc returns stream import public weak package repeated optional"
    ' required to max int32 string bytes A B .A A.B a b _ 0 1 2 0x1F 1.5 \'x\' "proto2" "proto3"'
    ' "2023" default json_name deprecated map_entry features key value // /* */'
)
PROTO_PIECES = (
    'syntax = "proto3";',
    'syntax = "proto2";',
    "message A {",
    "message B {",
    "enum E {",
    "oneof o {",
    "extend A {",
    "service S {",
    "}",
    "int32 a = 1;",
    "optional A b = 2 [default = 1, (A.x).y = { z: [1] }];",
    "repeated E e = 3;",
    "map<int32, B> m = 4;",
    "optional group G = 5 {",
    "ZERO = 0;",
    "reserved 7, 9 to max, 'old';",
    "extensions 100 to max;",
    "option map_entry = true;",
    "option features.field_presence = IMPLICIT;",
    "rpc R (A) returns (stream B) { option deprecated = true; }",
    'import "a";',
    "string key = 1;",
    "A value = 2;",
)


@settings(deadline=None, max_examples=400)
@given(
    st.one_of(
        st.lists(st.sampled_from(PROTO_WORDS.split()), max_size=40).map(" ".join),
        st.lists(st.sampled_from(PROTO_PIECES), max_size=25).map(" ".join),
    )
)
def test_any_proto_text_is_parsed_or_rejected(text: str) -> None:
    references = {"a": 'syntax = "proto3"; package p; message B { A a = 1; } message A {}'}
    with suppress(SchemaError):
        schema = parse(SchemaType.PROTOBUF, text, references)
        assert parse(SchemaType.PROTOBUF, schema.text, references).text == schema.text
        schema.find_incompatibilities(schema)
        normal = parse(SchemaType.PROTOBUF, schema.normalized, references)
        assert normal.text == normal.normalized == schema.normalized
        assert not schema.find_incompatibilities(normal)
        schema.require_resolved(strict=True)
        described = parse(SchemaType.PROTOBUF, schema.serialized, references)  # type: ignore[attr-defined]
        assert not schema.find_incompatibilities(described)


@given(st.binary())
def test_any_descriptor_is_parsed_or_rejected(content: bytes) -> None:
    with suppress(SchemaError):
        parse(SchemaType.PROTOBUF, base64.b64encode(content).decode(), {})


def encoded(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def test_a_message_of_two_groups_is_rejected_before_it_is_read_twice() -> None:
    file = FileDescriptorProto(name="a.proto")
    message = file.message_type.add(name="G")
    for _ in range(30):  # each level would double the time
        for number in (1, 2):
            message.field.add(
                name=f"g{number}",
                number=number,
                type=FieldDescriptorProto.TYPE_GROUP,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
                type_name="G",
            )
        message = message.nested_type.add(name="G")
    with pytest.raises(SchemaError, match="Two groups have the message G"):
        parse(SchemaType.PROTOBUF, encoded(file), {})


def test_a_message_of_a_group_is_defined_once() -> None:
    file = FileDescriptorProto(name="a.proto")
    message = file.message_type.add(name="A")
    group = message.field.add(name="g", number=1, type_name=".A.G", label=1)
    group.type = FieldDescriptorProto.TYPE_GROUP
    message.nested_type.add(name="G")
    message.nested_type.add(name="G")
    with pytest.raises(SchemaError, match="The message G is defined twice"):
        parse(SchemaType.PROTOBUF, encoded(file), {})


@pytest.mark.parametrize("part", ["message", "field", "enum value", "rpc"])
def test_a_descriptor_with_too_many_parts_is_rejected(part: str) -> None:
    file = FileDescriptorProto(name="a.proto")
    for number in range(MAX_STEPS + 1):
        match part:
            case "message":
                file.message_type.add(name=f"M{number}")
            case "field":
                message = file.message_type[0] if number else file.message_type.add(name="A")
                message.field.add(name=f"f{number}", number=number, label=1, type=5)
            case "enum value":
                enum = file.enum_type[0] if number else file.enum_type.add(name="E")
                enum.value.add(name=f"V{number}", number=number)
            case "rpc":
                service = file.service[0] if number else file.service.add(name="S")
                service.method.add(name=f"R{number}", input_type=".A", output_type=".A")
    with pytest.raises(SchemaError, match="steps to read its descriptor"):
        parse(SchemaType.PROTOBUF, encoded(file), {})


@pytest.mark.parametrize(
    ("default", "printed"),
    [("\\x", "x"), ("\\", "\\\\"), ("\\u1", "u1"), ("\\377\\000", "\\377\\000")],
)
def test_a_bytes_default_of_a_descriptor_may_have_any_escape(default: str, printed: str) -> None:
    file = FileDescriptorProto(name="a.proto")
    file.message_type.add(name="A").field.add(
        name="f",
        number=1,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_BYTES,
        default_value=default,
    )
    assert f'[default = "{printed}"]' in parse(SchemaType.PROTOBUF, encoded(file), {}).text


def test_an_unknown_edition_of_a_descriptor_is_rejected() -> None:
    file = FileDescriptorProto(name="a.proto", syntax="editions")
    with pytest.raises(SchemaError, match="edition UNKNOWN of the descriptor is not known"):
        parse(SchemaType.PROTOBUF, encoded(file), {})


@pytest.mark.parametrize(
    "member",
    [
        'optional string a = 1 [default = "\\377"];',
        'optional string a = 1 [json_name = "\\377"];',
        'reserved "\\377";',
        'enum E { X = 0; reserved "\\377"; }',
    ],
)
def test_a_string_that_is_not_utf8_makes_no_descriptor(member: str) -> None:
    schema = parse(SchemaType.PROTOBUF, f"message A {{ {member} }}", {})
    assert '"\\377"' in schema.text
    with pytest.raises(SchemaError, match=r'The string "\\377" is not UTF-8'):
        schema.require_resolved(strict=True)


@pytest.mark.parametrize("text", ["// only a comment", ";", "/* a */ ; // b"])
def test_a_text_without_declarations_is_empty(text: str) -> None:
    with pytest.raises(SchemaError, match="declares nothing"):
        parse(SchemaType.PROTOBUF, text, {})


def test_a_printed_text_that_is_too_large_is_rejected() -> None:
    text = f'option a = "{chr(0x200B) * 500_000}";'  # each is three escaped bytes
    with pytest.raises(SchemaError, match="printed schema is larger than"):
        _ = parse(SchemaType.PROTOBUF, text, {}).text


@given(st.text())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    for kind in SchemaType:
        with suppress(SchemaError):
            parse(kind, text, {})
