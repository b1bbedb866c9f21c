"""What the config topic says: the connectors, their tasks and target states.

`ConfigState.apply` takes one record after another. It never fails: a record that is not in
Connect's format is reported as `Unreadable`, and changes nothing.

    connector-N        {"properties": {...}}; without a value, the connector is deleted
    task-N-0           {"properties": {...}}; holds once a commit follows
    commit-N           {"tasks": 2}
    target-state-N     {"state": "PAUSED", "state.v2": "STOPPED"}
    restart-connector-N, tasks-fencing-N, session-key, logger-cluster-NAMESPACE

A commit holds if the tasks 0 to n-1 were all written since the last one. Otherwise the topic was
compacted in between, and the connector is inconsistent until its tasks are written again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.model import TargetState
from barnabas.connect.storage.topic_log import KeyAndValue, json_record

TARGET_STATE = "target-state-"
CONNECTOR = "connector-"
TASK = "task-"
COMMIT = "commit-"
RESTART = "restart-connector-"
FENCING = "tasks-fencing-"
LOGGER = "logger-cluster-"
SESSION_KEY = "session-key"

MAX_TASK_DIGITS = 9
"""Numbers of tasks are 32 bits long in Java."""

Config = Mapping[str, str]


@dataclass(slots=True, frozen=True)
class ConnectorConfigChanged:
    name: str


@dataclass(slots=True, frozen=True)
class ConnectorRemoved:
    name: str


@dataclass(slots=True, frozen=True)
class TargetStateChanged:
    name: str


@dataclass(slots=True, frozen=True)
class TaskConfigsChanged:
    name: str


@dataclass(slots=True, frozen=True)
class RestartRequested:
    name: str
    include_tasks: bool
    only_failed: bool


@dataclass(slots=True, frozen=True)
class LoggerLevelSet:
    namespace: str
    level: str


@dataclass(slots=True, frozen=True)
class Unreadable:
    """The record is not in Connect's format."""

    reason: str


ConfigChange = (
    ConnectorConfigChanged
    | ConnectorRemoved
    | TargetStateChanged
    | TaskConfigsChanged
    | RestartRequested
    | LoggerLevelSet
    | Unreadable
)


@dataclass(slots=True)
class ConfigState:
    """Changed only by `apply`."""

    connectors: dict[str, Config] = field(default_factory=dict)
    target_states: dict[str, TargetState] = field(default_factory=dict)
    inconsistent: set[str] = field(default_factory=set)
    """Connectors whose tasks are not all known."""
    task_count_records: dict[str, int] = field(default_factory=dict)
    """How many tasks may have open transactions, by connector."""
    _tasks: dict[str, dict[int, Config]] = field(default_factory=dict)
    _task_counts: dict[str, int] = field(default_factory=dict)
    _uncommitted: dict[str, dict[int, Config]] = field(default_factory=dict)

    def target_state(self, name: str) -> TargetState:
        return self.target_states.get(name, TargetState.STARTED)

    def task_configs(self, name: str) -> list[Config]:
        """Returns the settings of the tasks; none while the connector is inconsistent."""
        if name in self.inconsistent or name not in self.connectors:
            return []
        tasks = self._tasks.get(name, {})
        return [tasks[index] for index in range(self._task_counts.get(name, 0))]

    def apply(self, key: str, value: bytes | None) -> ConfigChange | None:
        """Returns what has changed, if anything that others need to know of."""
        try:
            content = None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            return Unreadable(f"the value of {key} is not JSON")
        if content is not None and not isinstance(content, dict):
            return Unreadable(f"the value of {key} is not a map")
        # In this order: the name of a connector may begin like another key.
        for prefix, apply in _APPLY:
            if key.startswith(prefix):
                return apply(self, key.removeprefix(prefix), content)
        if key == SESSION_KEY:  # of workers in Java
            return None
        return Unreadable(f"the key {key!r} is unknown")

    def _apply_target_state(self, name: str, content: Any) -> ConfigChange | None:
        if content is None:
            self.target_states.pop(name, None)
            return None  # the connector is removed by a record of its own
        text = content.get("state.v2", content.get("state"))
        if not isinstance(text, str) or text not in TargetState.__members__:
            return Unreadable(f"the target state of connector {name} is {text!r}")
        self.target_states[name] = TargetState(text)
        return TargetStateChanged(name) if name in self.connectors else None

    def _apply_connector(self, name: str, content: Any) -> ConfigChange | None:
        if content is None:
            self._tasks.pop(name, None)
            self._task_counts.pop(name, None)
            self._uncommitted.pop(name, None)
            self.inconsistent.discard(name)
            is_known = self.connectors.pop(name, None) is not None
            return ConnectorRemoved(name) if is_known else None
        config = _properties(content)
        if config is None:
            return Unreadable(f"the settings of connector {name} are not a map of text")
        self.connectors[name] = config
        return ConnectorConfigChanged(name)

    def _apply_task(self, task: str, content: Any) -> ConfigChange | None:
        name, _, index = task.rpartition("-")
        if not name or not index.isdecimal() or len(index) > MAX_TASK_DIGITS:
            return Unreadable(f"the key task-{task} does not end with the number of a task")
        if content is None:
            return None
        config = _properties(content)
        if config is None:
            return Unreadable(f"the settings of task {task} are not a map of text")
        self._uncommitted.setdefault(name, {})[int(index)] = config
        return None

    def _apply_commit(self, name: str, content: Any) -> ConfigChange | None:
        if content is None:
            return None
        count = content.get("tasks")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return Unreadable(f"the number of tasks of connector {name} is {count!r}")
        written = self._uncommitted.pop(name, {})
        self._task_counts[name] = count
        if all(index in written for index in range(count)):
            self._tasks[name] = {**self._tasks.get(name, {}), **written}
            self.inconsistent.discard(name)
        else:
            self.inconsistent.add(name)
        return TaskConfigsChanged(name) if name in self.connectors else None

    def _apply_restart(self, name: str, content: Any) -> ConfigChange | None:
        if content is None or name not in self.connectors:
            return None
        return RestartRequested(
            name, bool(content.get("include-tasks")), bool(content.get("only-failed"))
        )

    def _apply_fencing(self, name: str, content: Any) -> ConfigChange | None:
        count = None if content is None else content.get("task-count")
        if isinstance(count, int):
            self.task_count_records[name] = count
        return None

    def _apply_logger(self, namespace: str, content: Any) -> ConfigChange | None:
        level = None if content is None else content.get("level")
        return LoggerLevelSet(namespace, level) if isinstance(level, str) else None


