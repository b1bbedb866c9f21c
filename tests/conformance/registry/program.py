"""Scenarios with a schema registry, written for confluent_kafka.

Each scenario returns plain values. The module is loaded with changed imports for barnabas, and the
values must be the same. The registries are new, because the values include ids.
"""

from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from tests.registry.messages import Customer, Empty, Line, Order

ORDER = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"},
    {"name": "note", "type": ["null", "string"], "default": null}]}"""
ORDER_WITH_CITY = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "city", "type": "string", "default": "here"}]}"""
ORDER_OF_TEXT = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "string"}]}"""
CUSTOMER = """{"type": "record", "name": "Customer", "namespace": "shop", "fields": [
    {"name": "name", "type": "string"}]}"""
EVENT = """["shop.Order", "shop.Customer"]"""
ORDER_JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Order",
    "type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"]}"""
CUSTOMER_JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Customer",
    "type": "object", "properties": {"first": {"$ref": "order.json"}}}"""


def raised(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Returns the result of a call, or its error as plain values."""
    try:
        return "returned", call(*args, **kwargs)
    except SchemaRegistryError as error:
        return "rejected", error.http_status_code, error.error_code, error.error_message
    except SerializationError:
        return ("SerializationError",)


def registration(registered: RegisteredSchema) -> tuple[Any, ...]:
    return registered.subject, registered.version, registered.schema_id, registered.guid


def new_client(client: SchemaRegistryClient) -> SchemaRegistryClient:
    """Returns a client with an empty cache."""
    return SchemaRegistryClient(client.config())


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def subjects_and_versions(client: SchemaRegistryClient) -> dict[str, Any]:
    first, second = Schema(ORDER), Schema(ORDER_WITH_CITY)
    facts: dict[str, Any] = {
        "ids": [client.register_schema("life-value", schema) for schema in (first, second, first)],
        "elsewhere": client.register_schema("life-other", first),
        "full": registration(client.register_schema_full_response("life-full", first)),
        "latest": registration(client.get_latest_version("life-value")),
        "first": registration(client.get_version("life-value", 1)),
        "first's text": client.get_version("life-value", 1).schema.schema_str,
        "versions": client.get_versions("life-value"),
        "lookup": registration(client.lookup_schema("life-value", second)),
        "prefixed": client.get_subjects("life-"),
        "types": sorted(client.get_schema_types()),
        "contexts": client.get_contexts(),
    }
    number = facts["ids"][0]
    facts["subjects of it"] = sorted(client.get_subjects_by_schema_id(number))
    facts["versions of it"] = sorted(
        (version.subject, version.version) for version in client.get_schema_versions(number)
    )
    facts["by guid"] = client.get_schema_by_guid(facts["first"][3]).schema_str
    facts["deleted"] = client.delete_version("life-value", 1)
    facts["left"] = client.get_versions("life-value")
    facts["with deleted"] = client.get_versions("life-value", deleted=True)
    facts["deleted subject"] = client.delete_subject("life-other")
    facts["for good"] = client.delete_subject("life-other", permanent=True)
    facts["subjects left"] = client.get_subjects("life-")
    return facts


def contexts(client: SchemaRegistryClient) -> dict[str, Any]:
    subject = ":.staging:orders-value"
    return {
        "id": client.register_schema(subject, Schema(ORDER)),
        "second id": client.register_schema(subject, Schema(ORDER_WITH_CITY)),
        "contexts": client.get_contexts(),
        "latest": registration(client.get_latest_version(subject)),
        "by id": new_client(client).get_schema(1, subject).schema_str,
    }


def compatibility(client: SchemaRegistryClient) -> dict[str, Any]:
    client.register_schema("comp-value", Schema(ORDER))
    facts: dict[str, Any] = {
        "at first": client.get_compatibility(),
        "good": client.test_compatibility("comp-value", Schema(ORDER_WITH_CITY)),
        "bad": client.test_compatibility("comp-value", Schema(ORDER_OF_TEXT)),
        "bad for all": client.test_compatibility_all_versions("comp-value", Schema(ORDER_OF_TEXT)),
        "rejected": raised(client.register_schema, "comp-value", Schema(ORDER_OF_TEXT)),
        "set": client.set_compatibility("comp-value", "none"),
        "level": client.get_compatibility("comp-value"),
    }
    facts["accepted"] = client.register_schema("comp-value", Schema(ORDER_OF_TEXT))
    config = ServerConfig(compatibility=ConfigCompatibilityLevel.FULL_TRANSITIVE)
    facts["config set"] = client.set_config("comp-value", config)
    facts["config"] = str(client.get_config("comp-value").compatibility_level)
    client.delete_config("comp-value")
    facts["without"] = raised(client.get_compatibility, "comp-value")
    return facts


