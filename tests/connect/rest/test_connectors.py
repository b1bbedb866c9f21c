import json
from http import HTTPStatus
from typing import Any

import pytest
from tests.connect.rest.asgi_client import HOST, AsgiClient
from tests.connect.rest.fake_herder import WORKER_ID, FakeHerder

from barnabas.connect.model import TargetState

NOT_FOUND = "HTTP 404 Not Found"


@pytest.fixture
def created(api: AsgiClient, sink: dict[str, Any]) -> str:
    assert api("POST", "/connectors", {"name": "files", "config": sink}).status == 201
    return "files"


class TestCreate:
    def test_returns_the_connector_and_its_address(
        self, api: AsgiClient, sink: dict[str, Any]
    ) -> None:
        response = api("POST", "/connectors", {"name": " files ", "config": sink})
        assert response.status == 201
        assert response.headers["location"] == f"http://{HOST}/connectors/files"
        assert response.json == {
            "name": "files",
            "config": {**sink, "name": "files"},
            "tasks": [{"connector": "files", "task": 0}],
            "type": "sink",
        }

    def test_settings_may_be_numbers_and_booleans(
        self, api: AsgiClient, herder: FakeHerder, sink: dict[str, Any]
    ) -> None:
        given = f'{json.dumps(sink)[:-1]}, "tasks.max":2, "a":1.50, "b":true}}'
        body = f'{{"name":"x", "config":{given}}}'.encode()
        assert api("POST", "/connectors", body).status == 201
        stored = herder.configs["x"]
        assert (stored["tasks.max"], stored["a"], stored["b"]) == ("2", "1.50", "true")

    @pytest.mark.parametrize(
        ("text", "target"),
        [
            ("stopped", TargetState.STOPPED),
            ("PAUSED", TargetState.PAUSED),
            ("RUNNING", TargetState.STARTED),
        ],
    )
    def test_initial_state_may_be_any_case(
        self,
        api: AsgiClient,
        herder: FakeHerder,
        sink: dict[str, Any],
        text: str,
        target: TargetState,
    ) -> None:
        body = {"name": "files", "config": sink, "initial_state": text}
        assert api("POST", "/connectors", body).status == 201
        assert herder.targets["files"] is target

    def test_a_second_connector_of_the_name_is_a_conflict(
        self, api: AsgiClient, created: str, sink: dict[str, Any]
    ) -> None:
        response = api("POST", "/connectors", {"name": created, "config": sink})
        assert (response.status, response.message) == (409, "Connector files already exists")

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"", "The request needs a body, and it is empty"),
            (b"{", "The body is not JSON: Expecting property name enclosed in double quotes at "
                   "line 1, column 2"),
            (b"\xff", "The body is not UTF-8 at byte 0"),
            (b"[]", "The body has to be a JSON object, not an array"),
            (b"null", "The body has to be a JSON object, not null"),
            (b"[" * 100_000, "The body is not JSON: "),
            (b'{"config":NaN}', "The body is not JSON: NaN is not a number"),
            (b'{"name":"a"}', "config has to be an object, not null"),
            (b'{"name":[],"config":{}}', "name has to be a string, not an array"),
            (b'{"config":{"a":{}}}', "The value of config.a has to be a string, not an object"),
            (b'{"nam":"a"}', 'Unrecognized field "nam": known are config, initial_state, name'),
            (b'{"name":"a","config":{},"initial_state":"on"}',
             "initial_state has to be one of RUNNING, PAUSED, STOPPED, not on"),
        ],
    )  # fmt: skip
    def test_a_body_that_cannot_be_read_is_an_error_as_in_connect(
        self, api: AsgiClient, body: bytes, message: str
    ) -> None:
        response = api("POST", "/connectors", body)
        assert response.status == 500
        assert response.message.startswith(message)

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (
                {"name": "a", "config": {"x": "y"}},
                "Connector config {x=y, name=a} contains no connector type",
            ),
            (
                {"name": "a", "config": {"name": "b"}},
                "Connector name configuration (b) doesn't match connector name in the URL (a)",
            ),
        ],
    )
    def test_invalid_settings_are_a_bad_request(
        self, api: AsgiClient, body: object, message: str
    ) -> None:
        response = api("POST", "/connectors", body)
        assert (response.status, response.message) == (400, message)

    def test_all_errors_are_in_one_message(self, api: AsgiClient, sink: dict[str, Any]) -> None:
        config = {**sink, "tasks.max": "0", "errors.tolerance": "some", "topics": None}
        response = api("POST", "/connectors", {"name": "", "config": config})
        assert response.status == 400
        assert response.message.splitlines() == [
            "Connector configuration is invalid and contains the following 6 error(s):",
            "Invalid value  for configuration name: String may not be empty",
            "Invalid value 0 for configuration tasks.max: Value must be at least 1",
            "Invalid value some for configuration errors.tolerance: String must be one of: none, "
            "all",
            "Must configure one of topics or topics.regex",
            "Null value can not be supplied as the configuration value.",
            "Must configure one of topics or topics.regex",
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
        ]

    def test_a_body_has_a_limit(self, api: AsgiClient) -> None:
        response = api("POST", "/connectors", b"{}", content_length=str(2**30))
        assert response.status == 413
        response = api("POST", "/connectors", b" " * (16 * 2**20 + 1))
        assert (response.status, response.message) == (
            413,
            "A body may have at most 16777216 bytes",
        )


