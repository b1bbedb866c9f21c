"""Rules between settings: values that are valid alone and contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.config.addresses import parse_ip_overrides
from barnabas.config.broker.groups import CONSUMER_ASSIGNORS

_MIB = 1 << 20


def find_inconsistencies(values: Mapping[str, Any]) -> list[str]:
    """Returns the contradictions in `values`. Skips a rule if one of its settings is missing."""
    problems = list(_misordered(values))
    for rule in (
        _node_id,
        _retention,
        _rolling,
        _cleaner_threads,
        _cleaner_rates,
        _cleaner_memory,
        _cordoned_directories,
        _request_memory,
        _connections_per_ip,
        _authentication_delay,
        _compression_codecs,
        _rebalance_protocols,
        _consumer_assignors,
    ):
        try:
            problem = rule(values)
        except KeyError:
            continue
        if problem:
            problems.append(problem)
    return problems


def _ordered_pairs() -> Iterator[tuple[str, str]]:
    """Yields pairs of settings (low, high) with low <= high."""
    yield "replica.fetch.wait.max.ms", "replica.socket.timeout.ms"
    yield "replica.fetch.wait.max.ms", "replica.lag.time.max.ms"
    bounded = {
        "consumer": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        "streams": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        "share": (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "assignment.interval.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        ),
    }
    for kind, names in bounded.items():
        for name in names:
            yield f"group.{kind}.min.{name}", f"group.{kind}.{name}"
            yield f"group.{kind}.{name}", f"group.{kind}.max.{name}"
    yield "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"


def _misordered(values: Mapping[str, Any]) -> Iterator[str]:
    for low, high in _ordered_pairs():
        if low in values and high in values and values[low] > values[high]:
            yield f"{low} ({values[low]}) must be at most {high} ({values[high]})"
    for kind in ("consumer", "streams", "share"):
        beat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if beat in values and session in values and values[beat] >= values[session]:
            yield f"{beat} ({values[beat]}) must be less than {session} ({values[session]})"


def _node_id(values: Mapping[str, Any]) -> str | None:
    if values["broker.id"] not in (-1, values["node.id"]):
        return (
            f"broker.id ({values['broker.id']}) must be the same as "
            f"node.id ({values['node.id']}); leave broker.id out"
        )
    return None


def _retention(values: Mapping[str, Any]) -> str | None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values[name] is not None:
            unlimited_or_positive = values[name] < 0 or values[name] >= 1
            return None if unlimited_or_positive else f"{name} (0) must be -1 or at least 1"
    return None


def _rolling(values: Mapping[str, Any]) -> str | None:
    if values["log.roll.ms"] is not None and values["log.roll.ms"] < 1:
        return f"log.roll.ms ({values['log.roll.ms']}) must be at least 1"
    if values["log.roll.jitter.ms"] is not None and values["log.roll.jitter.ms"] < 0:
        return f"log.roll.jitter.ms ({values['log.roll.jitter.ms']}) must be at least 0"
    return None


def _cleaner_threads(values: Mapping[str, Any]) -> str | None:
    if values["log.cleaner.threads"] < 1:
        return "log.cleaner.threads (0) must be at least 1; log.cleaner.enable=false stops cleaning"
    return None


def _cleaner_rates(values: Mapping[str, Any]) -> str | None:
    load_factor = values["log.cleaner.io.buffer.load.factor"]
    if not 0 < load_factor <= 1:
        return f"log.cleaner.io.buffer.load.factor ({load_factor}) must be above 0 and at most 1"
    limit = values["log.cleaner.io.max.bytes.per.second"]
    if limit <= 0:
        return f"log.cleaner.io.max.bytes.per.second ({limit}) must be above 0"
    return None


def _cleaner_memory(values: Mapping[str, Any]) -> str | None:
    size, threads = values["log.cleaner.dedupe.buffer.size"], values["log.cleaner.threads"]
    if size < threads * _MIB:
        return (
            f"log.cleaner.dedupe.buffer.size ({size}) must be at least {_MIB} "
            f"for each of log.cleaner.threads ({threads})"
        )
    return None


def _cordoned_directories(values: Mapping[str, Any]) -> str | None:
    cordoned = set(values["cordoned.log.dirs"] or ())
    if cordoned == {"*"}:
        return None
    if "*" in cordoned:
        return "cordoned.log.dirs is either * or a list of directories, not both"
    if unknown := cordoned.difference(values["log.dirs"] or values["log.dir"]):
        return f"cordoned.log.dirs has {', '.join(sorted(unknown))}, which log.dirs does not have"
    return None


def _request_memory(values: Mapping[str, Any]) -> str | None:
    queued, largest = values["queued.max.request.bytes"], values["socket.request.max.bytes"]
    if 0 < queued < largest:
        return (
            f"queued.max.request.bytes ({queued}) must be at least "
            f"socket.request.max.bytes ({largest}), or -1 for no bound"
        )
    return None


def _connections_per_ip(values: Mapping[str, Any]) -> str | None:
    text = values["max.connections.per.ip.overrides"]
    try:
        overrides = parse_ip_overrides(text)
    except ValueError as problem:
        return f"max.connections.per.ip.overrides ({text}): {problem}"
    if values["max.connections.per.ip"] == 0 and not overrides:
        return "max.connections.per.ip may be 0 only with max.connections.per.ip.overrides"
    return None


def _authentication_delay(values: Mapping[str, Any]) -> str | None:
    delay = values["connection.failed.authentication.delay.ms"]
    idle = values["connections.max.idle.ms"]
    if 0 <= idle <= delay:
        return (
            f"connection.failed.authentication.delay.ms ({delay}) must be less than "
            f"connections.max.idle.ms ({idle})"
        )
    return None


def _compression_codecs(values: Mapping[str, Any]) -> str | None:
    for name in (
        "offsets.topic.compression.codec",
        "share.coordinator.state.topic.compression.codec",
    ):
        if values[name] not in range(5):
            return (
                f"{name} ({values[name]}) must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) "
                f"or 4 (zstd)"
            )
    return None


def _rebalance_protocols(values: Mapping[str, Any]) -> str | None:
    if "classic" not in values["group.coordinator.rebalance.protocols"]:
        return "group.coordinator.rebalance.protocols must include classic"
    return None


def _consumer_assignors(values: Mapping[str, Any]) -> str | None:
    for name in values["group.consumer.assignors"]:
        if name not in CONSUMER_ASSIGNORS:
            return (
                f"group.consumer.assignors has {name}, which cannot be loaded: "
                "uniform and range are built in"
            )
    return None
