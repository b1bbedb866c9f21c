"""Starting, pausing, stopping, restarting and moving connectors, and the states they report."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from tests.connect.execution.instance import (
    Instance,
    new_world,
    produce,
    run,
    sink_config,
    source_config,
    values_of,
)

from barnabas.connect import ConfigDef, SinkConnector
from barnabas.connect.execution.connector_run import ConnectorRun
from barnabas.connect.model import RequestFailedError, State, StoredOffset, TargetState
from barnabas.spark.runtime.errors import StopTimeoutError
from barnabas.spark.runtime.work_run import WorkRun
from barnabas.testing import Broker


def test_a_stopped_connector_has_no_tasks_and_writes_nothing(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            config = sink_config(world, kafka_topic)
            await instance.run("s", config)
            await instance.until_task("s", State.RUNNING)
            await instance.run("s", config, TargetState.STOPPED)
            assert instance.listener.state("s") is State.STOPPED
            assert instance.listener.task_configs["s"] == []
            assert state.calls["stop"] == 1
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", config)
            await instance.until(lambda: state.values() == ["a"])
            assert instance.listener.task("s") is State.RUNNING

    run(scenario())


def test_a_connector_that_does_not_start_is_failed_and_started_again(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    state.failures["start"] = [ConnectionError("no route to the database")] * 2

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: instance.listener.state("s") is State.RUNNING)
            states = [state for state, _ in instance.listener.connectors["s"]]
            again = [State.FAILED, State.RESTARTING]
            assert states == [State.UNASSIGNED, *again, *again, State.RUNNING]
            assert "no route to the database" in (instance.listener.connectors["s"][1][1] or "")

    run(scenario())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"connector.class": "Nothing"}, "Failed to find any class"),
        ({"world": None}, 'Missing required configuration "world"'),
        ({"tasks.max": "many"}, "Not a number of type INT"),
        ({"value.converter": "Nothing"}, "Failed to find any class"),
        ({"header.converter": "Nothing"}, "Failed to find any class"),
        ({"topics.regex": "x"}, "Must configure one of topics or topics.regex"),
        ({"transforms": "a"}, "transforms.a.type"),
        ({"consumer.override.bootstrap.servers": "b:1"}, "Clients have several clusters"),
    ],
)
def test_wrong_settings_fail_the_connector_with_a_trace(
    kafka_broker: Broker, kafka_topic: str, change: dict[str, str | None], problem: str
) -> None:
    world, _ = new_world()
    never = {"barnabas.restart.initial.ms": "0"}
    merged = {**sink_config(world, kafka_topic), **change}
    config = {name: text for name, text in merged.items() if text is not None}

    async def scenario() -> None:
        async with Instance(kafka_broker, settings=never) as instance:
            await instance.run("s", config)
            await instance.until(lambda: instance.listener.state("s") is State.FAILED)
            assert problem in (instance.listener.connectors["s"][-1][1] or "")
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: instance.listener.state("s") is State.RUNNING)

    run(scenario())


def test_a_failed_task_runs_again_when_it_is_restarted(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    state.failures["write"] = [ValueError("full")]
    never = {"barnabas.restart.initial.ms": "0"}

    async def scenario() -> None:
        async with Instance(kafka_broker, settings=never) as instance:
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until_task("s", State.FAILED)
            await instance.engine.restart("s", connector=False, tasks=[0])
            await instance.until_task("s", State.RUNNING)
            assert state.values() == ["a"]
            assert instance.listener.task_states("s")[-3:] == [
                State.FAILED,
                State.RESTARTING,
                State.RUNNING,
            ]

    run(scenario())


def test_an_idle_task_and_its_connector_are_restarted(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    tables, source = new_world(a=["1"])

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.run("src", source_config(tables))
            for name in ("s", "src"):
                await instance.until_task(name, State.RUNNING)
                await instance.engine.restart(name, connector=True, tasks=[0])
                await instance.until(functools.partial(is_running, instance, name))
                assert State.RESTARTING in instance.listener.task_states(name)
            assert (state.calls["start"], source.calls["start"]) == (2, 2)
            assert await values_of(instance.servers, next(iter(source.rows))) == ["1"]

    run(scenario())


def is_running(instance: Instance, name: str) -> bool:
    listener = instance.listener
    return listener.state(name) is State.RUNNING and listener.task(name) is State.RUNNING


def test_a_source_whose_check_fails_is_failed_until_it_succeeds(kafka_broker: Broker) -> None:
    world, state = new_world(a=["1"])
    (topic,) = state.rows

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("src", source_config(world))
            await instance.until(lambda: state.calls["has_new"])
            state.failures["has_new"] = [ConnectionError("down")] * 2
            await instance.until_task("src", State.FAILED)
            assert "down" in instance.listener.trace("src")
            await instance.until_task("src", State.RUNNING)
            assert await values_of(instance.servers, topic) == ["1"]

    run(scenario())


def test_a_connector_may_have_a_query_of_its_own(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            config = sink_config(world, kafka_topic, **{"barnabas.query": "dedicated"})
            await instance.run("s", config)
            await instance.until(lambda: state.values() == ["a"])
            assert list(instance.engine._packs) == ["connectors-s"]
            await instance.engine.release_connector("s")
            assert instance.engine._packs == {}

    run(scenario())


class DeadlySink(SinkConnector):
    """Ends the query that runs it, as a crash of the worker does on Spark."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def open(self, context: object) -> Any:
        raise SystemError("the worker dies")


