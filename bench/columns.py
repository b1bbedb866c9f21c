"""Measure decoding and encoding of columns, compared to loops over single records.

A loop is what a program does without Barnabas: fastavro or json for each record, and Arrow's
conversion of the Python values.

    python -m bench.columns [--rows N]
"""

import argparse
import io
import json
import time
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa

from barnabas.columns import DecodedColumn, avro, json_text
from barnabas.columns.language import SchemaSource

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "country", "type": {"type": "enum", "name": "C", "symbols": ["DE", "FR", "US"]}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
    ],
}
DOCUMENT = {
    "type": "object",
    "properties": {
        **{name: {"type": "integer"} for name in ("id", "at", "quantity")},
        **{name: {"type": "string"} for name in ("customer", "country", "note")},
        "amount": {"type": "number"},
        "paid": {"type": "boolean"},
    },
}
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.columns", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    count = parser.parse_args().rows
    orders = [order(number) for number in range(count)]
    print(f"{'M rows/s of CPU':<20}{'loop':>10}{'columns':>10}{'ratio':>8}")
    measure_avro(orders)
    measure_json(orders)


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"customer-{number % 1000}",
        "amount": number * 1.5,
        "at": 1_700_000_000_000 + number,
        "country": ("DE", "FR", "US")[number % 3],
        "note": None if number % 2 else "leave it at the door",
        "quantity": number % 7,
        "paid": number % 2 == 0,
    }


def measure_avro(orders: list[dict[str, Any]]) -> None:
    source, parsed = SchemaSource(json.dumps(ORDER)), fastavro.parse_schema(ORDER)
    arrow_type = avro.arrow_type(source, None)
    decoder = avro.decoder(source, source, None, framed=False)

    def write(row: dict[str, Any]) -> bytes:
        target = io.BytesIO()
        fastavro.schemaless_writer(target, parsed, row)
        return target.getvalue()

    def read(payload: bytes) -> Any:
        return fastavro.schemaless_reader(io.BytesIO(payload), parsed, None)

    payloads = pa.array([write(row) for row in orders], pa.binary())
    rows = decoded(decoder.decode(payloads))
    encoder = avro.encoder(source, arrow_type, None, schema_id=None)
    compare(
        "Avro in",
        len(orders),
        lambda: pa.array([read(payload) for payload in payloads.to_pylist()], arrow_type),
        lambda: decoder.decode(payloads),
    )
    compare(
        "Avro out",
        len(orders),
        lambda: pa.array([write(row) for row in rows.to_pylist()], pa.binary()),
        lambda: encoder.encode(rows),
    )


def measure_json(orders: list[dict[str, Any]]) -> None:
    source = SchemaSource(json.dumps(DOCUMENT))
    arrow_type = json_text.arrow_type(source, None)
    decoder = json_text.decoder(source, source, None, framed=False)
    payloads = pa.array([json.dumps(row).encode() for row in orders], pa.binary())
    rows = decoded(decoder.decode(payloads))
    encoder = json_text.encoder(source, arrow_type, None, schema_id=None)
    compare(
        "JSON in",
        len(orders),
        lambda: pa.array([json.loads(payload) for payload in payloads.to_pylist()], arrow_type),
        lambda: decoder.decode(payloads),
    )
    compare(
        "JSON out",
        len(orders),
        lambda: pa.array([json.dumps(row).encode() for row in rows.to_pylist()], pa.binary()),
        lambda: encoder.encode(rows),
    )


def decoded(result: DecodedColumn) -> pa.Array:
    assert result.reasons is None
    return result.values


def compare(name: str, count: int, loop: Callable[[], Any], columns: Callable[[], Any]) -> None:
    """Prints the best time of each, after alternating runs."""
    slow, fast = (
        min(times)
        for times in zip(*((timed(loop), timed(columns)) for _ in range(REPEATS)), strict=True)
    )
    print(f"{name:<20}{count / slow / 1e6:>10.2f}{count / fast / 1e6:>10.2f}{slow / fast:>7.1f}x")


def timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
