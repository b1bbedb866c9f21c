"""The client's requests, its results, and its cache."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.schema_registry.client.scripted_registry import ScriptedRegistry

from barnabas.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    RegisteredSchema,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaVersion,
    ServerConfig,
)
from barnabas.schema_registry.error import SchemaRegistryError

LONG = Schema('"long"')


@pytest.fixture
def client(script: ScriptedRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": script.url, "max.retries": 0})


PAGE = "offset=0&limit=-1"


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (
            lambda it: it.get_subjects("or", deleted=True),
            f"GET /subjects?deleted=true&deleted_only=false&subjectPrefix=or&{PAGE}",
        ),
        (
            lambda it: it.get_versions("a/b"),
            f"GET /subjects/a%2Fb/versions?deleted=false&deleted_only=false&{PAGE}",
        ),
        (
            lambda it: it.get_referenced_by("s", 2),
            f"GET /subjects/s/versions/2/referencedby?{PAGE}",
        ),
        (lambda it: it.get_schema_types(), "GET /schemas/types"),
        (lambda it: it.get_contexts(), f"GET /contexts?{PAGE}"),
        (
            lambda it: it.get_subjects_by_schema_id(4, deleted=True),
            f"GET /schemas/ids/4/subjects?deleted=true&{PAGE}",
        ),
        (lambda it: it.delete_subject("s", permanent=True), "DELETE /subjects/s?permanent=true"),
        (lambda it: it.delete_version("s", 3), "DELETE /subjects/s/versions/3?permanent=false"),
    ],
)
def test_lists_are_returned_as_received(
    call: Callable[[Any], Any], asked: str, client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, ["x"]))
    assert call(client) == ["x"]
    assert script.paths == [asked]


def test_a_schema_is_registered_once(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"id": 7}))
    schema = Schema('"long"', "AVRO", [SchemaReference("n", "s", 1)])
    assert [client.register_schema("orders-value", schema) for _ in range(3)] == [7, 7, 7]
    (only,) = script.requests
    assert (only.method, only.path) == ("POST", "/subjects/orders-value/versions?normalize=false")
    assert only.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
    assert only.body == {
        "schema": '"long"',
        "schemaType": "AVRO",
        "references": [{"name": "n", "subject": "s", "version": 1}],
    }


def test_a_schema_is_requested_once_per_id_and_format(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"schema": '"long"'}))
    for _ in range(2):
        assert client.get_schema(3) == LONG
        assert client.get_schema(3, "s", "serialized") == LONG
        assert client.get_schema_by_guid("g") == LONG
    assert script.paths == [
        "GET /schemas/ids/3",
        "GET /schemas/ids/3?subject=s&format=serialized",
        "GET /schemas/guids/g",
    ]


def test_versions_are_cached_until_they_are_deleted(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    first = {"subject": "s", "version": 1, "id": 9, "guid": "g", "schema": '"long"'}
    script.will_respond((200, first))
    for _ in range(2):
        assert client.get_version("s", 1) == RegisteredSchema("s", 1, 9, "g", LONG)
    assert script.paths == ["GET /subjects/s/versions/1?deleted=false"]
    script.will_respond((200, 1), (404, {"error_code": 40402, "message": "Version 1 not found."}))
    client.delete_version("s", 1)
    with pytest.raises(SchemaRegistryError) as raised:
        client.get_version("s", 1)
    assert raised.value.http_status_code == 404
    assert raised.value.error_code == 40402
    assert raised.value.error_message == "Version 1 not found."
    assert str(raised.value) == "Version 1 not found. (HTTP status code 404, SR code 40402)"


def test_a_schema_can_be_registered_again_after_its_subject_was_deleted(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"id": 7}), (200, [1]), (200, {"id": 7}))
    client.register_schema("s", LONG)
    client.delete_subject("s")
    client.register_schema("s", LONG)
    assert [item.method for item in script.requests] == ["POST", "DELETE", "POST"]


def test_the_latest_version_is_cached_until_a_schema_is_registered(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"subject": "s", "version": 1, "id": 9, "schema": '"long"'}))
    client.get_latest_version("s")
    client.get_latest_version("s")
    assert len(script.requests) == 1
    client.register_schema("s", Schema('"string"'))
    client.get_latest_version("s")
    assert len(script.requests) == 3
    client.clear_latest_caches()
    client.get_latest_version("s")
    assert len(script.requests) == 4


def test_the_latest_version_is_requested_by_metadata(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"subject": "s", "version": 1, "id": 9, "schema": '"long"'}))
    client.get_latest_with_metadata("s", {"owner": "a b", "major": "1"})
    assert script.paths == [
        "GET /subjects/s/metadata?deleted=false&key=owner&key=major&value=a+b&value=1"
    ]


def test_a_lookup_keeps_the_text_that_was_looked_up(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"subject": "s", "version": 2, "id": 9, "schema": '{"a": 1}'}))
    result = client.lookup_schema("s", LONG, normalize_schemas=True, deleted=True)
    assert result == RegisteredSchema("s", 2, 9, None, LONG)
    assert script.paths == ["POST /subjects/s?normalize=true&deleted=true"]


def test_compatibility_is_returned_as_a_bool(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"is_compatible": False, "messages": ["no"]}))
    assert client.test_compatibility("s", LONG, 3, verbose=True) is False
    assert client.test_compatibility_all_versions("s", LONG) is False
    assert script.paths == [
        "POST /compatibility/subjects/s/versions/3?normalize=false&verbose=true",
        "POST /compatibility/subjects/s/versions?normalize=false&verbose=false",
    ]


def test_configs_and_modes_are_of_a_subject_or_global(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, {"compatibilityLevel": "FULL", "mode": "IMPORT"}))
    assert client.get_compatibility() == "FULL"
    client.set_compatibility("s", level="none")
    level = ConfigCompatibilityLevel.FULL
    assert client.get_config("s") == ServerConfig(compatibility_level=level)
    client.set_config(config=ServerConfig(compatibility=level))
    client.delete_config("s")
    assert client.get_mode("s") == client.update_mode("s", "IMPORT", force=True) == "IMPORT"
    assert client.get_global_mode() == client.update_global_mode("IMPORT") == "IMPORT"
    assert client.delete_mode("s") == "IMPORT"
    assert [(item.method, item.path, item.body) for item in script.requests] == [
        ("GET", "/config", None),
        ("PUT", "/config/s", {"compatibility": "NONE"}),
        ("GET", "/config/s", None),
        ("PUT", "/config", {"compatibility": "FULL"}),
        ("DELETE", "/config/s", None),
        ("GET", "/mode/s", None),
        ("PUT", "/mode/s?force=true", {"mode": "IMPORT"}),
        ("GET", "/mode", None),
        ("PUT", "/mode?force=false", {"mode": "IMPORT"}),
        ("DELETE", "/mode/s", None),
    ]


def test_the_versions_of_a_schema_are_pairs(
    client: SchemaRegistryClient, script: ScriptedRegistry
) -> None:
    script.will_respond((200, [{"subject": "s", "version": 1}]))
    assert client.get_schema_versions(3) == [SchemaVersion("s", 1)]


def test_models_round_trip_through_json() -> None:
    rule = Rule("mask", kind=RuleKind.TRANSFORM, mode=RuleMode.WRITE, type="CEL", on_failure="DLQ")
    schema = Schema(
        "{}",
        "JSON",
        [SchemaReference("n", "s", 1)],
        Metadata(properties=MetadataProperties({"owner": "me"}), sensitive=["owner"]),
        RuleSet(domain_rules=[rule]),
    )
    registered = RegisteredSchema("s", 1, 2, "g", schema)
    sent = registered.to_dict()
    assert sent["ruleSet"] == {
        "domainRules": [
            {
                "name": "mask",
                "kind": "TRANSFORM",
                "mode": "WRITE",
                "type": "CEL",
                "onFailure": "DLQ",
            }
        ]
    }
    assert RegisteredSchema.from_dict(sent) == registered
    assert RegisteredSchema.from_dict(sent | {"newerThing": 1}) == registered
    assert hash(RegisteredSchema.from_dict(sent)) == hash(registered)


def test_the_error_for_a_missing_level_or_config_names_it(client: SchemaRegistryClient) -> None:
    with pytest.raises(ValueError, match="level is missing"):
        client.set_compatibility("s")
    with pytest.raises(ValueError, match="config is missing"):
        client.set_config("s")
