"""Serializers and deserializers: their requests, and the errors they raise."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.registry.messages import Customer, Line, Order
from tests.schema_registry.serdes.fake_client import FakeRegistryClient

from barnabas.schema_registry import (
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryError,
    record_subject_name_strategy,
)
from barnabas.schema_registry.avro import (
    AvroDeserializer,
    AvroSerializer,
    AvroSerializerBuilder,
)
from barnabas.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from barnabas.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from barnabas.serialization import MessageField, SerializationContext, SerializationError

TOPIC = SerializationContext("orders", MessageField.VALUE)
LONG = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
WIDER = """{"type": "record", "name": "R", "fields": [
    {"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "?"}]}"""
CHECKED = '{"title": "R", "type": "object", "properties": {"id": {"type": "integer"}}}'


def test_the_registry_is_requested_once_per_subject(client: FakeRegistryClient) -> None:
    serialize, deserialize = AvroSerializer(client, LONG), AvroDeserializer(client)
    for number in range(5):
        assert deserialize(serialize({"id": number}, TOPIC), TOPIC) == {"id": number}
    assert client.requests == {"associations": 2, "register": 1, "schema": 1}


def test_threads_register_a_schema_once(client: FakeRegistryClient) -> None:
    serialize = AvroSerializer(client, LONG)
    with ThreadPoolExecutor(8) as pool:
        written = set(pool.map(lambda _: serialize({"id": 1}, TOPIC), range(50)))
    assert len(written) == 1
    assert client.requests["register"] == 1


def test_each_subject_has_its_own_id(client: FakeRegistryClient) -> None:
    client.register_schema("other-value", Schema("first"))
    serialize = AvroSerializer(client, LONG)
    one = serialize({"id": 1}, TOPIC)
    serialize({"id": 1}, SerializationContext("other", MessageField.VALUE))
    assert serialize({"id": 1}, TOPIC) == one
    assert sorted(client.versions) == ["orders-value", "other-value"]


def test_the_latest_schema_is_followed_as_it_changes(client: FakeRegistryClient) -> None:
    client.register_schema("orders-value", Schema(LONG))
    conf = {"use.latest.version": True, "auto.register.schemas": False}
    serialize = AvroSerializer(client, conf=conf)
    deserialize = AvroDeserializer(client, conf={"use.latest.version": True})
    first = serialize({"id": 1}, TOPIC)
    assert deserialize(first, TOPIC) == {"id": 1}
    client.register_schema("orders-value", Schema(WIDER))
    assert deserialize(first, TOPIC) == {"id": 1, "more": "?"}
    assert serialize({"id": 2}, TOPIC) == b"\0\0\0\0\x02\x04\x02?"


def test_a_schema_can_be_selected_by_its_id(client: FakeRegistryClient) -> None:
    for schema in (LONG, WIDER):
        client.register_schema("orders-value", Schema(schema))
    conf = {"use.schema.id": 1, "auto.register.schemas": False}
    assert AvroSerializer(client, conf=conf)({"id": 1}, TOPIC) == b"\0\0\0\0\x01\x02"


def test_the_error_for_an_unsuitable_value_names_the_subject(client: FakeRegistryClient) -> None:
    with pytest.raises(ValueError, match="id") as wrong:
        AvroSerializer(client, LONG)({}, TOPIC)
    assert wrong.value.__notes__ == ["while serializing for subject orders-value"]
    with pytest.raises(SerializationError, match=r"\$\.id: 'x' is not of type 'integer'"):
        JSONSerializer(CHECKED, client)({"id": "x"}, TOPIC)


def test_the_error_for_bytes_of_another_schema_names_the_topic(
    client: FakeRegistryClient,
) -> None:
    serialize = AvroSerializer(client, WIDER)
    written = serialize({"id": 1, "more": "text"}, TOPIC)
    assert written is not None
    with pytest.raises(SerializationError, match="the value of orders is not Avro of schema 1"):
        AvroDeserializer(client)(written[:-2], TOPIC)
    text = JSONSerializer(CHECKED, client)({"id": 1}, TOPIC)
    assert text is not None
    with pytest.raises(SerializationError, match="the value of orders is not JSON"):
        JSONDeserializer(CHECKED)(text[:-1], TOPIC)
    with pytest.raises(SerializationError, match=r"of orders is not a shop\.Order"):
        ProtobufDeserializer(Order)(b"\0\0\0\0\x01\x02\x02\x12\x09x", TOPIC)


def test_endlessly_nested_bytes_are_an_error_and_do_not_crash_the_process(
    client: FakeRegistryClient,
) -> None:
    linked = """{"type": "record", "name": "R", "fields": [
        {"name": "id", "type": "long"}, {"name": "next", "type": ["null", "R"]}]}"""
    serialize, deserialize = AvroSerializer(client, linked), AvroDeserializer(client)
    chain = {"id": 1, "next": {"id": 2, "next": None}}
    assert deserialize(serialize(chain, TOPIC), TOPIC) == chain
    with pytest.raises(SerializationError, match="a record is too often within itself"):
        deserialize(b"\0\0\0\0\x01" + b"\x02\x02" * 500_000, TOPIC)
    with pytest.raises(SerializationError, match="the value of orders is not JSON"):
        JSONDeserializer("{}")(b"\0\0\0\0\x01" + b"[" * 500_000, TOPIC)
    items = '{"type": "array", "items": {"$ref": "#"}}'
    with pytest.raises(SerializationError, match="nested too deep to be checked"):
        JSONDeserializer(items)(b"\0\0\0\0\x01" + b"[" * 400 + b"]" * 400, TOPIC)


def test_an_unknown_id_raises_the_registrys_error(client: FakeRegistryClient) -> None:
    with pytest.raises(SchemaRegistryError, match="Schema 77 not found"):
        AvroDeserializer(client)(b"\0\0\0\0\x4d\x02", TOPIC)


def test_a_schema_with_rules_is_rejected_instead_of_skipping_the_rules(
    client: FakeRegistryClient,
) -> None:
    rule = Rule("hide", kind=RuleKind.TRANSFORM, mode=RuleMode.WRITEREAD, type="ENCRYPT")
    secret = Schema(LONG, rule_set=RuleSet(domain_rules=[rule]))
    number = client.register_schema("orders-value", secret)
    assert number == 1
    conf = {"use.latest.version": True, "auto.register.schemas": False}
    with pytest.raises(SerializationError, match=r"orders-value has the rule 'hide' \(ENCRYPT\)"):
        AvroSerializer(client, conf=conf)({"id": 1}, TOPIC)
    with pytest.raises(SerializationError, match=r"the rule 'hide'"):
        AvroDeserializer(client)(b"\0\0\0\0\x01\x02", TOPIC)


def test_schemas_may_refer_to_each_other_in_a_diamond(client: FakeRegistryClient) -> None:
    base = '{"type": "record", "name": "Base", "namespace": "n", "fields": []}'
    client.register_schema("base", Schema(base))
    to_base = [SchemaReference("n.Base", "base", 1)]
    for side in ("Left", "Right"):
        fields = '[{"name": "base", "type": "n.Base"}]'
        text = f'{{"type": "record", "name": "{side}", "namespace": "n", "fields": {fields}}}'
        client.register_schema(side, Schema(text, "AVRO", to_base))
    both = """{"type": "record", "name": "Both", "namespace": "n", "fields": [
        {"name": "left", "type": "n.Left"}, {"name": "right", "type": "n.Right"}]}"""
    references = [SchemaReference("n.Left", "Left", 1), SchemaReference("n.Right", "Right", 1)]
    it = {"left": {"base": {}}, "right": {"base": {}}}
    written = AvroSerializer(client, Schema(both, "AVRO", references))(it, TOPIC)
    assert AvroDeserializer(client)(written, TOPIC) == it


def test_a_json_schema_with_an_unknown_ref_is_an_error(client: FakeRegistryClient) -> None:
    serialize = JSONSerializer('{"$ref": "elsewhere.json"}', client)
    with pytest.raises(SerializationError, match=r"elsewhere\.json.*not among its references"):
        serialize({}, TOPIC)


def test_imported_files_are_registered_before_a_message(client: FakeRegistryClient) -> None:
    ProtobufSerializer(Order, client)(Order(id=1), TOPIC)
    chain = ["shop/address.proto", "shop/customer.proto", "orders-value"]
    assert list(client.versions) == chain
    (order,) = client.versions["orders-value"]
    assert order.schema.references == [
        SchemaReference("shop/customer.proto", "shop/customer.proto", 1)
    ]


def test_bundled_files_are_registered_if_they_are_not_skipped(
    client: FakeRegistryClient,
) -> None:
    ProtobufSerializer(Order, client, {"skip.known.types": False})(Order(id=1), TOPIC)
    assert "google/protobuf/timestamp.proto" in client.versions


def test_a_nested_message_is_found_by_its_indexes(client: FakeRegistryClient) -> None:
    written = ProtobufSerializer(Line, client)(Line(item="i"), TOPIC)
    assert written is not None
    assert written[5:8] == b"\x04\x02\x00"
    assert ProtobufDeserializer(Line, {}, client)(written, TOPIC) == Line(item="i")
    with pytest.raises(SerializationError, match=r"schema 3 has no message \[7\]"):
        ProtobufDeserializer(Line, {}, client)(written[:5] + b"\x02\x0e", TOPIC)
    with pytest.raises(ValueError, match=r"serializes shop\.Order, not Customer"):
        ProtobufSerializer(Order, client)(Customer(), TOPIC)


def test_a_schema_without_a_name_has_no_subject_by_record(client: FakeRegistryClient) -> None:
    serialize = JSONSerializer(
        "{}", client, conf={"subject.name.strategy": record_subject_name_strategy}
    )
    with pytest.raises(SerializationError, match="the schema has no name"):
        serialize({}, TOPIC)


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"auto.register.schema": True}, "did you mean auto.register.schemas?"),
        ({"normalize.schemas": 1}, "normalize.schemas must be True or False"),
        ({"use.latest.version": True}, "cannot both be True"),
        ({"use.schema.id": "1"}, "use.schema.id must be an int"),
        ({"use.latest.with.metadata": "x"}, "must be a dict"),
        ({"schema.id.serializer": "x"}, "must be callable"),
    ],
)
def test_the_error_for_an_invalid_setting_names_it(
    conf: dict[str, Any], expected: str, client: FakeRegistryClient
) -> None:
    with pytest.raises(ValueError, match=r".") as wrong:
        AvroSerializer(client, LONG, conf=conf)
    assert expected in str(wrong.value)


def test_a_builder_accepts_a_client_or_the_settings_of_one(client: FakeRegistryClient) -> None:
    builder = AvroSerializerBuilder(schema_registry_client=client, schema=LONG)
    serializer, remaining = builder.build({"client.id": "x"}, is_key=False)
    assert remaining == {"client.id": "x"}
    serializer.close()
    assert client.requests["close"] == 0  # the serializer does not own it
    with pytest.raises(ValueError, match="keep one"):
        builder.set_schema_registry_config({"url": "http://x"}).build({}, is_key=False)
    with pytest.raises(TypeError, match="no setting scheme"):
        AvroSerializerBuilder(scheme=LONG)
