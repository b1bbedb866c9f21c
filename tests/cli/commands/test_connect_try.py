"""`barnabas connect try`: errors of settings, and the first rows of sources and sinks."""

import json
from pathlib import Path

from tests.cli.conftest import Barnabas

from barnabas import Producer
from barnabas.testing import Broker

TEXT = "org.apache.kafka.connect.storage.StringConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"


def test_all_errors_of_settings_are_shown(barnabas: Barnabas) -> None:
    result = barnabas(
        *("connect", "try", "lines", "connector.class=FileStreamSource", "batch.size=none"),
        *("transforms=up", "transforms.up.type=HoistFeld", "errors.tolerance=some"),
    )
    assert result.exit_code == 1
    shown = {line.partition(": ")[0] for line in result.stdout.splitlines()}
    assert shown == {"topic", "batch.size", "transforms.up.type", "errors.tolerance"}
    assert result.stderr == "Error: lines has 4 errors in its settings\n"


def test_errors_of_settings_are_printed_as_json(barnabas: Barnabas) -> None:
    arguments = ("connect", "try", "lines", "connector.class=FileStreamSource", "--json")
    result = barnabas(*arguments, "file=x")
    (error,) = json.loads(result.stdout)["setting_errors"]
    assert error["setting"] == "topic"


def test_an_unknown_connector_is_an_error_that_names_the_nearest(barnabas: Barnabas) -> None:
    result = barnabas("connect", "try", "lines", "connector.class=FileStreamSorce", "topic=t")
    assert result.exit_code == 1
    assert "Did you mean FileStreamSource?" in result.stderr


def test_the_rows_of_a_source_are_shown_as_they_would_be_written(
    barnabas: Barnabas, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("tea\njam\noil\n")
    file = tmp_path / "lines.json"
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": "lines",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "hoist,route",
        "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.route.type": f"{TRANSFORMS}.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "shop-$1",
    }
    file.write_text(json.dumps({"name": "lines", "config": config}))
    result = barnabas("connect", "try", file, "--records", "2", "--json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert [row["value"] for row in shown["records"]] == ['{"line":"tea"}', '{"line":"jam"}']
    assert {row["topic"] for row in shown["records"]} == {"shop-lines"}
    table = barnabas("connect", "try", file).stdout.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITION", "OFFSET", "KEY", "VALUE"]
    assert len(table) == 4


def test_no_schema_is_registered(barnabas: Barnabas, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("tea\n")
    result = barnabas(
        *("connect", "try", "lines", "connector.class=FileStreamSource", f"file={lines}"),
        *("topic=lines", "value.converter=AvroConverter"),
        "value.converter.schema.registry.url=http://localhost:1",
    )
    assert result.exit_code == 0, result.stderr
    assert "value.converter is not run, because it would register schemas" in result.stdout


def test_a_sink_shows_the_first_records_of_its_topics_and_those_that_fail(
    barnabas: Barnabas, kafka_broker: Broker, kafka_topic: str
) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for value in ('{"id": 1, "price": "2.5"}', "not json", '{"id": 2, "price": "much"}'):
        producer.produce(kafka_topic, value, key="k", partition=0)
    producer.flush()
    result = barnabas(
        *("connect", "try", "out", "connector.class=FileStreamSink", f"topics={kafka_topic}"),
        *("-b", kafka_broker.bootstrap_servers, "--json", "file=/nowhere/out"),
        *("key.converter=StringConverter", "value.converter=JsonConverter"),
        *("value.converter.schemas.enable=false", "transforms=cast"),
        f"transforms.cast.type={TRANSFORMS}.Cast$Value",
        "transforms.cast.spec=price:float64",
    )
    assert result.exit_code == 1
    assert result.stderr == "Error: 2 records failed\n"
    shown = json.loads(result.stdout)
    assert [(row["offset"], row["key"], row["value"]) for row in shown["records"]] == [
        (0, "k", {"id": 1, "price": 2.5})
    ]
    assert [(error["offset"], error["stage"]) for error in shown["errors"]] == [
        (1, "VALUE_CONVERTER"),
        (2, "TRANSFORMATION"),
    ]


def test_a_topic_that_does_not_exist_is_an_error(barnabas: Barnabas, kafka_broker: Broker) -> None:
    result = barnabas(
        *("connect", "try", "out", "connector.class=FileStreamSink", "topics=missing"),
        *("-b", kafka_broker.bootstrap_servers),
    )
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no topic missing.\n"