def modes(client: SchemaRegistryClient) -> dict[str, Any]:
    client.register_schema("mode-value", Schema(ORDER))
    return {
        "all": client.get_global_mode(),
        "of none": raised(client.get_mode, "mode-value"),
        "set": client.update_mode("mode-value", "READONLY"),
        "got": client.get_mode("mode-value"),
        "rejected": raised(client.register_schema, "mode-value", Schema(ORDER_WITH_CITY)),
        "deleted": client.delete_mode("mode-value"),
    }


def metadata(client: SchemaRegistryClient) -> dict[str, Any]:
    def versioned(major: str) -> Metadata:
        return Metadata(None, MetadataProperties({"major": major}), None)

    client.register_schema("meta-value", Schema(ORDER, metadata=versioned("1")))
    client.register_schema("meta-value", Schema(ORDER_WITH_CITY, metadata=versioned("2")))
    first = client.get_latest_with_metadata("meta-value", {"major": "1"})
    assert first.schema.metadata is not None
    assert first.schema.metadata.properties is not None
    serializer = AvroSerializer(
        client,
        ORDER,
        conf={"use.latest.with.metadata": {"major": "1"}, "auto.register.schemas": False},
    )
    return {
        "first": registration(first),
        "its properties": first.schema.metadata.properties.properties,
        "written": serializer({"id": 1}, value_of("meta")),
        "none": raised(client.get_latest_with_metadata, "meta-value", {"major": "3"}),
    }


def errors(client: SchemaRegistryClient) -> dict[str, Any]:
    return {
        "id": raised(client.get_schema, 9999),
        "guid": raised(client.get_schema_by_guid, "00000000-0000-0000-0000-000000000000"),
        "subject": raised(client.get_versions, "nobody"),
        "latest": raised(client.get_latest_version, "nobody"),
        "lookup": raised(client.lookup_schema, "nobody", Schema(ORDER)),
        "delete": raised(client.delete_subject, "nobody"),
        "level": raised(client.set_compatibility, "x", "SIDEWAYS"),
        "mode": raised(client.update_mode, "x", "SOMETIMES"),
        "avro": raised(client.register_schema, "x", Schema('{"type": "recrd"}'))[:3],
        "json": raised(client.register_schema, "x", Schema("{", "JSON"))[:3],
        "protobuf": raised(client.register_schema, "x", Schema("mesage A {}", "PROTOBUF"))[:3],
        "language": raised(client.register_schema, "x", Schema("x", "YAML"))[:3],
        "reference": raised(
            client.register_schema,
            "x",
            Schema(EVENT, "AVRO", [SchemaReference("shop.Order", "nobody", 1)]),
        )[:3],
    }


def avro(client: SchemaRegistryClient) -> dict[str, Any]:
    topic = value_of("avro")
    old, new = AvroSerializer(client, ORDER), AvroSerializer(client, ORDER_WITH_CITY)
    written = [old({"id": 1, "note": "x"}, topic), new({"id": 2, "city": "there"}, topic)]
    whole, dropping = AvroDeserializer(client), AvroDeserializer(client, ORDER)
    adding = AvroDeserializer(client, ORDER_WITH_CITY)
    latest = AvroDeserializer(client, conf={"use.latest.version": True})
    not_registered = AvroSerializer(client, CUSTOMER, conf={"auto.register.schemas": False})
    return {
        "written": written,
        "whole": [whole(data, topic) for data in written],
        "dropping": [dropping(data, topic) for data in written],
        "adding": [adding(data, topic) for data in written],
        "latest": [latest(data, topic) for data in written],
        "nothing": (old(None, topic), whole(None, topic)),
        "key": old({"id": 1}, SerializationContext("avro", MessageField.KEY)),
        "primitive": AvroSerializer(client, '"string"')("text", value_of("avro-text")),
        "bytes": AvroSerializer(client, '"bytes"')(b"raw", value_of("avro-bytes")),
        "converted": AvroSerializer(client, ORDER, lambda it, _: {"id": it})(5, topic),
        "made": AvroDeserializer(client, from_dict=lambda it, ctx: (ctx.topic, it["id"]))(
            written[0], topic
        ),
        "incompatible": raised(AvroSerializer(client, ORDER_OF_TEXT), {"id": "x"}, topic),
        "not registered": raised(not_registered, {"name": "x"}, topic),
        "subjects": client.get_subjects("avro-"),
    }


