"""Kafka's JsonConverter reads what ours reads, and writes the same bytes."""

import json
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.brokers import PEERS

from barnabas.connect.converters.json import JsonConverter

PROGRAM = Path(__file__).parent / "ConvertJson.java"

pytestmark = pytest.mark.peer

LOGICAL = "org.apache.kafka.connect.data."
PRIMITIVES = ("boolean", "int8", "int16", "int32", "int64", "float", "double", "string", "bytes")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = (
    "",
    "a",
    'quo"te',
    "back\\slash",
    "tab\t\n\r\b\f",
    "\x01\x1f\x7f",
    "é\u20ac",
    "\U0001f600",
    "a/b",
)


def test_documents_with_a_schema_are_written_as_kafka_writes_them() -> None:
    source = random.Random(19)
    documents = [envelope(source) for _ in range(600)]
    for decimal_format in ("BASE64", "NUMERIC"):
        require_same({"schemas.enable": "true", "decimal.format": decimal_format}, documents)


def test_documents_without_a_schema_are_written_as_kafka_writes_them() -> None:
    source = random.Random(20)
    require_same({"schemas.enable": "false"}, [dumps(schemaless(source, 3)) for _ in range(300)])


def test_numbers_are_written_as_kafka_writes_them() -> None:
    source = random.Random(21)
    doubles = [struct.unpack("d", source.randbytes(8))[0] for _ in range(1500)]
    doubles += [round(source.uniform(-1000, 1000), source.randrange(8)) for _ in range(500)]
    doubles += [source.choice((1, -1)) * 10.0**power for power in range(-30, 31)]
    doubles += [5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 9007199254740993.0]
    floats = [struct.unpack("f", source.randbytes(4))[0] for _ in range(1500)]
    floats += [struct.unpack("f", struct.pack("f", 10.0**power))[0] for power in range(-30, 31)]
    documents = [
        dumps({"schema": {"type": name, "optional": False}, "payload": number})
        for name, numbers in (("double", doubles), ("float", floats))
        for number in numbers
        if number - number == 0 and (number != 0 or str(number) != "-0.0")
    ]
    ours = converted({"schemas.enable": "true"}, documents)
    kafkas = converted_by_kafka({"schemas.enable": "true"}, documents)
    for our, kafka in zip(ours, kafkas, strict=True):
        if our != kafka:  # before version 19, Java sometimes wrote more digits than needed
            shorter, longer = json.loads(readable(our)), json.loads(readable(kafka))
            assert len(our) < len(kafka), (shorter, longer)
            assert shorter["payload"] == pytest.approx(longer["payload"], rel=1e-7)


def test_both_reject_the_same_documents() -> None:
    documents = [
        b"{",
        b"[1,]",
        b'{"a" 1}',
        b"nul",
        b"'a'",
        b'"\x01"',
        b'"\\x"',
        b'"\\u12"',
        b"1.",
        b".5",
        b"+1",
        b"1e",
        b"--1",
        b"{1:2}",
        b'{"a":1,}',
        b"\xff",
    ]
    ours = converted({"schemas.enable": "false"}, documents)
    kafkas = converted_by_kafka({"schemas.enable": "false"}, documents)
    assert all(result.startswith("error") for result in kafkas), kafkas
    assert all(result.startswith("error") for result in ours), ours


def test_schemas_that_kafka_rejects_have_its_error_messages() -> None:
    schemas: list[Any] = [
        {},
        {"type": 1},
        {"type": "unknown"},
        {"type": "array"},
        {"type": "map"},
        {"type": "map", "keys": {"type": "string"}},
        {"type": "struct"},
        {"type": "struct", "fields": [{"type": "int32"}]},
        {"type": "string", "parameters": {"a": 1}},
    ]
    documents = [dumps({"schema": schema, "payload": "x"}) for schema in schemas]
    documents += [b"{}", b"[]", b'{"schema":null}', b'{"schema":null,"payload":1,"x":2}']
    settings = {"schemas.enable": "true"}
    assert converted(settings, documents) == converted_by_kafka(settings, documents)


def require_same(settings: dict[str, str], documents: list[bytes]) -> None:
    ours = converted(settings, documents)
    kafkas = converted_by_kafka(settings, documents)
    for document, our, kafka in zip(documents, ours, kafkas, strict=True):
        if our != kafka:
            assert readable(our) == readable(kafka), document


def readable(result: str) -> str:
    is_hex = not result.startswith("error") and result != "null"
    return bytes.fromhex(result).decode() if is_hex else result


def converted(settings: dict[str, str], documents: list[bytes]) -> list[str]:
    """Converts each document in a batch of its own, as Kafka does."""
    converter = JsonConverter()
    converter.configure(settings, is_key=False)
    results = []
    for document in documents:
        conversion = converter.to_connect("topic", pa.array([document], pa.binary()))
        if conversion.errors:
            error = conversion.errors[0].error
            results.append(f"error {error.java_class} {error}")  # type: ignore[attr-defined]
            continue
        (run,) = conversion.runs
        written = converter.from_connect("topic", run.schema, run.values)
        assert not written.errors, (document, written.errors)
        payload = written.payloads[0].as_py()
        results.append("null" if payload is None else payload.hex())
    return results


