"""The settings of a worker, by Kafka's names.

    config = WorkerConfig.parse({"bootstrap.servers": "localhost:9092"})
    config.client("producer")

Every setting has a default here, so that a worker starts without a file. Clients of connectors
inherit the client settings of the worker, such as security; `producer.`, `consumer.` and `admin.`
change them for one kind of client.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    at_least,
    errors_of,
    not_empty,
    one_of,
)

ClientKind = Literal["producer", "consumer", "admin"]

_STRING, _INT, _LONG = ConfigType.STRING, ConfigType.INT, ConfigType.LONG
_SHORT, _BOOLEAN, _LIST = ConfigType.SHORT, ConfigType.BOOLEAN, ConfigType.LIST

DEFAULT_PORT: Final = 8083
_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_SIMPLE_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_POLICIES = ("All", "None", "Principal", "Allowlist")
_WILDCARDS = ("", "0.0.0.0", "::")
_STORAGE = ("config", "offset", "status")
_PARTITIONS_OR_DEFAULT = "must be at least 1, or -1 for the default of the brokers"


def _one_or_more_or_default(name: str, value: Any) -> str | None:
    return None if value == -1 or value >= 1 else _PARTITIONS_OR_DEFAULT


WORKER_SETTINGS: Final = ConfigDef(
    ConnectorSetting("bootstrap.servers", _LIST, ["localhost:9092"]),
    ConnectorSetting("client.id", _STRING, ""),
    # The group of instances
    ConnectorSetting("group.id", _STRING, "connect-cluster", validator=not_empty),
    ConnectorSetting("session.timeout.ms", _INT, 10_000, validator=at_least(100)),
    ConnectorSetting("heartbeat.interval.ms", _INT, 1_000, validator=at_least(1)),
    ConnectorSetting("rebalance.timeout.ms", _INT, 60_000, validator=at_least(1)),
    ConnectorSetting("scheduled.rebalance.max.delay.ms", _INT, 0, validator=at_least(0)),
    ConnectorSetting("connect.protocol", _STRING, "sessioned"),
    # Storage
    ConnectorSetting("config.storage.topic", _STRING, "connect-configs", validator=not_empty),
    ConnectorSetting(
        "config.storage.replication.factor", _SHORT, 3, validator=_one_or_more_or_default
    ),
    ConnectorSetting("offset.storage.topic", _STRING, "connect-offsets", validator=not_empty),
    ConnectorSetting("offset.storage.partitions", _INT, 25, validator=_one_or_more_or_default),
    ConnectorSetting(
        "offset.storage.replication.factor", _SHORT, 3, validator=_one_or_more_or_default
    ),
    ConnectorSetting("status.storage.topic", _STRING, "connect-status", validator=not_empty),
    ConnectorSetting("status.storage.partitions", _INT, 5, validator=_one_or_more_or_default),
    ConnectorSetting(
        "status.storage.replication.factor", _SHORT, 3, validator=_one_or_more_or_default
    ),
    ConnectorSetting("offset.storage.file.filename", _STRING, ""),
    # What connectors inherit
    ConnectorSetting("key.converter", ConfigType.CLASS, _JSON_CONVERTER),
    ConnectorSetting("value.converter", ConfigType.CLASS, _JSON_CONVERTER),
    ConnectorSetting("header.converter", ConfigType.CLASS, _SIMPLE_CONVERTER),
    ConnectorSetting("offset.flush.interval.ms", _LONG, 60_000, validator=at_least(1)),
    ConnectorSetting("offset.flush.timeout.ms", _LONG, 5_000, validator=at_least(0)),
    ConnectorSetting("task.shutdown.graceful.timeout.ms", _LONG, 5_000, validator=at_least(0)),
    ConnectorSetting(
        "exactly.once.source.support",
        _STRING,
        "disabled",
        validator=one_of("disabled", "preparing", "enabled", ignore_case=True),
    ),
    ConnectorSetting("topic.creation.enable", _BOOLEAN, True),
    ConnectorSetting("topic.tracking.enable", _BOOLEAN, True),
    ConnectorSetting("topic.tracking.allow.reset", _BOOLEAN, True),
    ConnectorSetting("connector.client.config.override.policy", _STRING, "All"),
    ConnectorSetting("connector.client.config.override.allowlist", _LIST, []),
    ConnectorSetting("config.providers", _LIST, []),
    ConnectorSetting("plugin.path", _LIST, []),
    ConnectorSetting("plugin.discovery", _STRING, "hybrid_warn"),
    # The REST API
    ConnectorSetting("listeners", _LIST, [f"http://:{DEFAULT_PORT}"]),
    ConnectorSetting("admin.listeners", _LIST, []),
    ConnectorSetting("rest.advertised.host.name", _STRING, None),
    ConnectorSetting("rest.advertised.port", _INT, None),
    ConnectorSetting("rest.advertised.listener", _STRING, None),
    ConnectorSetting("rest.extension.classes", _LIST, []),
    ConnectorSetting("access.control.allow.origin", _STRING, ""),
    ConnectorSetting("access.control.allow.methods", _STRING, ""),
    ConnectorSetting("response.http.headers.config", _STRING, ""),
    # Accepted without effect: one group has one leader, which does what they are about.
    ConnectorSetting("worker.sync.timeout.ms", _INT, 3_000),
    ConnectorSetting("worker.unsync.backoff.ms", _INT, 300_000),
    ConnectorSetting("inter.worker.key.generation.algorithm", _STRING, "HmacSHA256"),
    ConnectorSetting("inter.worker.key.size", _INT, None),
    ConnectorSetting("inter.worker.key.ttl.ms", _INT, 3_600_000),
    ConnectorSetting("inter.worker.signature.algorithm", _STRING, "HmacSHA256"),
    ConnectorSetting("inter.worker.verification.algorithms", _LIST, ["HmacSHA256"]),
    # Ours; connectors may have the first three too
    ConnectorSetting("barnabas.max.rows.per.task", _INT, 500_000, validator=at_least(1)),
    ConnectorSetting("barnabas.restart.initial.ms", _LONG, 1_000, validator=at_least(0)),
    ConnectorSetting("barnabas.restart.max.ms", _LONG, 60_000, validator=at_least(0)),
    ConnectorSetting("barnabas.start.timeout.ms", _INT, 60_000, validator=at_least(1)),
    ConnectorSetting("barnabas.checkpoint.dir", _STRING, ""),
)
"""Kafka has no default for converters, group.id and the topics, and 5 minutes for
scheduled.rebalance.max.delay.ms: what a dead instance ran is started again at once here, because
an instance that comes back takes over its share without stopping more than that."""

_PREFIXES: Final = (
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.providers.",
    "listeners.https.",
    "plugin.",
    "spark.",
    "metrics.",
    "metric.reporters",
)
"""Of settings that are passed on to something else."""

_NOT_OF_CLIENTS: Final = frozenset(
    ("group.id", "session.timeout.ms", "heartbeat.interval.ms", "config.providers")
)
"""Settings of the worker that clients have by the same name."""


class WorkerConfigError(Exception):
    """A worker cannot start with these settings. `problems` has all of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


