"""`barnabas schemas`, and `produce` and `consume` with a schema registry."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.cli.operations.avro_json import from_json
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.schemas import parse_reference
from barnabas.cli.root_command import ExitStatus, barnabas
from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "raw", "type": "bytes", "default": "\x00"},
    ],
}
USER = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
EVENT = 'syntax = "proto3"; message Event { string name = 1; int32 count = 2; } message Other {}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[str]:
    with SchemaRegistry(broker.bootstrap_servers, replication_factor=1) as registry:
        yield registry.url


Call = Callable[..., Result]

ORDERS = ['{"id": 1, "note": "hi", "raw": "é"}', '{"id": 2, "note": null, "raw": ""}']


@pytest.fixture
def call(broker: Broker, registry: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("BARNABAS_SCHEMA_REGISTRY", registry)
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVER", broker.bootstrap_servers)

    def call(*words: object, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(barnabas, [str(word) for word in words], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return call


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    required = {"name": "must", "type": "string"}
    changed = ORDER | {"fields": [*ORDER["fields"], required]}  # type: ignore[misc]
    (tmp_path / "changed.avsc").write_text(json.dumps(changed))
    (tmp_path / "user.json").write_text(json.dumps(USER))
    (tmp_path / "event.proto").write_text(EVENT)
    return tmp_path


def test_a_schema_is_registered_listed_shown_and_deleted(call: Call, files: Path) -> None:
    registered = call("schemas", "register", "shop-value", files / "order.avsc", "--json")
    fields = json.loads(registered.output)
    assert (fields["subject"], fields["version"]) == ("shop-value", 1)
    assert call("schemas", "list", "shop.*").output.splitlines() == [
        "SUBJECT     TYPE  LATEST VERSION  ID",
        f"shop-value  AVRO  1               {fields['id']}",
    ]
    assert json.loads(call("schemas", "show", "shop-value").output) == ORDER
    shown = call("schemas", "show", "--id", fields["id"], "--json")
    assert json.loads(json.loads(shown.output)["schema"]) == ORDER
    refused = call("schemas", "delete", "shop-value")
    assert refused.exit_code == ExitStatus.FAILED
    assert "confirm with --yes" in refused.stderr
    deleted = call("schemas", "delete", "shop-value", "--permanent", "--yes")
    assert deleted.output == "shop-value version 1 deleted.\n"
    gone = call("schemas", "show", "shop-value")
    assert (gone.exit_code, gone.stderr) == (1, "Error: Subject 'shop-value' not found.\n")


def test_an_incompatible_schema_is_reported_with_its_reasons(call: Call, files: Path) -> None:
    call("schemas", "register", "checked-value", files / "order.avsc")
    good = call("schemas", "check", "checked-value", files / "order.avsc")
    assert good.output == "The schema is compatible with checked-value (BACKWARD).\n"
    bad = call("schemas", "check", "checked-value", files / "changed.avsc")
    assert bad.exit_code == ExitStatus.FAILED
    assert bad.stdout.startswith("The field 'must' at path '/fields/3' of the new schema")
    assert bad.stderr == "Error: the schema is not compatible with checked-value (BACKWARD)\n"
    rejected = call("schemas", "register", "checked-value", files / "changed.avsc")
    assert rejected.exit_code == ExitStatus.FAILED
    assert rejected.stderr.splitlines() == [
        "Error: the schema is not compatible with checked-value (BACKWARD):",
        f"  {bad.stdout.rstrip()}",
    ]
    call("schemas", "register", "written-value", files / "order.avsc")
    changed = ("produce", "written", "--schema", files / "changed.avsc")
    assert "not compatible with written-value (BACKWARD):\n  The" in call(*changed, stdin="").stderr
    assert "FULL" in call("schemas", "level", "checked-value", "--set", "full").output
    assert call("schemas", "level", "checked-value").output == "checked-value: FULL\n"
    assert call("schemas", "level").output == "all subjects: BACKWARD\n"


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        (
            "order.avsc",
            ['{"id": 1, "note": "hi", "raw": "é"}', '{"id": 2, "note": null, "raw": ""}'],
        ),
        ("user.json", ['{"name": "Ada"}', '{"name": "日"}']),
    ],
)
def test_json_is_written_with_a_schema_and_read_as_json(
    call: Call, files: Path, file: str, lines: list[str]
) -> None:
    topic = file.partition(".")[0]
    text = "".join(f"{line}\n" for line in lines)
    assert call("produce", topic, "--schema", files / file, stdin=text).exit_code == 0
    assert call("produce", topic, stdin=text).exit_code == 0
    assert call("consume", topic, "-e").stdout.splitlines() == lines * 2
    framed = call("consume", topic, "-e", "-n", "1", "--registry", "").stdout_bytes
    assert framed[0] == 0
    first, *_ = call("consume", topic, "-e", "--json").stdout.splitlines()
    assert json.loads(first)["value"] == json.loads(lines[0])


def test_protobuf_is_written_and_read_with_its_first_message(call: Call, files: Path) -> None:
    (files / "event.proto").write_text(EVENT.replace("message Other {} ", ""))
    call(
        "produce", "event", "--schema", files / "event.proto", stdin='{"name": "up", "count": 3}\n'
    )
    assert json.loads(call("consume", "event", "-e").stdout) == {"name": "up", "count": 3}
    unknown = call("produce", "event", stdin='{"names": "up"}\n')
    assert unknown.exit_code == ExitStatus.FAILED
    assert 'line 1: Message type "Event" has no field named "names"' in unknown.stderr


def test_keys_have_their_own_schema_or_are_text(call: Call, files: Path) -> None:
    (files / "id.avsc").write_text('"long"')
    record = '7={"name": "Ada"}\n'
    options = ("-k", "=", "--schema", files / "user.json")
    call("produce", "plainly", *options, stdin=record)
    call("produce", "keyed", *options, "--key-schema", files / "id.avsc", stdin=record)
    layout = ("-e", "-f", r"%k %v\n")
    for topic in "plainly", "keyed":
        assert call("consume", topic, *layout).stdout == '7 {"name": "Ada"}\n'
    assert len(call("consume", "keyed", "-e", "-f", "%k", "--registry", "").stdout_bytes) == 6


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON: "),
        ('{"id": "x"}', "id: 'x' is not of type long"),
        ('{"id": 1, "idd": 2}', "idd: Order has only the fields id, note, raw"),
        ('{"note": "x"}', "id is missing, and has no default"),
        ('{"id": 1, "note": 3}', "note: 3 is not of type null or string"),
        ('{"id": 99999999999999999999}', "id: 99999999999999999999 is not of type long"),
    ],
)
def test_a_line_that_does_not_match_is_reported_with_its_number_and_field(
    call: Call, files: Path, line: str, reason: str
) -> None:
    schema = files / "order.avsc"
    result = call("produce", "strict", "--schema", schema, stdin=f'{{"id": 1}}\n{line}\n')
    assert result.exit_code == ExitStatus.FAILED
    assert f"Error: line 2: {reason}" in result.stderr
    assert result.stderr.endswith("; 1 record before it was produced\n")


def test_a_line_without_a_key_is_reported_with_the_records_before_it(call: Call) -> None:
    result = call("produce", "keys", "-k", ":", "--registry", "", stdin="a:1\nb:2\nc\n")
    assert result.exit_code == ExitStatus.FAILED
    assert "on line number 3" in result.stderr
    assert result.stderr.endswith("; 2 records before it were produced\n")


def test_records_of_confluent_serializers_are_read(
    call: Call, broker: Broker, registry: str
) -> None:
    serialize = AvroSerializer(SchemaRegistryClient({"url": registry}), json.dumps(ORDER))
    value = serialize({"id": 5, "raw": b"\0"}, SerializationContext("theirs", MessageField.VALUE))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for content in (value, b"plain", b"\x00\x00\x00\x27\x0fx", value[:5] if value else b""):
        producer.produce("theirs", content)
    producer.flush()
    result = call("consume", "theirs", "-e")
    assert result.stdout_bytes.splitlines()[:2] == [
        b'{"id": 5, "note": null, "raw": "\\u0000"}',
        b"plain",
    ]
    notes = result.stderr.splitlines()
    assert notes[:2] == [
        "Note: values of theirs without a schema id are shown as text.",
        "Note: the registry has no schema 9999: its records are shown as text.",
    ]
    assert notes[2].startswith("Note: theirs-0, offset 3: the value does not match schema")


def test_a_topic_without_a_schema_and_an_unreachable_registry_are_reported(call: Call) -> None:
    none = call("produce", "schemaless", stdin="{}\n")
    assert none.exit_code == ExitStatus.FAILED
    assert "schemaless-value has no schema in the registry" in none.stderr
    down = call("schemas", "list", "--registry", "http://127.0.0.1:1")
    assert down.exit_code == ExitStatus.UNREACHABLE
    assert "127.0.0.1:1: Connection refused" in down.stderr
    assert call("schemas", "list", "--registry", "here").exit_code == ExitStatus.FAILED
    secret = call("schemas", "list", "--registry", "user:SECRET@host")
    assert secret.stderr == "Error: --registry: url 'host' must begin with http:// or https://\n"
    usage = call("produce", "x", "--registry", "", "--schema-id", "1", stdin="")
    assert usage.exit_code == ExitStatus.USAGE


def test_a_missing_extra_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("a schema registry's client needs x: pip install 'barnabas[registry]'")

    monkeypatch.setattr("barnabas.schema_registry.client.http.urllib3", missing)
    result = call("schemas", "list")
    assert result.exit_code == ExitStatus.FAILED
    assert "pip install 'barnabas[registry]'" in result.stderr


def test_a_reference_names_a_version_of_a_subject() -> None:
    reference = parse_reference("http://a/b.json:shared:3")
    assert (reference.name, reference.subject, reference.version) == (
        "http://a/b.json",
        "shared",
        3,
    )
    with pytest.raises(CommandError, match="NAME:SUBJECT:VERSION"):
        parse_reference("a:b")


def test_json_of_nested_avro_types_is_converted() -> None:
    child = {"type": "record", "name": "Child", "fields": [{"name": "at", "type": DATE}]}
    schema = {
        "type": "record",
        "name": "Parent",
        "fields": [
            {"name": "list", "type": {"type": "array", "items": ["null", child]}},
            {"name": "map", "type": {"type": "map", "values": "Child"}},
            {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        ],
    }
    value = {"list": [None, {"at": "2026-11-16"}], "map": {"a": {"at": 3}}, "size": "S"}
    converted = from_json(value, schema)
    assert converted["list"][1]["at"].isoformat() == "2026-11-16"
    assert converted["map"] == {"a": {"at": 3}}
    with pytest.raises(ValueError, match=r"list\[0\]\.at: 'soon' is not of type date"):
        from_json(value | {"list": [{"at": "soon"}]}, schema)
    with pytest.raises(ValueError, match="size: 'M' is none of S, L"):
        from_json(value | {"size": "M"}, schema)


DATE = {"type": "int", "logicalType": "date"}
