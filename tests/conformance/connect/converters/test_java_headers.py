"""Kafka's SimpleHeaderConverter finds the same types in texts, and writes the same texts."""

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from tests.conformance.brokers import PEERS

from barnabas.connect.converters.headers import SimpleHeaderConverter
from barnabas.connect.data.schema import ConnectSchema, Type

PROGRAM = Path(__file__).parent / "ParseHeaders.java"
TEXTS = [
    *("", "a text", " spaces ", "  ", "true", "True", " true", "false ", "NULL", "null", "-", "+"),
    *("12", "12 ", "-129", "+40000", "9223372036854775807", "9223372036854775808", "-0", "00012"),
    *("0.1", "1.5", "1.5e300", "1.0", "1e0", "1e2", "1E+2", ".5", "+.5", "1.", "1.123456789"),
    *("12a", "0x10", "1_000", "..", "a:b", "a,b", '"quoted"', "3.4e39"),
    *("2024-02-29", "01:02:03.004Z", "2024-02-29T01:02:03.004Z", "2024-02-29T"),
    *("[1, 300]", "[1, 2.5]", "[true,false]", "[[1],[2]]", "[a]", "[1", "{a:1}"),
    *("[2024-02-29T01:02:03.004Z]", '["a","b"]'),
    *('{"a": 1, "b": 2}', '{"a":1.5,"b":2}', "{1:2}"),
]
"""Not here: what Kafka reads only up to its first comma, such as `1,2`, and arrays of mixed types,
which are strings here."""

JAVA_NAMES = {"float": "float32", "double": "float64"}


@pytest.mark.peer
def test_texts_have_the_types_that_kafka_finds() -> None:
    converter = SimpleHeaderConverter()
    converter.configure({})
    found = []
    for text in TEXTS:
        (run,) = converter.to_values(pa.array([text.encode()])).runs
        written = converter.to_bytes(run.schema, run.values).payloads[0].as_py()
        found.append((text, name(run.schema), written))
    assert found == [(text, *parsed) for text, parsed in zip(TEXTS, parsed_by_kafka(), strict=True)]


def name(schema: ConnectSchema | None) -> str:
    if schema is None:
        return "none"
    if schema.type is Type.ARRAY:
        return f"array<{name(schema.value_schema)}>"
    if schema.type is Type.MAP:
        return f"map<{name(schema.key_schema)},{name(schema.value_schema)}>"
    if schema.name is not None:
        return schema.name.rpartition(".")[2]
    return JAVA_NAMES.get(schema.type.value, schema.type.value)


def parsed_by_kafka() -> list[tuple[str, bytes | None]]:
    if shutil.which("java") is None or not (PEERS / "kafka").exists():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    directory = subprocess.run(
        [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
    ).stdout.strip()
    parsed = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{directory}/libs/*", PROGRAM],
        input="".join(f"{text.encode().hex()}\n" for text in TEXTS),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    answers = [line.split(" ") for line in parsed.stdout.split("\n")[: len(TEXTS)]]
    return [
        (type_name, None if written == "null" else bytes.fromhex(written))
        for type_name, written in answers
    ]