_APPLY = (
    (TARGET_STATE, ConfigState._apply_target_state),
    (CONNECTOR, ConfigState._apply_connector),
    (TASK, ConfigState._apply_task),
    (COMMIT, ConfigState._apply_commit),
    (RESTART, ConfigState._apply_restart),
    (FENCING, ConfigState._apply_fencing),
    (LOGGER, ConfigState._apply_logger),
)


def _properties(content: Mapping[str, Any]) -> Config | None:
    properties = content.get("properties")
    if not isinstance(properties, dict):
        return None
    if not all(isinstance(value, str) or value is None for value in properties.values()):
        return None
    return properties


# Records


def connector_records(
    name: str, config: Config, initial_state: TargetState | None = None
) -> list[KeyAndValue]:
    """A connector that is to start in another state gets that state before its settings."""
    state = [] if initial_state is None else [target_state_record(name, initial_state)]
    return [*state, json_record(CONNECTOR + name, {"properties": dict(config)})]


def removal_records(name: str) -> list[KeyAndValue]:
    return [((CONNECTOR + name).encode(), None), ((TARGET_STATE + name).encode(), None)]


def target_state_record(name: str, state: TargetState) -> KeyAndValue:
    """Workers before Kafka 3.5 read `state`, which cannot be STOPPED."""
    known_to_all = TargetState.PAUSED if state is TargetState.STOPPED else state
    return json_record(TARGET_STATE + name, {"state": known_to_all, "state.v2": state})


def task_records(name: str, configs: Sequence[Config]) -> list[KeyAndValue]:
    tasks = [
        json_record(f"{TASK}{name}-{index}", {"properties": dict(config)})
        for index, config in enumerate(configs)
    ]
    return [*tasks, json_record(COMMIT + name, {"tasks": len(configs)})]


def task_count_record(name: str, count: int) -> KeyAndValue:
    return json_record(FENCING + name, {"task-count": count})


def restart_record(name: str, *, include_tasks: bool, only_failed: bool) -> KeyAndValue:
    return json_record(RESTART + name, {"include-tasks": include_tasks, "only-failed": only_failed})


def logger_record(namespace: str, level: str) -> KeyAndValue:
    return json_record(LOGGER + namespace, {"level": level})
