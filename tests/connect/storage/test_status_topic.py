"""The status topic's records, and what follows from them."""

from dataclasses import replace

import pytest

from barnabas.connect.model import State, Status
from barnabas.connect.storage.status_topic import (
    StatusState,
    UnreadableStatusError,
    connector_status_record,
    task_status_record,
    topic_record,
)
from barnabas.connect.storage.topic_log import KeyAndValue

RUNNING = Status(State.RUNNING, "a:8083", None, 3)


def state_of(*records: KeyAndValue) -> StatusState:
    state = StatusState()
    for key, value in records:
        state.apply(key.decode(), value)
    return state


def test_records_have_the_bytes_of_connect() -> None:
    assert connector_status_record("c", RUNNING) == (
        b"status-connector-c",
        b'{"state":"RUNNING","trace":null,"worker_id":"a:8083","generation":3}',
    )
    failed = Status(State.FAILED, "a:8083", "E\n\tat é", 3)
    assert task_status_record("c", 1, failed) == (
        b"status-task-c-1",
        '{"state":"FAILED","trace":"E\\n\\tat é","worker_id":"a:8083","generation":3}'.encode(),
    )
    assert topic_record("c", "t", 0, 1700000000000) == (
        b"status-topic-t:connector-c",
        b'{"topic":{"name":"t","connector":"c","task":0,"discoverTimestamp":1700000000000}}',
    )
    assert connector_status_record("c", None) == (b"status-connector-c", None)
    assert topic_record("c", "t", 0, None) == (b"status-topic-t:connector-c", None)


def test_the_newest_state_holds_until_it_is_removed() -> None:
    state = state_of(
        connector_status_record("c", RUNNING),
        connector_status_record("c", replace(RUNNING, state=State.PAUSED)),
        task_status_record("a-b", 1, RUNNING),
        task_status_record("a-b", 0, RUNNING),
        topic_record("c", "t", 0, 1),
    )
    assert state.connectors["c"].state is State.PAUSED
    assert list(state.tasks("a-b")) == [0, 1]
    assert state.topics("c") == {"t"}
    for key, value in (
        connector_status_record("c", None),
        task_status_record("a-b", 0, None),
        task_status_record("a-b", 1, None),
        topic_record("c", "t", 0, None),
    ):
        state.apply(key.decode(), value)
    assert state.names() == set()


@pytest.mark.parametrize(("generation", "expected"), [(2, "b:1"), (3, "b:1"), (4, "a:1")])
def test_a_worker_that_gives_up_a_connector_late_does_not_hide_that_another_runs_it(
    generation: int, expected: str
) -> None:
    state = state_of(
        connector_status_record("c", Status(State.RUNNING, "b:1", None, 3)),
        connector_status_record("c", Status(State.UNASSIGNED, "a:1", None, generation)),
    )
    assert state.connectors["c"].worker_id == expected


def test_a_worker_gives_up_what_it_runs_in_the_same_generation() -> None:
    unassigned = replace(RUNNING, state=State.UNASSIGNED)
    records = connector_status_record("c", RUNNING), connector_status_record("c", unassigned)
    assert state_of(*records).connectors["c"] == unassigned


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status-connector-c", b"not JSON"),
        ("status-connector-c", b'{"state":"FLYING","worker_id":"a","generation":1}'),
        ("status-connector-c", b"[]"),
        ("status-connector-c", b'{"state":"RUNNING","worker_id":"a","generation":Infinity}'),
        ("status-task-c", b"{}"),
        ("status-task-c-" + "9" * 5000, b"{}"),
        ("status-topic-t", b"{}"),
        ("other", b"{}"),
    ],
)
def test_other_records_are_errors(key: str, value: bytes) -> None:
    with pytest.raises(UnreadableStatusError):
        StatusState().apply(key, value)
