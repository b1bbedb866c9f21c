"""/subjects and /schemas: the documented flows, and rejected requests."""

import base64
import json

import pytest
from tests.registry.api.conftest import Api
from tests.registry.http_requests import half_a_request, record

from barnabas.registry.service import SchemaRegistry


def test_a_registered_schema_is_found_by_id_guid_version_and_text(api: Api, subject: str) -> None:
    body = record("x", name=f"A{abs(hash(subject))}")
    response = api.ok("POST", f"/subjects/{subject}/versions", body)
    id_, guid = response["id"], response["guid"]
    text = json.loads(body["schema"])
    assert json.loads(api.ok("GET", f"/schemas/ids/{id_}")["schema"]) == text
    assert api.ok("GET", f"/schemas/ids/{id_}/schema") == text
    assert api.ok("GET", f"/schemas/ids/{id_}/subjects") == [subject]
    location = {"subject": subject, "version": 1}
    assert api.ok("GET", f"/schemas/ids/{id_}/versions") == [location]
    assert json.loads(api.ok("GET", f"/schemas/guids/{guid}")["schema"]) == text
    assert api.ok("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": id_}]
    for version in ("1", "latest", "-1"):
        result = api.ok("GET", f"/subjects/{subject}/versions/{version}")
        assert {**location, "id": id_, "guid": guid, "schemaType": "AVRO"}.items() <= result.items()
    assert api.ok("GET", f"/subjects/{subject}/versions/1/schema") == text
    assert api.ok("POST", f"/subjects/{subject}", body)["version"] == 1
    assert subject in api.ok("GET", "/subjects")


def test_subjects_may_contain_slashes_and_special_characters(api: Api) -> None:
    name = "a/b c%d:ä"
    encoded = "a%2Fb%20c%25d%3A%C3%A4"
    api.ok("POST", f"/subjects/{encoded}/versions", record("slashes"))
    assert name in api.ok("GET", "/subjects")
    assert api.ok("GET", f"/subjects/{encoded}/versions/latest")["subject"] == name