def test_a_connector_that_ends_its_query_fails_alone(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world()
    complete = WorkRun.complete
    deaths: list[int] = []

    def complete_or_die(run_: WorkRun, reports: Any) -> None:
        if any(report.trace and "the worker dies" in report.trace for report in reports):
            deaths.append(len(reports))
            run_.error = RuntimeError("a worker has died")
            raise run_.error
        complete(run_, reports)

    monkeypatch.setattr(WorkRun, "complete", complete_or_die)
    deadly = {
        "connector.class": "tests.connect.execution.test_lifecycle:DeadlySink",
        "topics": f"{kafka_topic}-deadly",
        "barnabas.restart.initial.ms": "600000",
        "barnabas.restart.max.ms": "600000",
    }

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            produce(instance.servers, f"{kafka_topic}-deadly", "a")
            await instance.run("deadly", deadly)
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: state.values() == ["a"])
            await instance.until_task("deadly", State.FAILED)
            produce(instance.servers, kafka_topic, "b")
            await instance.until(lambda: state.values() == ["a", "b"])
            await instance.until_task("s", State.RUNNING)
            assert instance.listener.task("deadly") is State.FAILED
            assert set(instance.engine._packs) == {"connectors", "connectors-deadly"}

    run(scenario())
    assert len(deaths) <= 2