def avro_references(client: SchemaRegistryClient) -> dict[str, Any]:
    client.register_schema("ref-order", Schema(ORDER))
    client.register_schema("ref-customer", Schema(CUSTOMER))
    references = [
        SchemaReference("shop.Order", "ref-order", 1),
        SchemaReference("shop.Customer", "ref-customer", 1),
    ]
    event = Schema(EVENT, "AVRO", references)
    topic = value_of("ref")
    serializer = AvroSerializer(client, event)
    written = [serializer({"id": 1}, topic), serializer(("shop.Customer", {"name": "a"}), topic)]
    named = AvroDeserializer(client, return_record_name=True)
    return {
        "written": written,
        "read": [AvroDeserializer(client)(data, topic) for data in written],
        "named": [named(data, topic) for data in written],
        "referred to": client.get_referenced_by("ref-order", 1),
        "kept": raised(client.delete_version, "ref-order", 1)[:3],
    }


def strategies(client: SchemaRegistryClient) -> dict[str, Any]:
    topic = value_of("strat")
    by_record = {"subject.name.strategy": record_subject_name_strategy}
    by_both = {"subject.name.strategy": topic_record_subject_name_strategy}
    return {
        "avro": [
            AvroSerializer(client, ORDER, conf=conf)({"id": 1}, topic)
            for conf in (by_record, by_both, {"subject.name.strategy.type": "TOPIC"})
        ],
        "json": JSONSerializer(ORDER_JSON, client, conf=by_both)({"id": 1}, topic),
        "protobuf": ProtobufSerializer(Customer, client, by_both)(Customer(name="a"), topic),
        "read": AvroDeserializer(client, conf=by_record | {"use.latest.version": True})(
            AvroSerializer(client, ORDER, conf=by_record)({"id": 1}, topic), topic
        ),
        "subjects": sorted(client.get_subjects("strat-") + client.get_subjects("shop.")),
    }


def headers(client: SchemaRegistryClient) -> dict[str, Any]:
    header_list: list[tuple[str, bytes]] = []
    topic = value_of("head", header_list)
    conf = {"schema.id.serializer": header_schema_id_serializer}
    written = AvroSerializer(client, ORDER, conf=conf)({"id": 1, "note": "long enough"}, topic)
    line: dict[str, bytes] = {}
    lines = ProtobufSerializer(Line, client, conf)(Line(item="i"), value_of("head-line", line))
    none = raised(AvroSerializer(client, ORDER, conf=conf), {"id": 1}, value_of("head"))
    return {
        "written": written,
        "headers": list(header_list),
        "read": AvroDeserializer(client)(written, topic),
        "line": (lines, line),
        "line read": ProtobufDeserializer(Line, {}, client)(
            lines, value_of("head-line", line)
        ).item,
        "without headers": none,
    }


def json(client: SchemaRegistryClient) -> dict[str, Any]:
    topic = value_of("json")
    serializer = JSONSerializer(ORDER_JSON, client)
    reader = JSONDeserializer(None, schema_registry_client=client)
    written = serializer({"id": 1, "note": "ü"}, topic)
    client.register_schema("json-order", Schema(ORDER_JSON, "JSON"))
    refers = Schema(CUSTOMER_JSON, "JSON", [SchemaReference("order.json", "json-order", 1)])
    customers = value_of("json-customer")
    customer = JSONSerializer(refers, client)
    lax = JSONSerializer(ORDER_JSON, client, conf={"validate": False})({"id": "x"}, topic)
    return {
        "written": written,
        "read": reader(written, topic),
        "by own schema": JSONDeserializer(ORDER_JSON)(written, topic),
        "invalid": raised(serializer, {"id": "x"}, topic),
        "unchecked": lax,
        "invalid to read": raised(reader, lax, topic),
        "refers": customer({"first": {"id": 1}}, customers),
        "invalid where it refers": raised(customer, {"first": {}}, customers),
        "made": JSONDeserializer(ORDER_JSON, lambda it, _: it["id"])(written, topic),
    }