def test_json_and_protobuf_are_registered_with_their_type(api: Api, subject: str) -> None:
    schema = {"schemaType": "JSON", "schema": '{"type":"object","title":"types"}'}
    response = api.ok("POST", f"/subjects/{subject}-json/versions", schema)
    assert api.ok("GET", f"/schemas/ids/{response['id']}")["schemaType"] == "JSON"
    text = 'syntax = "proto3"; message Types { int32 a = 1; }'
    message = {"schemaType": "PROTOBUF", "schema": text}
    response = api.ok("POST", f"/subjects/{subject}-proto/versions", message)
    result = api.ok("GET", f"/schemas/ids/{response['id']}")
    assert result["schemaType"] == "PROTOBUF"
    assert "message Types" in result["schema"]
    serialized = api.ok("GET", f"/schemas/ids/{response['id']}?format=serialized")["schema"]
    assert b"Types" in base64.b64decode(serialized, validate=True)
    assert sorted(api.ok("GET", "/schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]


def test_a_referenced_version_cannot_be_deleted(api: Api, subject: str) -> None:
    item, order = f"{subject}-item", f"{subject}-order"
    api.ok("POST", f"/subjects/{item}/versions", record("n", name="RefItem"))
    fields = [{"name": "item", "type": "RefItem"}]
    body = {
        "schema": json.dumps({"type": "record", "name": "RefOrder", "fields": fields}),
        "references": [{"name": "RefItem", "subject": item, "version": 1}],
    }
    id_ = api.ok("POST", f"/subjects/{order}/versions", body)["id"]
    assert api.ok("GET", f"/schemas/ids/{id_}")["references"] == body["references"]
    resolved = api.ok("GET", f"/schemas/ids/{id_}?format=resolved")["schema"]
    assert json.loads(resolved)["fields"][0]["type"]["name"] == "RefItem"
    alone = {"schema": resolved}  # as in a class that was compiled from both
    assert api.ok("POST", f"/subjects/{order}", alone)["id"] == id_
    assert api.ok("POST", f"/subjects/{order}/versions", alone)["id"] == id_
    assert api.ok("GET", f"/subjects/{item}/versions/1/referencedby") == [id_]
    assert api.error_code("DELETE", f"/subjects/{item}/versions/1") == 42206
    missing = {**body, "references": [{"name": "RefItem", "subject": item, "version": 9}]}
    assert api.error_code("POST", f"/subjects/{order}/versions", missing) == 42201


def test_soft_deleted_versions_are_listed_if_requested(api: Api, subject: str) -> None:
    path = f"/subjects/{subject}"
    for body in (record("x"), record()):
        api.ok("POST", f"{path}/versions", body)
    assert api.ok("DELETE", f"{path}/versions/1") == 1
    assert api.ok("GET", f"{path}/versions") == [2]
    assert api.ok("GET", f"{path}/versions?deleted=true") == [1, 2]
    assert api.ok("GET", f"{path}/versions?deletedOnly=true") == [1]
    assert api.ok("GET", f"{path}/versions?deletedAsNegative=true") == [-1, 2]
    assert api.error_code("GET", f"{path}/versions/1") == 40402
    assert api.ok("GET", f"{path}/versions/1?deleted=true")["deleted"] is True
    assert api.error_code("POST", path, record("x")) == 40403
    assert api.ok("POST", f"{path}?deleted=true", record("x"))["version"] == 1
    assert api.ok("DELETE", path) == [2]
    assert api.error_code("GET", f"{path}/versions") == 40401
    assert subject not in api.ok("GET", f"/subjects?subjectPrefix={subject}")
    assert subject in api.ok("GET", f"/subjects?subjectPrefix={subject}&deleted=True")
    assert subject in api.ok("GET", f"/subjects?subjectPrefix={subject}&deletedOnly=true")
    assert api.ok("DELETE", f"{path}?permanent=true") == [1, 2]
    assert api.error_code("GET", f"{path}/versions?deleted=true") == 40401


def test_lists_are_paginated_by_offset_and_limit(api: Api, subject: str) -> None:
    names = [f"{subject}-{letter}" for letter in "abc"]
    for name in names:
        api.ok("POST", f"/subjects/{name}/versions", record("x"))
    assert api.ok("GET", f"/subjects?subjectPrefix={subject}&offset=0&limit=-1") == names
    assert api.ok("GET", f"/subjects?subjectPrefix={subject}&offset=1&limit=1") == names[1:2]
    api.ok("POST", f"/subjects/{names[0]}/versions", record())
    schemas = api.ok("GET", f"/schemas?subjectPrefix={subject}")
    assert [(schema["subject"], schema["version"]) for schema in schemas] == [
        (names[0], 1),
        (names[0], 2),
        (names[1], 1),
        (names[2], 1),
    ]
    latest = api.ok("GET", f"/schemas?subjectPrefix={subject}&latestOnly=true&limit=1")
    assert [item["version"] for item in latest] == [2]


def test_schemas_of_two_contexts_are_separate(api: Api, subject: str) -> None:
    inside = f":.{subject}:orders"
    response = api.ok("POST", f"/subjects/{inside}/versions", record("context"))
    assert response["id"] == 1
    assert f".{subject}" in api.ok("GET", "/contexts")
    assert api.ok("GET", f"/contexts/{subject}/subjects") == [inside]
    assert inside in api.ok("GET", "/subjects")
    for every in ("/subjects?subjectPrefix=:*:", "/schemas?subjectPrefix=:*:ord"):
        assert inside.encode() in api("GET", every).content
    for default in ("/subjects?subjectPrefix=", "/subjects?subjectPrefix=:.:", "/schemas"):
        assert inside.encode() not in api("GET", default).content
    prefixed = api.ok("GET", f"/contexts/.{subject}/subjects/orders/versions/1")
    assert prefixed["subject"] == inside
    assert api.ok("GET", f"/contexts/:.{subject}:/schemas/ids/1")["guid"] == response["guid"]
    assert api.ok("GET", f"/schemas/ids/1?subject=:.{subject}:")["guid"] == response["guid"]
    assert api.ok("PUT", f"/contexts/{subject}/config", {"compatibility": "NONE"})
    level = api.ok("GET", f"/config/{inside}?defaultToGlobal=true")["compatibilityLevel"]
    assert level == "NONE"
    assert api.error_code("DELETE", f"/contexts/:.{subject}:") == 42211


def test_an_alias_stands_for_another_subject(api: Api, subject: str) -> None:
    api.ok("POST", f"/subjects/{subject}/versions", record("alias"))
    api.ok("PUT", f"/config/{subject}-short", {"alias": subject})
    result = api.ok("GET", f"/subjects/{subject}-short/versions/latest")
    assert result["subject"] == subject
    by_id = api.ok("GET", f"/schemas/ids/{result['id']}?subject={subject}-short")
    assert (by_id["subject"], by_id["version"]) == (subject, 1)
    listed = api.ok("GET", f"/schemas?subjectPrefix={subject}-short&aliases=true")
    assert [item["aliases"] for item in listed] == [[f"{subject}-short"]]
    assert api.ok("GET", f"/schemas?subjectPrefix={subject}-short") == []


def test_metadata_and_rules_are_stored_and_searchable(api: Api, subject: str) -> None:
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    annotations = {
        "metadata": {"properties": {"owner": "me"}, "tags": {"x": ["PII"]}},
        "ruleSet": {"domainRules": [rule]},
    }
    api.ok("POST", f"/subjects/{subject}/versions", {**record("meta"), **annotations})
    result = api.ok("GET", f"/subjects/{subject}/metadata?key=owner&value=me")
    assert result["metadata"] == annotations["metadata"]
    assert result["ruleSet"]["domainRules"] == [{**rule, "disabled": False}]
    assert api.error_code("GET", f"/subjects/{subject}/metadata?key=owner&value=you") == 40403
    for kind, listed in (("CEL", 1), ("ENCRYPT", 0)):
        path = f"/schemas?subjectPrefix={subject}&ruleType={kind}"
        assert len(api.ok("GET", path)) == listed
    fine = {**rule, "name": "_r-2", "mode": "WRITEREAD", "onFailure": "NONE,DLQ"}
    assert api.ok("POST", f"/subjects/{subject}/versions", ruled(fine))["version"] == 2
    for rules in ([rule, rule], [{**rule, "name": "2r"}], [{**rule, "type": None}]):
        assert api.error_code("POST", f"/subjects/{subject}/versions", ruled(*rules)) == 42210
    both = {**rule, "onFailure": "NONE,DLQ"}
    assert api.error_code("POST", f"/subjects/{subject}/versions", ruled(both)) == 42210


def ruled(*rules: object) -> dict[str, object]:
    return {**record("meta"), "ruleSet": {"domainRules": list(rules)}}


def test_a_version_of_another_context_is_found_if_the_request_names_none(
    api: Api, subject: str
) -> None:
    inside = f":.{subject}:{subject}"
    item = {"type": "fixed", "name": "Size", "size": 1}
    api.ok("POST", f"/subjects/:.{subject}:size/versions", {"schema": json.dumps(item)})
    fields = [{"name": "size", "type": "Size"}]
    refers = {
        "schema": json.dumps({"type": "record", "name": "Order", "fields": fields}),
        "references": [{"name": "Size", "subject": "size", "version": 1}],
    }
    for body in (record(), refers):
        api.ok("PUT", f"/config/{inside}", {"compatibility": "NONE"})
        api.ok("POST", f"/subjects/{inside}/versions", body)
    api.ok("POST", f"/subjects/{subject}/versions", record())
    assert api.ok("GET", f"/subjects/{subject}/versions/1")["subject"] == subject
    result = api.ok("GET", f"/subjects/{subject}/versions/2?referenceFormat=qualified")
    assert result["subject"] == inside
    assert result["references"][0]["subject"] == f":.{subject}:size"


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/1", None, 40401),
        ("GET", "/subjects/none/versions/0", None, 42202),
        ("GET", "/subjects/none/versions/two", None, 42202),
        ("GET", "/subjects/none/versions/1_0", None, 42202),
        ("GET", "/subjects/none/versions/99999999999", None, 42202),
        ("DELETE", "/subjects/none", None, 40401),
        ("GET", "/schemas/ids/99999", None, 40403),
        ("GET", "/schemas/ids/one", None, 404),
        ("GET", "/schemas/guids/none", None, 40403),
        ("POST", "/subjects/none", record("x"), 40401),
        ("POST", "/subjects/bad/versions", b"{not json", 400),
        ("POST", "/subjects/bad/versions", b"[" * 100_000, 400),
        ("POST", "/subjects/bad/versions", b"\xff\xfe{}", 400),
        ("POST", "/subjects/bad/versions", b'{"schema": "\\ud800"}', 400),
        ("POST", "/subjects/bad/versions", [1], 400),
        ("POST", "/subjects/bad/versions", b"", 422),
        ("POST", "/subjects/bad/versions", {}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": 3}, 400),
        ("POST", "/subjects/bad/versions", {"schema": "{"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "schemaType": "XML"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "references": 3}, 400),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "references": [3]}, 400),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "metadata": "x"}, 400),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "id": "one"}, 400),
        ("POST", "/subjects/bad/versions", {"schema": '"int"', "id": 7}, 42205),
        ("POST", "/subjects/__GLOBAL/versions", record("x"), 42208),
        ("POST", "/subjects/a%00b/versions", record("x"), 42208),
        ("GET", "/nothing/here", None, 404),
        ("GET", "/associations/resources/-/topic", None, 404),
        ("PATCH", "/subjects", None, 405),
        ("GET", "/contexts/a:b/subjects", None, 400),
        ("DELETE", "/contexts/a:b", None, 400),
        ("PUT", "/config/__GLOBAL", {"compatibility": "NONE"}, 42208),
        ("PUT", "/mode/a%00b", {"mode": "READWRITE"}, 42208),
        ("GET", "/subjects?offset=x", None, 404),
    ],
)
def test_invalid_requests_get_confluents_error_codes(
    api: Api, method: str, path: str, body: object, code: int
) -> None:
    assert api.error_code(method, path, body) == code