@dataclass(slots=True, frozen=True)
class StorageTopic:
    """One of the three topics."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class RestListener:
    scheme: str
    host: str
    """Empty: every interface."""
    port: int
    """0 selects a free port."""


class WorkerConfig:
    """Immutable. `parse` checks everything."""

    def __init__(self, originals: Mapping[str, str], values: Mapping[str, Any]) -> None:
        self.originals: Mapping[str, str] = originals
        """All settings as they were given, with the defaults of converters."""
        self.values: Mapping[str, Any] = values
        """The typed values of `WORKER_SETTINGS`."""

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> WorkerConfig:
        """Raises WorkerConfigError."""
        from barnabas.config.providers import resolve_references

        resolved, problems = resolve_references(properties, properties)
        converters = {name: WORKER_SETTINGS[name].default for name in _CONVERTERS}
        originals = {**converters, **resolved}
        parsed = WORKER_SETTINGS.validate(originals)
        config = cls(originals, {value.name: value.value for value in parsed})
        problems += errors_of(parsed)
        if not problems:
            problems += config._problems()
        problems += _unknown_barnabas_names(originals)
        if problems:
            raise WorkerConfigError(problems)
        return config

    # What others need

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self.values["bootstrap.servers"])

    @property
    def group_id(self) -> str:
        return str(self.values["group.id"])

    @property
    def exactly_once(self) -> bool:
        """Whether sources write exactly once."""
        return str(self.values["exactly.once.source.support"]).lower() == "enabled"

    @property
    def config_topic(self) -> str:
        return str(self.values["config.storage.topic"])

    @property
    def offset_topic(self) -> str:
        return str(self.values["offset.storage.topic"])

    @property
    def status_topic(self) -> str:
        return str(self.values["status.storage.topic"])

    def storage(self, kind: Literal["config", "offset", "status"]) -> StorageTopic:
        from barnabas.config.topic import SETTINGS

        prefix = f"{kind}.storage."
        configs = {
            name.removeprefix(prefix): text
            for name, text in self.originals.items()
            if name.startswith(prefix) and name.removeprefix(prefix) in SETTINGS
        }
        return StorageTopic(
            self.values[f"{prefix}topic"],
            self.values.get(f"{prefix}partitions", 1),
            self.values[f"{prefix}replication.factor"],
            configs,
        )

    def client(self, kind: ClientKind) -> dict[str, str]:
        """Returns the settings of a connector's clients, before its own overrides."""
        prefix = f"{kind}."
        overrides = {
            name.removeprefix(prefix): text
            for name, text in self.originals.items()
            if name.startswith(prefix)
        }
        return {**self.worker_client, **overrides}

    @cached_property
    def worker_client(self) -> dict[str, str]:
        """The settings of the worker's own clients."""
        from barnabas.client.settings.parser import declarations

        inherited = {
            name: text
            for name, text in self.originals.items()
            if name not in _NOT_OF_CLIENTS and declarations(name)
        }
        return {**inherited, "bootstrap.servers": self.bootstrap_servers}

    @property
    def spark(self) -> dict[str, str]:
        """The settings of the Spark session."""
        return {name: text for name, text in self.originals.items() if name.startswith("spark.")}

    # The REST API

    @cached_property
    def listener(self) -> RestListener:
        from barnabas.net.http_listener import parse_http_address

        return RestListener(*parse_http_address(",".join(self.values["listeners"])))

    @property
    def tls_properties(self) -> dict[str, str]:
        """The settings of TLS of the listener: `listeners.https.ssl.*`, or else `ssl.*`."""
        prefix = "listeners.https."
        shared = {name: text for name, text in self.originals.items() if name.startswith("ssl.")}
        own = {
            name.removeprefix(prefix): text
            for name, text in self.originals.items()
            if name.startswith(prefix)
        }
        return {**shared, **own}

    def advertised_address(self, port: int) -> tuple[str, int]:
        """Returns where others reach the REST API that listens on a port."""
        host = self.values["rest.advertised.host.name"] or self.listener.host
        if host in _WILDCARDS:
            host = _host_address()
        return host, self.values["rest.advertised.port"] or port

    # Checks

    def with_changes(self, changes: Mapping[str, str]) -> WorkerConfig:
        """Raises WorkerConfigError."""
        return WorkerConfig.parse({**self.originals, **changes})

    @property
    def notes(self) -> list[str]:
        """Returns what an operator should know about the settings, for the log."""
        return list(_notes(self.originals, self.values))

    def _problems(self) -> list[str]:
        return [*self._listener_problems(), *self._other_problems(), *self._client_problems()]

    def _listener_problems(self) -> Iterator[str]:
        from barnabas.config.errors import InvalidConfig

        try:
            scheme = self.listener.scheme
        except InvalidConfig as error:
            yield str(error).replace("8081", str(DEFAULT_PORT))
            return
        if scheme == "https" and not any("keystore" in name for name in self.tls_properties):
            yield "listeners has https, which needs listeners.https.ssl.keystore.location"
        for name in ("rest.extension.classes", "admin.listeners"):
            if self.values[name]:
                yield f"{name} is not supported: remove it"

    def _other_problems(self) -> Iterator[str]:
        policy = self.values["connector.client.config.override.policy"]
        short = policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
        if short not in _POLICIES:
            yield (
                f"Invalid value {policy} for configuration "
                f"connector.client.config.override.policy: it must be one of "
                f"{', '.join(_POLICIES)}"
            )
        topics = [self.values[f"{kind}.storage.topic"] for kind in _STORAGE]
        if len(set(topics)) < len(topics):
            yield (
                "config.storage.topic, offset.storage.topic and status.storage.topic must be "
                f"three topics, not {', '.join(topics)}"
            )
        if self.values["heartbeat.interval.ms"] >= self.values["session.timeout.ms"]:
            yield "heartbeat.interval.ms must be less than session.timeout.ms"

    def _client_problems(self) -> Iterator[str]:
        from barnabas.client.errors import KafkaException
        from barnabas.client.settings import admin_settings, consumer_settings, producer_settings

        kinds: Mapping[ClientKind, Any] = {
            "admin": admin_settings,
            "consumer": consumer_settings,
            "producer": producer_settings,
        }
        found: list[str] = []
        for kind, parse in kinds.items():
            try:
                parse(self.client(kind))
            except (KafkaException, TypeError, ValueError, OSError) as error:
                text = _client_problem(error)
                if text not in found:  # the same setting of the worker is wrong for all three
                    found.append(text)
        yield from found