def protobuf(client: SchemaRegistryClient) -> dict[str, Any]:
    topic, lines = value_of("proto"), value_of("proto-line")
    order = Order(id=7, customer=Customer(name="a"))
    order.at.seconds = 3
    written = ProtobufSerializer(Order, client)(order, topic)
    line = ProtobufSerializer(Line, client)(Line(item="i"), lines)
    first = ProtobufSerializer(Empty, client)(Empty(), value_of("proto-first"))
    return {
        "written": written,
        "line": line,
        "first": first,
        "read": ProtobufDeserializer(Order, {}, client)(written, topic) == order,
        "read alone": ProtobufDeserializer(Line, {"use.deprecated.format": False})(line).item,
        "subjects": sorted(client.get_subjects("proto") + client.get_subjects("shop/")),
        "no such message": raised(
            ProtobufDeserializer(Order, {}, client), written[:5] + b"\x02\x12", topic
        ),
        "of another kind": raised_by_kind(ProtobufSerializer(Order, client), Line(), topic),
    }


def raised_by_kind(call: Callable[..., Any], *args: Any) -> str:
    try:
        call(*args)
    except Exception as problem:
        return type(problem).__name__
    return "nothing"


def foreign_bytes(client: SchemaRegistryClient) -> dict[str, Any]:
    topic = value_of("foreign")
    written = AvroSerializer(client, ORDER)({"id": 1}, topic)
    assert written is not None
    unknown = b"\0\0\0\x99\x99" + written[5:]
    messages = value_of("foreign-protobuf")
    whole = ProtobufSerializer(Customer, client)(Customer(name="abc"), messages)
    assert whole is not None
    readers: dict[str, Any] = {
        "avro": AvroDeserializer(client),
        "json": JSONDeserializer(None, schema_registry_client=client),
        "protobuf": ProtobufDeserializer(Order, {}, client),
    }
    wrong = {"not framed": b'{"id": 12345}', "of no known schema": unknown}
    facts = {
        f"{name} {what}": raised(reader, data, topic)
        for name, reader in readers.items()
        for what, data in wrong.items()
    }
    return facts | {
        "too short": raised(readers["avro"], b"\0\0", topic),
        "truncated": raised_by_kind(readers["avro"], written[:6], topic) != "nothing",
        "truncated protobuf": raised(readers["protobuf"], whole[:-1], messages),
    }


def settings(client: SchemaRegistryClient) -> dict[str, Any]:
    def of(make: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        return raised_by_kind(lambda: make(*args, **kwargs))

    both = {"use.latest.version": True, "auto.register.schemas": True}
    return {
        "unknown": of(AvroSerializer, client, ORDER, conf={"auto.register.schema": True}),
        "not a bool": of(AvroSerializer, client, ORDER, conf={"auto.register.schemas": "yes"}),
        "both": of(JSONSerializer, ORDER_JSON, client, conf=both),
        "not callable": of(ProtobufSerializer, Order, client, {"subject.name.strategy": 3}),
        "client": of(SchemaRegistryClient, {"url": "http://x", "urls": "y"}),
        "no url": of(SchemaRegistryClient, {}),
        "no client": of(JSONDeserializer, None),
        "not a type": of(AvroDeserializer, client, 3),
        "no strategy": of(AvroSerializer, client, ORDER, conf={"subject.name.strategy.type": "X"}),
        "validated": raised_by_kind(
            AvroSerializer(client, ORDER, conf={"validate.strict": True}),
            {"id": 1, "note": None, "more": 2},
            value_of("settings"),
        ),
    }


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        subjects_and_versions,
        contexts,
        compatibility,
        modes,
        metadata,
        errors,
        avro,
        avro_references,
        strategies,
        headers,
        json,
        protobuf,
        foreign_bytes,
        settings,
    )
}