@pytest.mark.parametrize(("method", "status"), [("PATCH", 405), ("OPTIONS", 200)])
def test_a_path_responds_with_its_allowed_methods(api: Api, method: str, status: int) -> None:
    response = api(method, "/subjects/a/versions")
    assert (response.status, response.allow) == (status, "GET, HEAD, OPTIONS, POST")


def test_a_body_that_is_too_large_is_rejected(api: Api) -> None:
    assert api.error_code("POST", "/subjects/huge/versions", b" " * (17 * 2**20)) == 413


def test_a_body_that_does_not_arrive_times_out(
    schema_registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.registry.api.request_parsing.BODY_TIMEOUT_S", 0.1)
    for promised, status in ((1_000, b"408"), (10**10, b"413")):
        with half_a_request(schema_registry.url, promised) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 " + status)


def test_content_types_are_negotiated(api: Api) -> None:
    v1 = "application/vnd.schemaregistry.v1+json"
    assert api("GET", "/subjects").content_type == v1
    assert api("GET", "/subjects", Accept="*/*").content_type == v1
    plain = api("GET", "/subjects", Accept="text/html;q=0.9, application/json;q=0.8")
    assert plain.content_type == "application/json"
    refused = ("text/html", "application/json;q=0", "*/*;q=0", "application/json;q=x", "text/*")
    for accept in refused:
        assert api.error_code("GET", "/subjects", Accept=accept) == 406
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert api.error_code("POST", "/subjects/form/versions", record("x"), **form) == 415
    charset = {"Content_Type": "application/json; charset=utf-8"}
    assert api("POST", "/subjects/charset/versions", record("x"), **charset).status == 200


@pytest.mark.parametrize(
    "accept",
    [
        "*",
        "*; q=.2",
        "*/*;q=0.5",
        "application/*",
        "",
        "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",  # of Java's HttpURLConnection
        "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json;q=0.9,"
        " application/json; q=0.8",
        "application/json; Q = 0.1, application/vnd.schemaregistry.v1+json",
    ],
)
def test_wildcards_and_several_content_types_are_accepted(api: Api, accept: str) -> None:
    response = api("GET", "/subjects", Accept=accept)
    assert response.status == 200
    assert response.content_type == "application/vnd.schemaregistry.v1+json"


def test_references_of_references_need_no_particular_names(api: Api, subject: str) -> None:
    def body(name: str, used: str | None, references: list[tuple[str, str]]) -> dict[str, object]:
        fields = [{"name": "f", "type": f"chain.{used}" if used else "int"}]
        text = {"type": "record", "name": name, "namespace": "chain", "fields": fields}
        named = [
            {"name": reference, "subject": f"{subject}-{of}", "version": 1}
            for reference, of in references
        ]
        return {"schema": json.dumps(text), "references": named}

    for name, used, references in (
        ("Street", None, []),
        ("Address", "Street", [("z-street", "Street")]),
        ("Person", "Address", [("a-address", "Address")]),
    ):
        api.ok("POST", f"/subjects/{subject}-{name}/versions", body(name, used, references))
    direct_first = [("m-person", "Person"), ("z-street", "Street")]
    path = f"/subjects/{subject}-Order"
    id_ = api.ok("POST", f"{path}/versions", body("Order", "Person", direct_first))["id"]
    resolved = json.loads(api.ok("GET", f"/schemas/ids/{id_}?format=resolved")["schema"])
    person = resolved["fields"][0]["type"]
    assert person["fields"][0]["type"]["fields"][0]["type"]["name"] == "Street"


def test_endpoints_that_are_gaps_are_not_found(api: Api, subject: str) -> None:
    body = {**record("x"), "schemaTagsToAdd": [{"tags": ["PII"]}]}
    api.ok("POST", f"/subjects/{subject}/versions", body)
    version = f"/subjects/{subject}/versions/1"
    found = api.ok("GET", f"{version}?findTags=true")
    assert found == api.ok("GET", version)
    assert api.error_code("POST", f"{version}/tags", {}) == 404
    for path in ("/exporters", "/associations", "/dek-registry/v1/keks"):
        assert api.error_code("GET", path) == 404
