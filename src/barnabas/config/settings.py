"""A node's settings: the text of server.properties made typed, checked and complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.config import broker
from barnabas.config.addresses import Voter, parse_voter
from barnabas.config.consistency import inconsistencies
from barnabas.config.errors import ConfigError, InvalidConfig
from barnabas.config.listeners import Listeners, resolve_listeners
from barnabas.config.setting import REQUIRED, Setting


class BrokerSettings(Mapping[str, Any]):
    """Typed values by Kafka's names: `settings["num.partitions"]`; defaults are filled in."""

    __slots__ = (
        "_values",
        "advertised_controller_listeners",
        "advertised_listeners",
        "controller_listeners",
        "given",
        "inter_broker_listener_name",
        "listeners",
        "warnings",
    )

    def __init__(
        self,
        given: Mapping[str, str],
        values: Mapping[str, Any],
        listeners: Listeners,
        warnings: tuple[str, ...],
    ) -> None:
        self._values = values
        # The text of what was set explicitly.
        self.given = given
        # Every listener of this node, and those of them that are the controller's.
        self.listeners = listeners.all
        self.controller_listeners = listeners.controller
        # What clients are told; the controller's listeners are not among them.
        self.advertised_listeners = listeners.advertised
        # What other nodes are told of the controller's.
        self.advertised_controller_listeners = listeners.advertised_controller
        self.inter_broker_listener_name = listeners.inter_broker_name
        # One line for each thing that works but is hardly meant, such as a misspelt name.
        self.warnings = warnings

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerSettings:
        """Settings from the pairs of a file. ConfigError lists everything that is wrong at once."""
        given = _with_node_id(properties)
        values, problems = _parse(given)
        problems += _missing(given)
        usable = {name: value for name, value in values.items() if value is not REQUIRED}
        problems += inconsistencies(usable)
        listeners = Listeners()
        if usable.keys() >= _NEEDED_FOR_LISTENERS:
            listeners = resolve_listeners(usable, given)
            problems += listeners.problems
        if problems:
            raise ConfigError(problems)
        return cls(given, values, listeners, (*_unknown_names(given), *_doubts(values)))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def at_listener(self, listener: str, name: str, mechanism: str | None = None) -> Any:
        """The value of `name` for one listener: its own where it has one, or else the node's."""
        prefix = f"listener.name.{listener.lower()}."
        if mechanism is not None:
            key = f"{prefix}{mechanism.lower()}.{name}"
            if key in self._values:
                return self._values[key]
        return self._values.get(prefix + name, self._values[name])

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


_NEEDED_FOR_LISTENERS = {
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
    """node.id and its old name broker.id stand for each other where one is missing."""
    given = dict(properties)
    if "node.id" in given:
        given.setdefault("broker.id", given["node.id"])
    elif "broker.id" in given:
        given["node.id"] = given["broker.id"]
    return given


def _parse(given: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Typed values of all settings, and what is wrong; a wrong one has no value."""
    values = {name: setting.default for name, setting in broker.SETTINGS.items()}
    problems = []
    for name, text in given.items():
        setting = broker.find(name)
        if setting is None:
            continue
        try:
            values[name] = setting._replace(name=name).parse(text)
        except InvalidConfig as problem:
            values.pop(name, None)
            problems.append(str(problem))
    return values, problems


def _missing(given: Mapping[str, str]) -> list[str]:
    return [
        f"{setting.name} is required and has no default{_allowed(setting)}"
        for setting in broker.SETTINGS.values()
        if setting.default is REQUIRED and setting.name not in given
    ]


def _allowed(setting: Setting) -> str:
    return f"; allowed: {setting.check.allowed}" if setting.check and setting.check.allowed else ""


def _unknown_names(given: Mapping[str, str]) -> Iterator[str]:
    for name in given:
        if broker.find(name) is not None or broker.is_for_a_plugin(name):
            continue
        # Imported here since a correct file never needs it.
        from difflib import get_close_matches

        nearest = get_close_matches(name, broker.SETTINGS, n=1, cutoff=0.8)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        yield f"{name} is not a known setting and has no effect{hint}"


def _doubts(values: Mapping[str, Any]) -> Iterator[str]:
    beat_ms, session_ms = (
        values["broker.heartbeat.interval.ms"],
        values["broker.session.timeout.ms"],
    )
    if beat_ms * 2 > session_ms:
        yield (
            f"broker.heartbeat.interval.ms ({beat_ms}) should be at most half of "
            f"broker.session.timeout.ms ({session_ms}): one late heartbeat fences the broker"
        )
