"""/config, /mode, /compatibility and what a registry says of itself."""

import pytest
from tests.registry.api.conftest import Api
from tests.registry.http_requests import record

from barnabas import __version__


def test_a_subjects_config_applies_until_it_is_removed(api: Api, subject: str) -> None:
    path = f"/config/{subject}"
    assert api.refused("GET", path) == 40408
    assert api.fine("GET", f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert api.fine("PUT", path, {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert api.fine("GET", path) == {"compatibilityLevel": "FULL"}
    changed = api.fine("PUT", path, {"normalize": True, "compatibilityGroup": "major"})
    assert changed == {"compatibility": "FULL", "normalize": True, "compatibilityGroup": "major"}
    assert api.fine("PUT", path, {"normalize": None})["compatibility"] == "FULL"
    assert api.fine("DELETE", path)["compatibilityLevel"] == "FULL"
    assert api.refused("DELETE", path) == 40401
    for everywhere in ("/config", "/config/:.:", "/config/:.__GLOBAL:"):
        assert api.fine("GET", everywhere) == {"compatibilityLevel": "BACKWARD"}


def test_an_unknown_level_or_mode_is_rejected(api: Api, subject: str) -> None:
    assert api.refused("PUT", f"/config/{subject}", {"compatibility": "SIDEWARD"}) == 42203
    assert api.refused("PUT", f"/config/{subject}", {"normalize": "yes"}) == 400
    assert api.refused("PUT", f"/mode/{subject}", {"mode": "ASLEEP"}) == 42204
    assert api.refused("PUT", f"/mode/{subject}", {"mode": 3}) == 400


def test_a_mode_restricts_the_allowed_operations(api: Api, subject: str) -> None:
    path = f"/mode/{subject}"
    assert api.refused("GET", path) == 40409
    for everywhere in ("/mode", "/mode/:.:", "/mode/:.__GLOBAL:"):
        assert api.fine("GET", everywhere) == {"mode": "READWRITE"}
    assert api.fine("GET", f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert api.fine("PUT", path, {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert api.refused("POST", f"/subjects/{subject}/versions", record("x")) == 42205
    assert api.fine("PUT", f"{path}?force=False", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    imported = {**record("imported"), "id": 4711, "version": 5}
    told = api.fine("POST", f"/subjects/{subject}/versions", imported)
    assert (told["id"], told["version"]) == (4711, 5)
    assert api.fine("DELETE", path) == {"mode": "IMPORT"}
    assert api.refused("DELETE", path) == 40401


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
    api.fine("PUT", f"/config/{subject}", {"compatibility": level})
    api.fine("POST", f"/subjects/{subject}/versions", record(*old))
    path = f"/compatibility/subjects/{subject}/versions"
    for where in (path, f"{path}/1", f"{path}/latest"):
        assert api.fine("POST", where, record(*new)) == {"is_compatible": compatible}
    told = api.fine("POST", f"{path}?verbose=true", record(*new))
    assert told["is_compatible"] == compatible
    assert bool(told["messages"]) != compatible
    assert api.fine("GET", f"/subjects/{subject}/versions") == [1]


def test_a_transitive_level_compares_every_version(api: Api, subject: str) -> None:
    api.fine("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for fields in (("x",), ("x", "y")):
        api.fine("POST", f"/subjects/{subject}/versions", record(*fields))
    path = f"/compatibility/subjects/{subject}/versions?verbose=true"
    for level, compatible in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        api.fine("PUT", f"/config/{subject}", {"compatibility": level})
        told = api.fine("POST", path, record("y"))
        assert told["is_compatible"] == compatible
    assert "{oldSchemaVersion: 1}" in told["messages"]


def test_a_compatibility_check_reports_an_invalid_request(api: Api, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert api.fine("POST", f"{path}/latest", record("x")) == {"is_compatible": True}
    assert api.refused("POST", f"{path}/3", record("x")) == 40402
    assert api.refused("POST", f"{path}/three", record("x")) == 42202
    assert api.refused("POST", path, {"schema": "{"}) == 42201
    told = api.fine("POST", f"{path}?verbose=true", {"schema": "{"})
    assert told["is_compatible"] is False
    assert "Invalid schema" in told["messages"][0]


def test_an_incompatible_schema_is_rejected_with_409_and_the_reasons(
    api: Api, subject: str
) -> None:
    api.fine("POST", f"/subjects/{subject}/versions", record("x"))
    answer = api("POST", f"/subjects/{subject}/versions", record("x", "colour"))
    assert (answer.status, answer.error_code) == (409, 409)
    for reason in ("READER_FIELD_MISSING_DEFAULT_VALUE", "'colour'", "/fields/1"):
        assert reason in answer.json["message"]


def test_the_server_reports_its_version_and_cluster_ids(api: Api) -> None:
    assert api.fine("GET", "/") == {}
    assert api.fine("GET", "/v1/metadata/version")["version"] == __version__
    assert api.fine("GET", "/v1/metadata/deployment") == {"attributes": []}
    clusters = api.fine("GET", "/v1/metadata/id")["scope"]["clusters"]
    assert clusters["schema-registry-cluster"] == "schema-registry"
    assert clusters["kafka-cluster"]