def converted_by_kafka(settings: dict[str, str], documents: list[bytes]) -> list[str]:
    if shutil.which("java") is None or not (PEERS / "kafka").exists():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    directory = subprocess.run(
        [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
    ).stdout.strip()
    words = f"{settings['schemas.enable']} {settings.get('decimal.format', 'BASE64')}"
    converted = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{directory}/libs/*", PROGRAM],
        input="\n".join(f"{words} {document.hex()}" for document in documents),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return converted.stdout.splitlines()


def dumps(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def envelope(source: random.Random) -> bytes:
    schema = random_schema(source, 3)
    return dumps({"schema": schema, "payload": random_value(source, schema)})


def random_schema(source: random.Random, depth: int) -> dict[str, Any]:
    kind = source.choice(
        ("struct", "array", "map", "logical", *PRIMITIVES) if depth else PRIMITIVES
    )
    schema: dict[str, Any] = {"type": kind}
    match kind:
        case "struct":
            schema["fields"] = [
                {**random_schema(source, depth - 1), "field": f"f{index}{source.choice(TEXTS)}"}
                for index in range(source.randrange(4))
            ]
        case "array":
            schema["items"] = random_schema(source, depth - 1)
        case "map":
            schema["keys"] = {"type": source.choice(("string", "int32", "boolean"))}
            schema["values"] = random_schema(source, depth - 1)
        case "logical":
            name, type_ = source.choice(
                (("Decimal", "bytes"), ("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64"))
            )
            schema = {"type": type_, "name": LOGICAL + name, "version": 1}
            if name == "Decimal":
                schema["parameters"] = {"scale": str(source.randrange(12))}
    schema["optional"] = source.random() < 0.5
    if kind in PRIMITIVES and source.random() < 0.3:
        schema["doc"] = source.choice(TEXTS)
        schema["name"] = "name"
        schema["version"] = 3
        schema["parameters"] = {"p": source.choice(TEXTS)}
    if kind in PRIMITIVES and source.random() < 0.3:
        schema["default"] = random_value(source, {**schema, "optional": False})
    return schema


def random_value(source: random.Random, schema: dict[str, Any]) -> Any:
    if schema["type"] != "struct" and schema.get("optional") and source.random() < 0.3:
        return None
    name = schema.get("name", "").removeprefix(LOGICAL)
    match schema["type"], name:
        case _, "Date":
            return source.randrange(-10000, 40000)
        case _, "Time":
            return source.randrange(86400000)
        case _, "Timestamp":
            return source.randrange(-(10**13), 10**14)
        case _, "Decimal":
            return decimal_text(source)
        case "boolean", _:
            return source.random() < 0.5
        case (("int8" | "int16" | "int32" | "int64"), _):
            limit = 1 << (BITS[schema["type"]] - 1)
            return source.choice((0, -limit, limit - 1, source.randrange(-limit, limit)))
        case "float", _:
            return struct.unpack("f", struct.pack("f", source.uniform(-1e4, 1e4)))[0]
        case "double", _:
            return source.choice((source.uniform(-1, 1), round(source.uniform(-1e6, 1e6), 2)))
        case "string", _:
            return source.choice(TEXTS)
        case "bytes", _:
            return decimal_text(source)
        case "array", _:
            return [random_value(source, schema["items"]) for _ in range(source.randrange(4))]
        case "map", _:
            return random_map(source, schema)
        case _:
            return {field["field"]: random_value(source, field) for field in schema["fields"]}


def random_map(source: random.Random, schema: dict[str, Any]) -> Any:
    """At most one entry: Java does not keep their order."""
    if source.random() < 0.3:
        return {} if schema["keys"]["type"] == "string" else []
    value = random_value(source, schema["values"])
    match schema["keys"]["type"]:
        case "string":
            return {source.choice(TEXTS): value}
        case "int32":
            return [[source.randrange(100), value]]
        case _:
            return [[True, value]]


def decimal_text(source: random.Random) -> str:
    from base64 import b64encode

    return b64encode(source.randbytes(source.randrange(1, 15))).decode()


def schemaless(source: random.Random, depth: int) -> Any:
    """Without nulls in objects, which we leave out, and with one type in an array."""
    match source.randrange(6 if depth else 4):
        case 0:
            return source.randrange(-(2**63), 2**63)
        case 1:
            return source.uniform(-1e5, 1e5)
        case 2:
            return source.choice(TEXTS)
        case 3:
            return source.random() < 0.5
        case 4:
            item = schemaless(source, depth - 1)
            return [item] * source.randrange(4)
        case _:
            return (
                {source.choice(TEXTS): schemaless(source, depth - 1)}
                if source.random() < 0.9
                else {}
            )
