"""The config topic's records, and what follows from them."""

import json

import pytest

from barnabas.connect.model import TargetState
from barnabas.connect.storage.config_state import (
    ConfigState,
    ConnectorConfigChanged,
    ConnectorRemoved,
    LoggerLevelSet,
    RestartRequested,
    TargetStateChanged,
    TaskConfigsChanged,
    Unreadable,
    connector_records,
    logger_record,
    removal_records,
    restart_record,
    target_state_record,
    task_count_record,
    task_records,
)
from barnabas.connect.storage.topic_log import KeyAndValue


def apply(state: ConfigState, *records: KeyAndValue) -> list[object]:
    return [state.apply(key.decode(), value) for key, value in records]


def with_connector(name: str = "c") -> ConfigState:
    state = ConfigState()
    apply(state, *connector_records(name, {"name": name}))
    return state


def test_records_have_the_bytes_of_connect() -> None:
    assert connector_records("c", {"name": "c", "file": "/tmp/é"}) == [
        (b"connector-c", '{"properties":{"name":"c","file":"/tmp/é"}}'.encode())
    ]
    assert task_records("c", [{"a": "1"}, {}]) == [
        (b"task-c-0", b'{"properties":{"a":"1"}}'),
        (b"task-c-1", b'{"properties":{}}'),
        (b"commit-c", b'{"tasks":2}'),
    ]
    assert target_state_record("c", TargetState.PAUSED) == (
        b"target-state-c",
        b'{"state":"PAUSED","state.v2":"PAUSED"}',
    )
    assert target_state_record("c", TargetState.STOPPED) == (
        b"target-state-c",
        b'{"state":"PAUSED","state.v2":"STOPPED"}',
    )
    assert restart_record("c", include_tasks=True, only_failed=False) == (
        b"restart-connector-c",
        b'{"include-tasks":true,"only-failed":false}',
    )
    assert task_count_record("c", 2) == (b"tasks-fencing-c", b'{"task-count":2}')
    assert logger_record("a.b", "DEBUG") == (b"logger-cluster-a.b", b'{"level":"DEBUG"}')
    assert removal_records("c") == [(b"connector-c", None), (b"target-state-c", None)]


def test_the_initial_state_is_written_before_the_settings() -> None:
    records = connector_records("c", {"name": "c"}, TargetState.STOPPED)
    assert [key for key, _ in records] == [b"target-state-c", b"connector-c"]
    state = ConfigState()
    assert apply(state, *records) == [None, ConnectorConfigChanged("c")]
    assert state.target_state("c") is TargetState.STOPPED


def test_tasks_hold_once_a_commit_follows() -> None:
    state = with_connector()
    *tasks, commit = task_records("c", [{"a": "1"}, {"a": "2"}])
    assert apply(state, *tasks) == [None, None]
    assert state.task_configs("c") == []
    assert apply(state, commit) == [TaskConfigsChanged("c")]
    assert state.task_configs("c") == [{"a": "1"}, {"a": "2"}]
    apply(state, *task_records("c", [{"a": "3"}]))
    assert state.task_configs("c") == [{"a": "3"}]
    apply(state, *task_records("c", []))
    assert state.task_configs("c") == []
    assert state.inconsistent == set()


def test_a_commit_without_all_of_its_tasks_makes_the_connector_inconsistent() -> None:
    """Compaction may remove the older of two versions of a task, and leave their commit."""
    state = with_connector()
    first, _, commit = task_records("c", [{"a": "1"}, {"a": "2"}])
    apply(state, first, commit)
    assert state.inconsistent == {"c"}
    assert state.task_configs("c") == []
    apply(state, *task_records("c", [{"a": "1"}]))
    assert state.inconsistent == set()
    assert state.task_configs("c") == [{"a": "1"}]


def test_fewer_tasks_after_compaction_are_consistent() -> None:
    """A removed task's record stays in the topic, before those of the newer version."""
    state = with_connector()
    first, second, _ = task_records("c", [{"a": "1"}, {"a": "2"}])
    apply(state, second, first, (b"commit-c", b'{"tasks":1}'))
    assert state.task_configs("c") == [{"a": "1"}]


def test_a_removed_connector_leaves_nothing() -> None:
    state = with_connector()
    apply(state, *task_records("c", [{}]), target_state_record("c", TargetState.PAUSED))
    assert apply(state, *removal_records("c")) == [ConnectorRemoved("c"), None]
    assert state == ConfigState()
    assert apply(state, *removal_records("c")) == [None, None]


def test_target_states_of_old_and_new_workers_are_understood() -> None:
    state = with_connector()
    assert state.target_state("c") is TargetState.STARTED
    old = (b"target-state-c", b'{"state":"PAUSED"}')
    assert apply(state, old) == [TargetStateChanged("c")]
    assert state.target_state("c") is TargetState.PAUSED
    apply(state, target_state_record("c", TargetState.STOPPED))
    assert state.target_state("c") is TargetState.STOPPED
    (change,) = apply(state, (b"target-state-c", b'{"state":"FLYING"}'))
    assert isinstance(change, Unreadable)
    assert state.target_state("c") is TargetState.STOPPED


@pytest.mark.parametrize("name", ["c", "task-0", "connector-x", "a-1", "commit-", "ü"])
def test_names_that_look_like_other_keys_are_kept_apart(name: str) -> None:
    state = with_connector(name)
    apply(state, *task_records(name, [{"a": "1"}]), task_count_record(name, 1))
    assert state.connectors == {name: {"name": name}}
    assert state.task_configs(name) == [{"a": "1"}]
    assert state.task_count_records == {name: 1}


def test_restarts_and_levels_are_reported() -> None:
    state = with_connector()
    assert apply(
        state,
        restart_record("c", include_tasks=True, only_failed=True),
        restart_record("unknown", include_tasks=True, only_failed=True),
        logger_record("barnabas.connect", "DEBUG"),
        (b"session-key", b'{"key":"a2V5","algorithm":"HmacSHA256","creation-timestamp":1}'),
    ) == [
        RestartRequested("c", include_tasks=True, only_failed=True),
        None,
        LoggerLevelSet("barnabas.connect", "DEBUG"),
        None,
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector-c", b"not JSON"),
        ("connector-c", b"7"),
        ("connector-c", b"{}"),
        ("connector-c", b'{"properties":{"a":1}}'),
        ("task-c", b'{"properties":{}}'),
        ("task-c-0", b"{}"),
        ("commit-c", b'{"tasks":"2"}'),
        ("commit-c", b'{"tasks":-1}'),
        ("other", b"{}"),
        ("connector-c", b"[" * 100_000),
        ("target-state-c", b'{"state":[]}'),
        ("task-c-" + "9" * 5000, b'{"properties":{}}'),
    ],
)
def test_other_records_change_nothing(key: str, value: bytes) -> None:
    state = with_connector()
    before = json.dumps(state.connectors)
    assert isinstance(state.apply(key, value), Unreadable)
    assert json.dumps(state.connectors) == before
