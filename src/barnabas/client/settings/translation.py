"""Translates values of Java and librdkafka: class names, synonyms, units."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.client.settings.parser import wrong_value
from barnabas.config.addresses import Endpoint, SecurityProtocol, parse_endpoint
from barnabas.config.setting import MAX_INT, split_list

DEFAULT_PORT = 9092


def translate(field: str, name: str, value: Any) -> Any:
    """Returns the value of a field for the value of the setting `name`."""
    if name.endswith(".kbytes"):
        value *= 1024
    translation = _TRANSLATIONS.get(field)
    if translation is None:
        return value
    try:
        return translation(value)
    except ValueError as error:
        raise wrong_value(name, value, str(error)) from None


def endpoints(value: str | Iterable[str]) -> tuple[Endpoint, ...]:
    """Parses addresses, with or without a port, with or without a protocol."""
    return tuple(map(_endpoint, filter(None, _elements(value))))


def _endpoint(text: str) -> Endpoint:
    protocol, _, address = text.rpartition("://")
    if protocol and protocol.upper() not in SecurityProtocol.__members__:
        raise ValueError(f"host:port,host:port,... and {text} is the address of another protocol")
    bare = address.count(":") == 0 or address.endswith("]")
    try:
        return parse_endpoint(f"{address}:{DEFAULT_PORT}" if bare else address)
    except ValueError:
        raise ValueError(f"host:port,host:port,... and {text} is not of that form") from None


def _acks(value: str | int) -> int:
    return -1 if value == "all" else int(value)


def _partitioner(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    word = _JAVA_PARTITIONERS.get(value.rpartition(".")[2], value)
    if word not in PARTITIONERS:
        raise ValueError(f"a function or one of {', '.join(PARTITIONERS)}")
    return word


PARTITIONERS = (
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
    "roundrobin",
)
_JAVA_PARTITIONERS = {
    "DefaultPartitioner": "murmur2_random",
    "UniformStickyPartitioner": "murmur2_random",
    "RoundRobinPartitioner": "roundrobin",
}


def _assignors(value: str | Iterable[str]) -> tuple[str, ...]:
    words = tuple(_JAVA_ASSIGNORS.get(word.rpartition(".")[2], word) for word in _elements(value))
    if not words or not set(words) <= set(_JAVA_ASSIGNORS.values()):
        raise ValueError(f"some of {', '.join(_JAVA_ASSIGNORS.values())}")
    return words


_JAVA_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def _offset_reset(value: str) -> str:
    return _OFFSET_RESETS.get(value.lower(), value)


_OFFSET_RESETS = {
    "smallest": "earliest",
    "beginning": "earliest",
    "earliest": "earliest",
    "largest": "latest",
    "end": "latest",
    "latest": "latest",
    "error": "none",
    "none": "none",
}


def _interceptors(value: Any) -> tuple[Any, ...]:
    """Keeps Python objects; the classes that Java files name cannot run in this process."""
    elements = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(element for element in elements if not isinstance(element, str))


def _elements(value: str | Iterable[str]) -> tuple[str, ...]:
    return split_list(value) if isinstance(value, str) else tuple(map(str.strip, value))


def _not_below_zero(value: int) -> int:
    return max(value, 0)


def _bounded(value: int) -> int:
    """Zero and less mean no limit."""
    return value if value > 0 else MAX_INT


def _or_none(value: str) -> str | None:
    return value or None


_TRANSLATIONS: dict[str, Callable[[Any], Any]] = {
    "acks": _acks,
    "assignors": _assignors,
    "auto_offset_reset": _offset_reset,
    "bootstrap_controllers": endpoints,
    "bootstrap_servers": endpoints,
    "buffer_messages": _bounded,
    "cipher_suites": lambda value: ":".join(value) if isinstance(value, tuple) else value,
    "compression": str.lower,
    "compression_level": lambda value: None if value == -1 else value,
    "delivery_timeout_ms": _bounded,
    "group_instance_id": _or_none,
    "group_protocol": str.lower,
    "group_remote_assignor": _or_none,
    "interceptors": _interceptors,
    "isolation_level": str.lower,
    "mechanism": str.upper,
    "metadata_max_age_ms": _bounded,
    "partitioner": _partitioner,
    "protocol": str.upper,
    "receive_buffer_bytes": _not_below_zero,
    "send_buffer_bytes": _not_below_zero,
    "tls_versions": tuple,
    "transactional_id": _or_none,
    "verify_host": lambda value: value.lower() == "https",
}
