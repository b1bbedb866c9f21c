"""Validation of the same settings by the real worker and by ours."""

from typing import Any

import pytest
from tests.conformance.connect.comparison import (
    comparable_definition,
    comparable_validation,
    is_own_setting,
)
from tests.conformance.connect.workers import KafkaWorker
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.connect.rest.app import create_app

pytestmark = pytest.mark.peer

_KAFKA = "org.apache.kafka.connect"
_JSON = f"{_KAFKA}.json.JsonConverter"
_STRING = f"{_KAFKA}.storage.StringConverter"
_SINK = {"name": "x", "connector.class": "FileStreamSink", "topics": "lines"}
_SOURCE = {"name": "x", "connector.class": "FileStreamSource", "topic": "lines"}


@pytest.fixture(scope="module")
def api() -> AsgiClient:
    """Ours, which needs no herder to validate."""
    return AsgiClient(create_app(FakeHerder(), {"key.converter": _JSON, "value.converter": _JSON}))


CONFIGS: dict[str, dict[str, Any]] = {
    "sink": _SINK,
    "sink of a pattern": {**_SINK, "topics": "", "topics.regex": "l.*"},
    "sink without topics": {"connector.class": "FileStreamSink"},
    "sink with topics and a pattern": {**_SINK, "topics.regex": "l.*"},
    "wrong values": {
        **_SINK,
        "name": "",
        "tasks.max": "0",
        "tasks.max.enforce": "maybe",
        "errors.tolerance": "some",
        "errors.retry.timeout": "1.5",
        "config.action.reload": "x",
        "errors.deadletterqueue.topic.replication.factor": "70000",
        "errors.log.enable": "yes",
    },
    "null values": {**_SINK, "tasks.max": None, "other": None},
    "settings that do not exist": {**_SINK, "other": "x"},
    "converters": {
        **_SINK,
        "key.converter": _STRING,
        "value.converter": _JSON,
        "header.converter": f"{_KAFKA}.storage.SimpleHeaderConverter",
        "value.converter.schemas.enable": "no",
    },
    "converters by alias": {**_SINK, "key.converter": "Json", "value.converter": "String"},
    "converters that do not exist": {
        **_SINK,
        "key.converter": "Nothing",
        "value.converter.schemas.enable": "no",
    },
    "dead letters": {
        **_SINK,
        "errors.deadletterqueue.topic.name": "lines",
        "producer.override.acks": "1",
        "admin.override.client.id": "x",
    },
    "dead letters of a pattern": {
        **_SINK,
        "topics": "",
        "topics.regex": "l.*",
        "errors.deadletterqueue.topic.name": "lines",
    },
    "transforms": {
        **_SINK,
        "transforms": "route,cast,filter",
        "transforms.route.type": f"{_KAFKA}.transforms.RegexRouter",
        "transforms.route.regex": "a",
        "transforms.route.replacement": "b",
        "transforms.route.predicate": "by_topic",
        "transforms.cast.type": f"{_KAFKA}.transforms.Cast$Value",
        "transforms.cast.spec": "a:int8",
        "transforms.filter.type": "Filter",
        "transforms.filter.negate": "true",
        "transforms.filter.predicate": "by_topic",
        "predicates": "by_topic",
        "predicates.by_topic.type": "TopicNameMatches",
        "predicates.by_topic.pattern": "l.*",
    },
    "wrong transforms": {
        **_SINK,
        "transforms": "a,b,a,c,d,e",
        "transforms.a.type": "Nothing",
        "transforms.c.type": "Filter",
        "transforms.c.negate": "true",
        "transforms.d.type": "RegexRouter",
        "transforms.e.type": "ValueToKey",
        "predicates": "p,q",
        "predicates.p.type": "HasHeaderKey",
    },
    "source": _SOURCE,
    "source without topic": {"connector.class": "FileStreamSource", "name": "x"},
    "wrong values of a source": {
        **_SOURCE,
        "batch.size": "x",
        "exactly.once.support": "x",
        "transaction.boundary": "y",
        "transaction.boundary.interval.ms": "-1",
        "offsets.storage.topic": " ",
    },
    "transactions of the connector": {**_SOURCE, "transaction.boundary": "connector"},
    "source with overrides": {**_SOURCE, "producer.override.linger.ms": "5"},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_results_are_equal(name: str, kafka_worker: KafkaWorker, api: AsgiClient) -> None:
    config = CONFIGS[name]
    plugin = config["connector.class"]
    path = f"/connector-plugins/{plugin}/config/validate"
    theirs, ours = kafka_worker.api("PUT", path, config), api("PUT", path, config)
    assert ours.status == theirs.status == 200
    is_source = plugin == "FileStreamSource"
    expected = comparable_validation(theirs.json, is_source=is_source)
    result = comparable_validation(ours.json, is_source=is_source)
    for part in expected:
        assert result[part] == expected[part], part


@pytest.mark.parametrize("plugin", ["FileStreamSink", "FileStreamSource", "RegexRouter", "Json"])
def test_definitions_are_equal(plugin: str, kafka_worker: KafkaWorker, api: AsgiClient) -> None:
    path = f"/connector-plugins/{plugin}/config"
    theirs, ours = (
        {
            each["name"]: comparable_definition(each)
            for each in client("GET", path).json
            if not is_own_setting(each["name"], is_source=plugin == "FileStreamSource")
        }
        for client in (kafka_worker.api, api)
    )
    assert ours == theirs


def test_plugins_of_kafka_are_listed(kafka_worker: KafkaWorker, api: AsgiClient) -> None:
    path = "/connector-plugins?connectorsOnly=false"
    theirs, ours = (
        [(each["type"], each["class"]) for each in client("GET", path).json]
        for client in (kafka_worker.api, api)
    )
    assert [each for each in ours if each in theirs] == theirs


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("FileStreamSink", {"connector.class": "FileStreamSource"}),
        (
            "FileStreamSink",
            {"connector.class": f"{_KAFKA}.file.FileStreamSinkConnector", "topics": "a"},
        ),
        (f"{_KAFKA}.file.FileStreamSinkConnector", {"connector.class": "FileStreamSink"}),
        ("FileStreamSink", []),
        ("FileStreamSink", b"{"),
    ],
)
def test_wrong_requests_are_equal(
    kafka_worker: KafkaWorker, api: AsgiClient, path: str, body: object
) -> None:
    path = f"/connector-plugins/{path}/config/validate"
    theirs, ours = kafka_worker.api("PUT", path, body), api("PUT", path, body)
    assert ours.status == theirs.status
    if theirs.status == 400:
        assert ours.json == theirs.json


@pytest.mark.parametrize(
    "config", [{}, {"connector.class": "Nothing"}], ids=["without class", "unknown class"]
)
def test_a_wrong_class_is_a_bad_request_here(
    kafka_worker: KafkaWorker, api: AsgiClient, config: dict[str, str]
) -> None:
    """Connect reports them as errors of the server, unless a connector is created."""
    path = "/connector-plugins/Nothing/config/validate"
    theirs, ours = kafka_worker.api("PUT", path, config), api("PUT", path, config)
    assert (ours.status, theirs.status) == (400, 500)
    beginning = ours.json["message"].partition(", available")[0]
    assert beginning in theirs.json["message"]
