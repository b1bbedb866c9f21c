"""Decisions on what operators request: which records the leader writes, and what it responds."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from barnabas.connect.model import RequestFailedError, TargetState
from barnabas.connect.storage.config_state import (
    Config,
    ConfigState,
    connector_records,
    removal_records,
    restart_record,
    target_state_record,
)
from barnabas.connect.storage.topic_log import KeyAndValue
from barnabas.decision import Decision

T = TypeVar("T")
HerderDecision: TypeAlias = Decision[KeyAndValue, T, None]
Decide: TypeAlias = Callable[[ConfigState], HerderDecision[T]]


def decide_put(
    name: str,
    config: Config,
    state: ConfigState,
    *,
    may_exist: bool,
    initial_state: TargetState | None,
) -> HerderDecision[bool]:
    """Responds whether the connector is new.

    The same settings are written again: their references to config providers are resolved anew.
    """
    is_new = name not in state.connectors
    if not is_new and not may_exist:
        raise RequestFailedError(409, f"Connector {name} already exists")
    return Decision(connector_records(name, config, initial_state if is_new else None), is_new)


def decide_delete(name: str, state: ConfigState) -> HerderDecision[None]:
    require_connector(name, state)
    return Decision(removal_records(name), None)


def decide_target_state(name: str, target: TargetState, state: ConfigState) -> HerderDecision[None]:
    if name not in state.connectors:
        raise RequestFailedError(404, f"Unknown connector {name}")
    if state.target_state(name) is target:
        return Decision([], None)
    return Decision([target_state_record(name, target)], None)


def decide_restart(
    name: str, state: ConfigState, *, include_tasks: bool, only_failed: bool
) -> HerderDecision[None]:
    if name not in state.connectors:
        raise RequestFailedError(404, f"Unknown connector: {name}")
    record = restart_record(name, include_tasks=include_tasks, only_failed=only_failed)
    return Decision([record], None)


def patched(config: Config, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the settings with changes; a null removes a setting."""
    merged = {**config, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def require_connector(name: str, state: ConfigState) -> Config:
    """Returns the settings of a connector. Raises RequestFailed 404 if there is none."""
    config = state.connectors.get(name)
    if config is None:
        raise RequestFailedError(404, f"Connector {name} not found")
    return config
