"""/config, /mode, /compatibility and the server's metadata."""

import pytest
from tests.registry.api.conftest import Api
from tests.registry.http_requests import record

from barnabas import __version__


def test_a_subjects_config_applies_until_it_is_removed(api: Api, subject: str) -> None:
    path = f"/config/{subject}"
    assert api.error_code("GET", path) == 40408
    assert api.ok("GET", f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert api.ok("PUT", path, {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert api.ok("GET", path) == {"compatibilityLevel": "FULL"}
    changed = api.ok("PUT", path, {"normalize": True, "compatibilityGroup": "major"})
    assert changed == {"compatibility": "FULL", "normalize": True, "compatibilityGroup": "major"}
    assert api.ok("PUT", path, {"normalize": None})["compatibility"] == "FULL"
    assert api.ok("DELETE", path)["compatibilityLevel"] == "FULL"
    assert api.error_code("DELETE", path) == 40401
    for everywhere in ("/config", "/config/:.:", "/config/:.__GLOBAL:"):
        assert api.ok("GET", everywhere) == {"compatibilityLevel": "BACKWARD"}


def test_an_unknown_level_or_mode_is_rejected(api: Api, subject: str) -> None:
    assert api.error_code("PUT", f"/config/{subject}", {"compatibility": "SIDEWARD"}) == 42203
    assert api.error_code("PUT", f"/config/{subject}", {"normalize": "yes"}) == 400
    assert api.error_code("PUT", f"/mode/{subject}", {"mode": "ASLEEP"}) == 42204
    assert api.error_code("PUT", f"/mode/{subject}", {"mode": 3}) == 400


def test_a_mode_restricts_the_allowed_operations(api: Api, subject: str) -> None:
    path = f"/mode/{subject}"
    assert api.error_code("GET", path) == 40409
    for everywhere in ("/mode", "/mode/:.:", "/mode/:.__GLOBAL:"):
        assert api.ok("GET", everywhere) == {"mode": "READWRITE"}
    assert api.ok("GET", f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert api.ok("PUT", path, {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert api.error_code("POST", f"/subjects/{subject}/versions", record("x")) == 42205
    assert api.ok("PUT", f"{path}?force=False", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    imported = {**record("imported"), "id": 4711, "version": 5}
    response = api.ok("POST", f"/subjects/{subject}/versions", imported)
    assert (response["id"], response["version"]) == (4711, 5)
    assert api.ok("DELETE", path) == {"mode": "IMPORT"}
    assert api.error_code("DELETE", path) == 40401


@pytest.mark.parametrize(
    ("level", "old", "new", "compatible"),
    [
        ("BACKWARD", ("x", "y"), ("x",), True),
        ("BACKWARD", ("x",), ("x", "y"), False),
        ("FORWARD", ("x",), ("x", "y"), True),
        ("FORWARD", ("x", "y"), ("x",), False),
        ("FULL", ("x",), ("x", "y"), False),
        ("FULL", ("x", "y"), ("x",), False),
        ("NONE", ("x",), ("z",), True),
    ],
)
def test_compatibility_is_checked_without_registering_the_schema(
    api: Api, subject: str, level: str, old: tuple[str], new: tuple[str], compatible: bool
) -> None:
    api.ok("PUT", f"/config/{subject}", {"compatibility": level})
    api.ok("POST", f"/subjects/{subject}/versions", record(*old))
    path = f"/compatibility/subjects/{subject}/versions"
    for where in (path, f"{path}/1", f"{path}/latest"):
        assert api.ok("POST", where, record(*new)) == {"is_compatible": compatible}
    response = api.ok("POST", f"{path}?verbose=true", record(*new))
    assert response["is_compatible"] == compatible
    assert bool(response["messages"]) != compatible
    assert api.ok("GET", f"/subjects/{subject}/versions") == [1]


def test_a_transitive_level_compares_every_version(api: Api, subject: str) -> None:
    api.ok("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for fields in (("x",), ("x", "y")):
        api.ok("POST", f"/subjects/{subject}/versions", record(*fields))
    path = f"/compatibility/subjects/{subject}/versions?verbose=true"
    for level, compatible in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        api.ok("PUT", f"/config/{subject}", {"compatibility": level})
        response = api.ok("POST", path, record("y"))
        assert response["is_compatible"] == compatible
    assert "{oldSchemaVersion: 1}" in response["messages"]


def test_a_compatibility_check_reports_an_invalid_request(api: Api, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert api.ok("POST", f"{path}/latest", record("x")) == {"is_compatible": True}
    assert api.error_code("POST", f"{path}/3", record("x")) == 40402
    assert api.error_code("POST", f"{path}/three", record("x")) == 42202
    assert api.error_code("POST", path, {"schema": "{"}) == 42201
    response = api.ok("POST", f"{path}?verbose=true", {"schema": "{"})
    assert response["is_compatible"] is False
    assert "Invalid schema" in response["messages"][0]


def test_an_incompatible_schema_is_rejected_with_409_and_the_reasons(
    api: Api, subject: str
) -> None:
    api.ok("POST", f"/subjects/{subject}/versions", record("x"))
    response = api("POST", f"/subjects/{subject}/versions", record("x", "colour"))
    assert (response.status, response.error_code) == (409, 409)
    for reason in ("READER_FIELD_MISSING_DEFAULT_VALUE", "'colour'", "/fields/1"):
        assert reason in response.json["message"]


def test_the_server_reports_its_version_and_cluster_ids(api: Api) -> None:
    assert api.ok("GET", "/") == {}
    assert api.ok("GET", "/v1/metadata/version")["version"] == __version__
    assert api.ok("GET", "/v1/metadata/deployment") == {"attributes": []}
    clusters = api.ok("GET", "/v1/metadata/id")["scope"]["clusters"]
    assert clusters["schema-registry-cluster"] == "schema-registry"
    assert clusters["kafka-cluster"]


def test_the_lenient_policy_lets_open_json_schemas_get_new_properties(
    api: Api, subject: str
) -> None:
    def typed(*names: str) -> dict[str, str]:
        properties = ", ".join(f'"{name}": {{"type": "string"}}' for name in names)
        text = f'{{"type": "object", "properties": {{{properties}}}}}'
        return {"schemaType": "JSON", "schema": text}

    path = f"/subjects/{subject}/versions"
    api.ok("POST", path, typed("a"))
    assert api.error_code("POST", path, typed("a", "b")) == 409
    assert api.ok("PUT", f"/config/{subject}", {"compatibilityPolicy": "lenient"}) == {
        "compatibilityPolicy": "LENIENT"
    }
    api.ok("POST", path, typed("a", "b"))
    api.ok("PUT", f"/config/{subject}", {"compatibilityPolicy": "STRICT"})
    assert api.error_code("POST", path, typed("a", "b", "c")) == 409


def test_validate_fields_rejects_json_properties_with_confluents_prefix(
    api: Api, subject: str
) -> None:
    text = '{"type": "object", "properties": {"$$a": {}}}'
    body = {"schemaType": "JSON", "schema": text}
    api.ok("PUT", f"/config/{subject}", {"validateFields": True})
    assert api.error_code("POST", f"/subjects/{subject}/versions", body) == 42201
    api.ok("PUT", f"/config/{subject}", {"validateFields": False})
    api.ok("POST", f"/subjects/{subject}/versions", body)