class TestList:
    def test_names(self, api: AsgiClient, created: str) -> None:
        assert api("GET", "/connectors").json == [created]
        assert api("GET", "/connectors/").json == [created]

    def test_expansions(self, api: AsgiClient, created: str) -> None:
        expanded = api("GET", "/connectors?expand=status&expand=info&expand=other").json
        assert expanded == {
            created: {
                "status": api("GET", f"/connectors/{created}/status").json,
                "info": api("GET", f"/connectors/{created}").json,
            }
        }
        assert api("GET", "/connectors?expand").json == {created: {}}


class TestConfig:
    def test_put_creates_and_replaces(self, api: AsgiClient, sink: dict[str, Any]) -> None:
        first = api("PUT", "/connectors/new/config", sink)
        assert first.status == 201
        assert first.headers["location"] == f"http://{HOST}/connectors/new"
        second = api("PUT", "/connectors/new/config", {**sink, "file": "/tmp/x"})
        assert second.status == 200
        assert "location" not in second.headers
        config = api("GET", "/connectors/new/config")
        assert config.json == {**sink, "file": "/tmp/x", "name": "new"}

    def test_patch_changes_and_removes(
        self, api: AsgiClient, created: str, sink: dict[str, Any]
    ) -> None:
        api("PATCH", f"/connectors/{created}/config", {"file": "/tmp/x", "tasks.max": 2})
        response = api("PATCH", f"/connectors/{created}/config", {"file": None})
        assert response.status == 200
        assert response.json["config"] == {**sink, "name": created, "tasks.max": "2"}

    def test_name_of_another_connector(self, api: AsgiClient, sink: dict[str, Any]) -> None:
        response = api("PUT", "/connectors/a/config", {**sink, "name": "b"})
        assert response.status == 400


class TestNames:
    def test_may_have_slashes_and_any_character(
        self, api: AsgiClient, sink: dict[str, Any]
    ) -> None:
        created = api("POST", "/connectors", {"name": "a/b ü?", "config": sink})
        assert created.headers["location"] == f"http://{HOST}/connectors/a%2Fb%20%C3%BC%3F"
        assert api("GET", "/connectors/a%2Fb%20%C3%BC%3F").json["name"] == "a/b ü?"
        assert api("DELETE", "/connectors/a%2Fb%20%C3%BC%3F").status == 204

    def test_unknown(self, api: AsgiClient) -> None:
        for method, path, message in [
            ("GET", "/connectors/none", "Connector none not found"),
            ("GET", "/connectors/none/config", "Connector none not found"),
            ("GET", "/connectors/none/tasks", "Connector none not found"),
            ("GET", "/connectors/none/offsets", "Connector none not found"),
            ("DELETE", "/connectors/none", "Connector none not found"),
            ("GET", "/connectors/none/status", "No status found for connector none"),
            ("GET", "/connectors/none/tasks/0/status", "No status found for task none-0"),
            ("PUT", "/connectors/none/pause", "Unknown connector none"),
            ("POST", "/connectors/none/restart", "Unknown connector: none"),
        ]:
            response = api(method, path)
            assert (response.status, response.message) == (404, message), path