_CONVERTERS = ("key.converter", "value.converter", "header.converter")


def _client_problem(error: Exception) -> str:
    from barnabas.client.errors import KafkaException, error_in

    return error_in(error).str() if isinstance(error, KafkaException) else str(error)


def _unknown_barnabas_names(originals: Mapping[str, str]) -> Iterator[str]:
    from barnabas.config.unknown_names import find_similar

    known = [setting.name for setting in WORKER_SETTINGS if setting.name.startswith("barnabas.")]
    for name in originals:
        if name.startswith("barnabas.") and name not in known:
            similar = find_similar(name, known)
            hint = f"; did you mean {similar}?" if similar is not None else ""
            yield f"{name} is not a setting of a worker{hint}"


def _notes(originals: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[str]:
    from barnabas.client.settings.parser import declarations
    from barnabas.config.topic import SETTINGS as TOPIC_SETTINGS
    from barnabas.config.unknown_names import SETTING_CUTOFF, find_similar

    if values["plugin.path"]:
        yield (
            "plugin.path has no effect: connectors, converters and transforms are Python packages "
            "that are installed with pip"
        )
    if values["offset.storage.file.filename"]:
        yield (
            "offset.storage.file.filename has no effect: positions are kept in topic "
            f"{values['offset.storage.topic']}, so that no file can be lost. A file of Kafka's "
            "standalone worker is not read"
        )
    known = [setting.name for setting in WORKER_SETTINGS]
    for name in originals:
        if name in WORKER_SETTINGS or name.startswith((*_PREFIXES, "barnabas.")):
            continue
        storage, _, topic_config = name.partition(".storage.")
        if storage in _STORAGE and topic_config in TOPIC_SETTINGS:
            continue
        if not declarations(name):
            similar = find_similar(name, known, cutoff=SETTING_CUTOFF)
            hint = f"; did you mean {similar}?" if similar is not None else ""
            yield f"{name} is not a setting of a worker{hint}"


def _host_address() -> str:
    """Returns an address of this machine at which others may reach it."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
    return "127.0.0.1" if re.match(r"127\.", address) else address
