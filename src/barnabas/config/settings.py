"""The settings of a node: server.properties with types, checks and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.config import broker
from barnabas.config.addresses import SecurityProtocol, Voter, parse_voter
from barnabas.config.changes import ConfigResourceType
from barnabas.config.consistency import find_inconsistencies
from barnabas.config.errors import ConfigError, InvalidConfig
from barnabas.config.listeners import Listeners, resolve_listeners
from barnabas.config.providers import resolve_references, without_resolved
from barnabas.config.setting import REQUIRED, Setting
from barnabas.config.warnings import setting_warnings, unknown_name_warnings


class BrokerSettings(Mapping[str, Any]):
    """Typed values by Kafka's names, with defaults: `settings["num.partitions"]`."""

    __slots__ = (
        "_protocols",
        "_values",
        "advertised_controller_listeners",
        "advertised_listeners",
        "controller_listeners",
        "explicit",
        "inter_broker_listener_name",
        "listeners",
        "warnings",
    )

    def __init__(
        self,
        explicit: Mapping[str, str],
        values: Mapping[str, Any],
        listeners: Listeners,
        warnings: tuple[str, ...],
    ) -> None:
        self._values = values
        self._protocols = listeners.protocols
        # The texts of the settings that are set explicitly.
        self.explicit = explicit
        # All listeners of this node, and those of the controller.
        self.listeners = listeners.all
        self.controller_listeners = listeners.controller
        # The addresses for clients, without the controller's listeners.
        self.advertised_listeners = listeners.advertised
        # The addresses of the controller's listeners for other nodes.
        self.advertised_controller_listeners = listeners.advertised_controller
        self.inter_broker_listener_name = listeners.inter_broker_name
        # A line for each setting that is probably a mistake, such as a misspelt name.
        self.warnings = warnings

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerSettings:
        """Creates settings from the pairs of a file. Raises ConfigError with all problems."""
        resolved, problems = resolve_references(properties, properties)
        explicit = _with_node_id(resolved)
        values, invalid = _parse(explicit, properties)
        problems += invalid
        problems += _missing(explicit)
        usable = {name: value for name, value in values.items() if value is not REQUIRED}
        problems += find_inconsistencies(usable)
        listeners = Listeners()
        if usable.keys() >= _LISTENER_SETTINGS:
            listeners = resolve_listeners(usable, explicit)
            problems += listeners.problems
        if problems:
            raise ConfigError([*problems, *unknown_name_warnings(explicit)])
        warnings = (
            *setting_warnings(ConfigResourceType.BROKER, explicit),
            *_questionable_values(values),
        )
        return cls(explicit, values, listeners, warnings)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def for_listener(self, listener: str, name: str, mechanism: str | None = None) -> Any:
        """Returns the value of `name` for one listener: its own, or else the node's."""
        prefix = f"listener.name.{listener.lower()}."
        if mechanism is not None:
            key = f"{prefix}{mechanism.lower()}.{name}"
            if key in self._values:
                return self._values[key]
        return self._values.get(prefix + name, self._values[name])

    def security_protocol_of(self, listener: str) -> SecurityProtocol:
        """Returns the protocol of a listener of this node or of another."""
        return self._protocols.get(listener, SecurityProtocol.PLAINTEXT)

    @property
    def node_id(self) -> int:
        return int(self._values["node.id"])

    @property
    def is_broker(self) -> bool:
        return "broker" in self._values["process.roles"]

    @property
    def is_controller(self) -> bool:
        return "controller" in self._values["process.roles"]

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return tuple(self._values["log.dirs"] or self._values["log.dir"])

    @property
    def metadata_log_dir(self) -> str:
        return self._values["metadata.log.dir"] or self.log_dirs[0]

    @property
    def voters(self) -> tuple[Voter, ...]:
        return tuple(map(parse_voter, self._values["controller.quorum.voters"]))


_LISTENER_SETTINGS = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "early.start.listeners",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "node.id",
    "process.roles",
    "security.inter.broker.protocol",
}


def _with_node_id(properties: Mapping[str, str]) -> dict[str, str]:
    """Sets the missing one of node.id and its old name broker.id."""
    explicit = dict(properties)
    if "node.id" in explicit:
        explicit.setdefault("broker.id", explicit["node.id"])
    elif "broker.id" in explicit:
        explicit["node.id"] = explicit["broker.id"]
    return explicit


def _parse(
    explicit: Mapping[str, str], properties: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the typed values of all valid settings, and the problems of those in `properties`.

    In `explicit`, references to values elsewhere are resolved.
    """
    values = {name: setting.default for name, setting in broker.SETTINGS.items()}
    problems = []
    for name, text in explicit.items():
        setting = broker.find(name)
        if setting is None:
            continue
        try:
            values[name] = setting._replace(name=name).parse(text)
        except InvalidConfig as problem:
            values.pop(name, None)
            if name in properties:
                problems.append(str(without_resolved(problem, setting, text, properties[name])))
    return values, problems


def _missing(explicit: Mapping[str, str]) -> list[str]:
    return [
        f"{setting.name} is required and has no default{_allowed(setting)}"
        for setting in broker.SETTINGS.values()
        if setting.default is REQUIRED and setting.name not in explicit
    ]


def _allowed(setting: Setting) -> str:
    return f"; allowed: {setting.check.allowed}" if setting.check and setting.check.allowed else ""


def _questionable_values(values: Mapping[str, Any]) -> Iterator[str]:
    heartbeat_ms = values["broker.heartbeat.interval.ms"]
    session_ms = values["broker.session.timeout.ms"]
    if heartbeat_ms * 2 > session_ms:
        yield (
            f"broker.heartbeat.interval.ms ({heartbeat_ms}) should be at most half of "
            f"broker.session.timeout.ms ({session_ms}): one late heartbeat fences the broker"
        )