class TestStatus:
    def test_of_a_connector_and_its_tasks(
        self, api: AsgiClient, herder: FakeHerder, created: str
    ) -> None:
        herder.failed_tasks[created] = "Traceback"
        task = {"id": 0, "state": "FAILED", "worker_id": WORKER_ID, "trace": "Traceback"}
        assert api("GET", f"/connectors/{created}/status").json == {
            "name": created,
            "connector": {"state": "RUNNING", "worker_id": WORKER_ID},
            "tasks": [task],
            "type": "sink",
        }
        assert api("GET", f"/connectors/{created}/tasks/0/status").json == task
        missing = api("GET", f"/connectors/{created}/tasks/1/status")
        assert (missing.status, missing.message) == (404, "No status found for task files-1")

    def test_a_task_that_is_not_a_number_has_no_page(self, api: AsgiClient, created: str) -> None:
        for task in ("x", "-1", "٣", "1" * 30):
            response = api("GET", f"/connectors/{created}/tasks/{task}/status")
            assert (response.status, response.message) == (404, NOT_FOUND)

    def test_task_configs(self, api: AsgiClient, created: str, sink: dict[str, Any]) -> None:
        config = {**sink, "name": created, "task.class": "Task"}
        assert api("GET", f"/connectors/{created}/tasks").json == [
            {"id": {"connector": created, "task": 0}, "config": config}
        ]

    def test_a_connector_without_tasks(self, api: AsgiClient, created: str) -> None:
        assert api("PUT", f"/connectors/{created}/stop").status == HTTPStatus.NO_CONTENT
        status = api("GET", f"/connectors/{created}/status").json
        assert (status["connector"]["state"], status["tasks"]) == ("STOPPED", [])


class TestTargetState:
    @pytest.mark.parametrize(
        ("action", "status", "target"),
        [
            ("pause", 202, TargetState.PAUSED),
            ("resume", 202, TargetState.STARTED),
            ("stop", 204, TargetState.STOPPED),
        ],
    )
    def test_is_set(
        self,
        api: AsgiClient,
        herder: FakeHerder,
        created: str,
        action: str,
        status: int,
        target: TargetState,
    ) -> None:
        response = api("PUT", f"/connectors/{created}/{action}")
        assert (response.status, response.content) == (status, b"")
        assert herder.targets[created] is target


class TestRestart:
    def test_of_the_connector_only_has_no_body(
        self, api: AsgiClient, herder: FakeHerder, created: str
    ) -> None:
        for query in ("", "?includeTasks=banana", "?includeTasks=false&onlyFailed=false"):
            response = api("POST", f"/connectors/{created}/restart{query}")
            assert (response.status, response.content) == (204, b"")
        assert herder.restarted == [(created, (False, False))] * 3

    def test_with_tasks_returns_the_status(
        self, api: AsgiClient, herder: FakeHerder, created: str
    ) -> None:
        response = api("POST", f"/connectors/{created}/restart?includeTasks=TRUE&onlyFailed=true")
        assert response.status == 202
        assert response.json["tasks"][0]["state"] == "RUNNING"
        assert herder.restarted == [(created, (True, True))]

    def test_of_a_task(self, api: AsgiClient, herder: FakeHerder, created: str) -> None:
        assert api("POST", f"/connectors/{created}/tasks/0/restart").status == 204
        missing = api("POST", f"/connectors/{created}/tasks/7/restart")
        assert (missing.status, missing.message) == (404, "Unknown task: files-7")
        assert herder.restarted == [(created, 0)]


class TestTopics:
    def test_are_listed_and_reset(self, api: AsgiClient, herder: FakeHerder, created: str) -> None:
        assert api("GET", f"/connectors/{created}/topics").json == {created: {"topics": ["lines"]}}
        assert api("GET", "/connectors/none/topics").json == {"none": {"topics": []}}
        assert api("PUT", f"/connectors/{created}/topics/reset").status == 202
        assert herder.restarted == [(created, "topics")]

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("topic.tracking.enable", "Topic tracking is disabled."),
            ("topic.tracking.allow.reset", "Topic tracking reset is disabled."),
        ],
    )
    def test_can_be_disabled(
        self, worker: dict[str, str], api: AsgiClient, setting: str, message: str
    ) -> None:
        from barnabas.connect.rest.app import create_app

        restricted = AsgiClient(create_app(FakeHerder(), {setting: "false"}))
        response = restricted("PUT", "/connectors/files/topics/reset")
        assert (response.status, response.message) == (403, message)
