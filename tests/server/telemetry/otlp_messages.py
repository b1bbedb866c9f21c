"""MetricsData of OTLP as clients push it, encoded by hand: brokers have no protobuf."""

import struct
from collections.abc import Mapping

DELTA, CUMULATIVE = 1, 2


def varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def text(number: int, value: str) -> bytes:
    return message(number, value.encode())


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<q", value)


def attribute(number: int, key: str, value: str | int | float | bool) -> bytes:
    match value:
        case bool():
            encoded = integer(2, value)
        case str():
            encoded = text(1, value)
        case int():
            encoded = integer(3, value)
        case _:
            encoded = double(4, value)
    return message(number, text(1, key) + message(2, encoded))


def point(value: float | int, **labels: str | int | float | bool) -> bytes:
    number = fixed(6, value) if isinstance(value, int) else double(4, value)
    attributes = b"".join(attribute(7, key, label) for key, label in labels.items())
    return integer(8, 1) + fixed(3, 1_700_000_000) + number + attributes


def gauge(name: str, *points: bytes) -> bytes:
    return text(1, name) + message(5, b"".join(message(1, item) for item in points))


def total(name: str, *points: bytes, temporality: int = CUMULATIVE, monotonic: int = 1) -> bytes:
    content = b"".join(message(1, item) for item in points)
    return text(1, name) + message(7, content + integer(2, temporality) + integer(3, monotonic))


def histogram(name: str, count: int, sum_: float, temporality: int = CUMULATIVE) -> bytes:
    content = fixed(4, count) + double(5, sum_) + attribute(9, "node", "1")
    return text(1, name) + message(9, message(1, content) + integer(2, temporality))


def metrics_data(*metrics: bytes, resource: Mapping[str, str] | None = None) -> bytes:
    attributes = b"".join(attribute(1, key, value) for key, value in (resource or {}).items())
    scope = message(2, message(1, text(1, "scope")) + b"".join(message(2, m) for m in metrics))
    return message(1, message(1, attributes) + scope)
