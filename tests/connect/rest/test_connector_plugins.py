from typing import Any

import pytest
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.plugins_of_tests import MODULE

from barnabas import __version__

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
DEFINITION_FIELDS = [
    "name",
    "type",
    "required",
    "default_value",
    "importance",
    "documentation",
    "group",
    "order_in_group",
    "width",
    "display_name",
    "dependents",
]


def test_connectors_are_listed(api: AsgiClient) -> None:
    plugins = api("GET", "/connector-plugins").json
    assert {"class": FILE_SINK, "type": "sink", "version": __version__} in plugins
    assert {plugin["type"] for plugin in plugins} == {"sink", "source"}


def test_all_plugins_are_listed_by_type(api: AsgiClient) -> None:
    plugins = api("GET", "/connector-plugins?connectorsOnly=false").json
    types = [plugin["type"] for plugin in plugins]
    assert list(dict.fromkeys(types)) == [
        "sink",
        "source",
        "transformation",
        "predicate",
        "converter",
        "header_converter",
    ]


def test_a_connectors_own_settings_come_first(api: AsgiClient) -> None:
    settings = api("GET", f"/connector-plugins/{MODULE}:FileSource/config").json
    assert [list(setting) for setting in settings] == [DEFINITION_FIELDS] * len(settings)
    names = [setting["name"] for setting in settings]
    assert names[:5] == ["topic", "batch.size", "format", "name", "connector.class"]
    assert "exactly.once.support" in names
    assert "topics" not in names
    topic, batch_size, format_, *_ = settings
    assert (topic["required"], topic["default_value"]) == (True, None)
    assert (topic["group"], topic["order_in_group"]) == (None, -1)
    assert (batch_size["default_value"], batch_size["order_in_group"]) == ("2000", 1)
    assert (format_["group"], format_["order_in_group"]) == ("Reading", 2)


def test_a_transform_has_only_its_own_settings(api: AsgiClient) -> None:
    settings = api("GET", f"/connector-plugins/{MODULE}:Rename/config").json
    assert [setting["name"] for setting in settings] == ["limit", "to"]


def test_an_unknown_plugin_is_not_found(api: AsgiClient) -> None:
    response = api("GET", "/connector-plugins/Nope/config")
    assert (response.status, response.message) == (404, "Unknown plugin Nope.")


def test_validation_returns_definitions_and_values(api: AsgiClient, sink: dict[str, Any]) -> None:
    config = {**sink, "name": "x", "password": "secret", "tasks.max": "0", "unknown": None}
    response = api("PUT", f"/connector-plugins/{MODULE}:FileSink/config/validate", config)
    assert response.status == 200
    result = response.json
    assert (result["name"], result["error_count"]) == (sink["connector.class"], 2)
    groups = ["Common", "Transforms", "Predicates", "Error Handling", "Execution"]
    assert result["groups"] == groups
    configs = {each["value"]["name"]: each for each in result["configs"]}
    assert configs["unknown"] == {
        "definition": None,
        "value": {
            "name": "unknown",
            "value": None,
            "recommended_values": [],
            "errors": ["Null value can not be supplied as the configuration value."],
            "visible": True,
        },
    }
    assert configs["password"]["value"]["value"] == "[hidden]"
    assert configs["tasks.max"]["value"]["errors"] == [
        "Invalid value 0 for configuration tasks.max: Value must be at least 1"
    ]
    json = "org.apache.kafka.connect.json.JsonConverter"
    assert configs["key.converter"]["value"]["value"] == json
    assert json in configs["key.converter"]["value"]["recommended_values"]


@pytest.mark.parametrize(
    ("plugin", "config", "message"),
    [
        (
            "FileStreamSink",
            {"connector.class": "FileStreamSource"},
            "Included connector type FileStreamSource does not match request type FileStreamSink",
        ),
        ("Nope", {"a": "b"}, "Connector config {a=b} contains no connector type"),
        (
            "Nope",
            {"connector.class": "Nope"},
            "Failed to find any class that implements Connector and which name matches Nope, "
            "available connectors are: ",
        ),
    ],
)
def test_a_wrong_class_is_a_bad_request(
    api: AsgiClient, plugin: str, config: object, message: str
) -> None:
    response = api("PUT", f"/connector-plugins/{plugin}/config/validate", config)
    assert response.status == 400
    assert response.message.startswith(message)


def test_a_class_may_be_named_by_its_full_name_or_alias(
    api: AsgiClient, sink: dict[str, Any]
) -> None:
    for plugin in ("FileSink", f"{MODULE}:FileSink", "FileSinkConnector"):
        path = f"/connector-plugins/{plugin}/config/validate"
        assert api("PUT", path, sink).status == 200, plugin


def test_a_validation_that_fails_is_an_error(api: AsgiClient) -> None:
    config = {"connector.class": f"{MODULE}:Failing", "topic": "t"}
    response = api("PUT", "/connector-plugins/Failing/config/validate", config)
    assert response.status == 500
    assert response.message == "Failing cannot validate: OSError: the target is down"