def test_items_that_run_too_long_are_interrupted(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world()
    monkeypatch.setattr("barnabas.connect.execution.connector_run.DRAIN_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            loop, never = asyncio.get_running_loop(), asyncio.Event()
            state.hooks["write"] = lambda: asyncio.run_coroutine_threadsafe(
                never.wait(), loop
            ).result()
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: state.calls["write"])
            await instance.engine.release_connector("s")
            assert state.calls["commit"] == 0
            never.set()

    run(scenario())
    assert state.values() == []


def test_several_connectors_whose_items_are_interrupted_end(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world()
    monkeypatch.setattr("barnabas.connect.execution.connector_run.DRAIN_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            loop, never = asyncio.get_running_loop(), asyncio.Event()
            config = sink_config(world, kafka_topic)
            produce(instance.servers, kafka_topic, "a")
            await asyncio.gather(*(instance.run(name, config) for name in "abc"))
            await instance.until(lambda: len(state.written) == 3)
            state.hooks["write"] = lambda: asyncio.run_coroutine_threadsafe(
                never.wait(), loop
            ).result()
            runs = list(instance.engine._runs.values())
            produce(instance.servers, kafka_topic, "b")  # one micro-batch has it for all of them
            await instance.until(lambda: all(each.has_items_in_flight for each in runs))
            await asyncio.gather(*(instance.engine.release_connector(name) for name in "abc"))
            assert state.calls["stop"] == 3
            never.set()

    run(scenario())


def test_a_connector_that_did_not_end_is_ended_by_the_next_call(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world()
    halt, errors = ConnectorRun.halt, [StopTimeoutError("the query has not stopped")]

    async def fail_once(self: ConnectorRun) -> None:
        if errors:
            raise errors.pop()
        await halt(self)

    monkeypatch.setattr(ConnectorRun, "halt", fail_once)

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until_task("s", State.RUNNING)
            with pytest.raises(StopTimeoutError):
                await instance.engine.release_connector("s")
            assert state.calls["stop"] == 0
            await instance.engine.release_connector("s")
            assert state.calls["stop"] == 1

    run(scenario())


# Offsets


def test_offsets_of_a_sink_are_changed_and_reset(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()
    config = sink_config(world, kafka_topic)
    partition = {"kafka_topic": kafka_topic, "kafka_partition": 0}

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            engine = instance.engine
            produce(instance.servers, kafka_topic, "a", "b", "c")
            await instance.run("s", config)
            await instance.until(lambda: len(state.written) == 3)
            await instance.run("s", config, TargetState.STOPPED)
            as_text = StoredOffset({**partition, "kafka_partition": "0"}, {"kafka_offset": "1"})
            assert await engine.alter_offsets("s", config, [as_text])
            assert await engine.offsets("s", config) == [
                StoredOffset(partition, {"kafka_offset": 1})
            ]
            await instance.run("s", config)
            await instance.until(lambda: state.values() == ["a", "b", "c", "b", "c"])
            await instance.run("s", config, TargetState.STOPPED)
            await engine.alter_offsets("s", config, [StoredOffset(partition, None)])
            assert await engine.offsets("s", config) == []
            await engine.alter_offsets("s", config, [as_text])
            await engine.alter_offsets("s", config, None)
            assert await engine.offsets("s", config) == []
            await instance.run("s", config)
            await instance.until(lambda: len(state.written) == 8)

    run(scenario())


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (StoredOffset({}, {"kafka_offset": 1}), "cannot be null"),
        (StoredOffset({"kafka_topic": "t"}, {"kafka_offset": 1}), "must contain the keys"),
        (
            StoredOffset({"kafka_topic": "t", "kafka_partition": "x"}, {"kafka_offset": 1}),
            "partition value in the provided offsets: 'x'",
        ),
        (StoredOffset({"kafka_topic": "t", "kafka_partition": 0}, {"x": 1}), "contain the key"),
    ],
)
def test_wrong_offsets_of_a_sink_are_rejected(
    kafka_broker: Broker, kafka_topic: str, stored: StoredOffset, problem: str
) -> None:
    world, _ = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            config = sink_config(world, kafka_topic)
            with pytest.raises(RequestFailedError, match=problem) as failed:
                await instance.engine.alter_offsets("s", config, [stored])
            assert failed.value.status == 400

    run(scenario())


@pytest.mark.parametrize("exactly_once", [False, True])
def test_positions_of_a_source_are_changed_and_reset(
    kafka_broker: Broker, exactly_once: bool
) -> None:
    world, state = new_world(a=["1", "2", "3"])
    (topic,) = state.rows
    config = source_config(world)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=exactly_once) as instance:
            engine = instance.engine

            async def until_written(count: int) -> None:
                def is_at_end() -> bool:
                    return instance.positions.offset("src", {"table": topic}) == {"row": 3}

                await instance.until(is_at_end)
                assert len(await values_of(instance.servers, topic)) == count

            await instance.run("src", config)
            await until_written(3)
            await instance.run("src", config, TargetState.STOPPED)
            changed = StoredOffset({"table": topic}, {"row": 1})
            assert await engine.alter_offsets("src", config, [changed])
            assert await engine.offsets("src", config) == [changed]
            await instance.run("src", config)
            await until_written(5)
            await instance.run("src", config, TargetState.STOPPED)
            assert await engine.alter_offsets("src", config, None)
            assert await engine.offsets("src", config) == []
            await instance.run("src", config)
            await until_written(8)

    run(scenario())
