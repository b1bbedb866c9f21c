"""One instance, with a broker: what operators request, and what the topics then contain."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.connect.herder.instances import SOURCE, Group, Instance, group_of
from tests.wait import async_wait_until

from barnabas import Consumer, TopicPartition
from barnabas.connect.model import (
    ConnectorKind,
    ConnectorStatus,
    RequestFailedError,
    State,
    StoredOffset,
    TargetState,
)
from barnabas.testing import Broker

Scenario = Callable[[Group, Instance], Coroutine[Any, Any, None]]


def with_instance(broker: Broker, scenario: Scenario, **properties: str) -> None:
    async def run() -> None:
        async with group_of(broker, 1, **properties) as group:
            await scenario(group, group.instances[0])

    asyncio.run(run())


async def status_of(instance: Instance, name: str, state: State) -> ConnectorStatus:
    """Returns the status of a connector once it has this state."""
    herder = instance.herder
    statuses = herder.instance.status_topic.state
    await async_wait_until(
        lambda: name in statuses.connectors and statuses.connectors[name].state is state,
        f"{name} is {state}",
    )
    return await herder.connector_status(name)


async def failure(request: Coroutine[Any, Any, object]) -> tuple[int, str]:
    with pytest.raises(RequestFailedError) as raised:
        await request
    return raised.value.status, raised.value.message


def records_of(broker: Broker, topic: str) -> dict[str, Any]:
    """Returns the last value of each key."""
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test"}
    values: dict[str, Any] = {}
    with Consumer({**config, "isolation.level": "read_committed"}) as consumer:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        for partition in partitions:
            end = consumer.get_watermark_offsets(TopicPartition(topic, partition))[1]
            consumer.assign([TopicPartition(topic, partition, 0)])
            position = 0
            while position < end:
                message = consumer.poll(0.1)
                if message is not None:
                    value = message.value()
                    values[message.key().decode()] = value and json.loads(value)
                (at,) = consumer.position([TopicPartition(topic, partition)])
                position = max(position, at.offset)
    return values


def test_a_connector_is_created_run_and_described(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        config = {"name": "c", "connector.class": SOURCE, "topic": "t"}
        created, info = await herder.put_config("c", config, may_exist=False)
        assert created
        assert (info.name, info.config, info.kind) == ("c", config, ConnectorKind.SOURCE)
        status = await status_of(instance, "c", State.RUNNING)
        await async_wait_until(lambda: len(herder.instance.status_topic.state.tasks("c")) == 2)
        status = await herder.connector_status("c")
        assert status.connector.worker_id == instance.worker_id
        assert [task.state for task in status.tasks.values()] == [State.RUNNING] * 2
        assert await herder.connectors() == ["c"]
        state = herder.instance.config_topic.state
        await async_wait_until(lambda: len(state.task_configs("c")) == 2)
        assert (await herder.connector_info("c")).tasks == 2
        assert await herder.task_configs("c") == [{"task": "0"}, {"task": "1"}]
        topics = herder.worker_config
        configs = await asyncio.to_thread(records_of, kafka_broker, topics.config_topic)
        assert configs == {
            "connector-c": {"properties": config},
            "task-c-0": {"properties": {"task": "0"}},
            "task-c-1": {"properties": {"task": "1"}},
            "commit-c": {"tasks": 2},
        }

    with_instance(kafka_broker, scenario)


def test_settings_are_changed_patched_and_read_back(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c", a="1", b="2")
        await group.wait_until_all_run(["c"])
        config = {**await herder.connector_config("c"), "a": "3"}
        created, _ = await herder.put_config("c", config, may_exist=True)
        assert not created
        await group.wait_for(lambda: instance.engine.configs["c"].get("a") == "3")
        info = await herder.patch_config("c", {"b": None, "d": "4"})
        assert info.config == {"name": "c", "connector.class": SOURCE, "a": "3", "d": "4"}
        await group.wait_for(lambda: instance.engine.configs["c"].get("d") == "4")
        status, message = await failure(herder.put_config("c", config, may_exist=False))
        assert (status, message) == (409, "Connector c already exists")

    with_instance(kafka_broker, scenario)


def test_the_same_settings_start_the_connector_again(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        await group.create("c")
        await group.wait_until_all_run(["c"])
        config = await instance.herder.connector_config("c")
        await instance.herder.put_config("c", config, may_exist=True)
        await group.wait_for(lambda: len(instance.engine.calls) == 2)

    with_instance(kafka_broker, scenario)


def test_target_states_are_applied_and_kept(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c")
        await status_of(instance, "c", State.RUNNING)
        await herder.set_target_state("c", TargetState.PAUSED)
        await status_of(instance, "c", State.PAUSED)
        await herder.set_target_state("c", TargetState.STOPPED)
        status = await status_of(instance, "c", State.STOPPED)
        tasks = herder.instance.status_topic.state
        await async_wait_until(lambda: not tasks.tasks("c"), "its tasks are removed")
        await async_wait_until(lambda: herder.instance.config_topic.state.task_configs("c") == [])
        assert await herder.task_configs("c") == []
        await herder.set_target_state("c", TargetState.STARTED)
        status = await status_of(instance, "c", State.RUNNING)
        assert status.kind is ConnectorKind.SOURCE

    with_instance(kafka_broker, scenario)


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_connector_that_is_paused_or_stopped_stays_so_when_it_is_restarted(
    kafka_broker: Broker, target: TargetState
) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c")
        await status_of(instance, "c", State.RUNNING)
        await herder.set_target_state("c", target)
        await status_of(instance, "c", State(target))
        await herder.restart("c", include_tasks=True, only_failed=False)
        await herder.set_target_state("c", TargetState.STARTED)
        await status_of(instance, "c", State.RUNNING)
        await herder.restart("c", include_tasks=True, only_failed=False)
        await async_wait_until(lambda: instance.engine.calls[-1][0] == "restart")
        calls = [call[0] for call in instance.engine.calls]
        assert calls == ["run", "run", "run", "restart"]

    with_instance(kafka_broker, scenario)


def test_a_connector_may_be_created_paused_or_stopped(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        config = {"name": "c", "connector.class": SOURCE}
        await instance.herder.put_config(
            "c", config, may_exist=False, initial_state=TargetState.STOPPED
        )
        await status_of(instance, "c", State.STOPPED)
        assert instance.engine.calls == [("run", "c", TargetState.STOPPED)]

    with_instance(kafka_broker, scenario)


def test_a_deleted_connector_ends_and_leaves_nothing(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c")
        await status_of(instance, "c", State.RUNNING)
        instance.engine.listener.on_topic_used("c", "t")
        await async_wait_until(lambda: herder.instance.status_topic.state.topics("c"))
        await herder.delete("c")
        await group.wait_for(lambda: not group.runs.owners)
        state = herder.instance.status_topic.state
        await async_wait_until(lambda: not state.names(), "its statuses are removed")
        for request in (
            herder.connector_info("c"),
            herder.connector_config("c"),
            herder.task_configs("c"),
            herder.delete("c"),
            herder.patch_config("c", {}),
            herder.offsets("c"),
            herder.alter_offsets("c", None),
        ):
            assert await failure(request) == (404, "Connector c not found")
        assert await failure(herder.connector_status("c")) == (
            404,
            "No status found for connector c",
        )
        assert await failure(herder.set_target_state("c", TargetState.PAUSED)) == (
            404,
            "Unknown connector c",
        )
        assert await failure(herder.restart_task("c", 0)) == (404, "Unknown connector: c")
        # A late report of the engine does not bring it back.
        instance.engine.listener.on_connector_status("c", State.RUNNING)
        await herder.instance.flush_statuses()
        assert not state.names()

    with_instance(kafka_broker, scenario)


def test_failed_parts_are_restarted(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder, engine = instance.herder, instance.engine
        await group.create("c")
        await status_of(instance, "c", State.RUNNING)
        engine.listener.on_task_status("c", 1, State.FAILED, "java.lang.Error: no")
        statuses = herder.instance.status_topic.state
        await async_wait_until(lambda: statuses.tasks("c")[1].state is State.FAILED)
        status = await herder.restart("c", include_tasks=True, only_failed=True)
        assert status is not None
        assert status.connector.state is State.RUNNING
        assert [task.state for task in status.tasks.values()] == [
            State.RUNNING,
            State.RESTARTING,
        ]
        await group.wait_for(lambda: ("restart", "c", False, [1]) in engine.calls)
        assert await herder.restart("c", include_tasks=False, only_failed=False) is None
        await group.wait_for(lambda: ("restart", "c", True, []) in engine.calls)
        await herder.restart_task("c", 0)
        await group.wait_for(lambda: ("restart", "c", False, [0]) in engine.calls)
        assert await failure(herder.restart_task("c", 2)) == (404, "Unknown task: c-2")
        assert await failure(herder.restart("d", include_tasks=True, only_failed=True)) == (
            404,
            "Unknown connector: d",
        )

    with_instance(kafka_broker, scenario)


def test_a_connector_that_cannot_start_has_failed_until_it_is_restarted(
    kafka_broker: Broker,
) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        await group.create("c", fails="at start")
        status = await status_of(instance, "c", State.FAILED)
        assert "the disk is on fire" in (status.connector.trace or "")
        await instance.herder.restart("c", include_tasks=False, only_failed=False)
        await group.wait_for(lambda: len(instance.engine.calls) == 2, "it is started again")
        await instance.herder.patch_config("c", {"fails": None})
        await status_of(instance, "c", State.RUNNING)

    with_instance(kafka_broker, scenario)


def test_references_are_resolved_for_the_engine_and_stored_as_they_are(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECT_TEST_PASSWORD", "secret")
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"

    async def scenario(group: Group, instance: Instance) -> None:
        await group.create("c", password="${env:CONNECT_TEST_PASSWORD}")
        await group.wait_until_all_run(["c"])
        assert instance.engine.configs["c"]["password"] == "secret"
        config = await instance.herder.connector_config("c")
        assert config["password"] == "${env:CONNECT_TEST_PASSWORD}"
        task = {**instance.engine.configs["c"], "task.class": "T"}
        instance.herder.instance.on_task_configs("c", [task])
        state = instance.herder.instance.config_topic.state
        await async_wait_until(lambda: len(state.task_configs("c")) == 1)
        assert await instance.herder.task_configs("c") == [{**config, "task.class": "T"}]
        topic = instance.herder.instance.config_topic.topic
        stored = await asyncio.to_thread(records_of, kafka_broker, topic)
        assert "secret" not in json.dumps(stored)

    properties = {"config.providers": "env", "config.providers.env.class": provider}
    with_instance(kafka_broker, scenario, **properties)


def test_positions_are_changed_while_the_connector_is_stopped(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c")
        await status_of(instance, "c", State.RUNNING)
        change = [StoredOffset({"filename": "f"}, {"position": 7})]
        code, message = await failure(herder.alter_offsets("c", change))
        assert code == 400
        assert message == (
            "Connectors must be in the STOPPED state before their offsets can be modified. This "
            "can be done for the specified connector by issuing a 'PUT' request to the "
            "'/connectors/c/stop' endpoint"
        )
        await herder.set_target_state("c", TargetState.STOPPED)
        assert (
            await herder.alter_offsets("c", change)
            == "The offsets for this connector have been altered successfully"
        )
        assert await herder.offsets("c") == change
        assert (
            await herder.alter_offsets("c", None)
            == "The offsets for this connector have been reset successfully"
        )
        assert await herder.offsets("c") == []
        await herder.patch_config("c", {"external": "true"})
        assert "they will need to be manually altered" in await herder.alter_offsets("c", change)

    with_instance(kafka_broker, scenario)


def test_topics_are_tracked_and_reset(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        herder = instance.herder
        await group.create("c")
        await group.wait_until_all_run(["c"])
        for _ in range(2):
            for topic in ("t1", "t2"):
                instance.engine.listener.on_topic_used("c", topic)
            await async_wait_until(
                lambda: herder.instance.status_topic.state.topics("c") == {"t1", "t2"}
            )
            assert await herder.active_topics("c") == ["t1", "t2"]
            await herder.reset_active_topics("c")
            assert await herder.active_topics("c") == []

    with_instance(kafka_broker, scenario)


def test_no_topics_are_tracked_if_that_is_disabled(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        await group.create("c")
        await group.wait_until_all_run(["c"])
        instance.engine.listener.on_topic_used("c", "t")
        await instance.herder.instance.flush_statuses()
        assert await instance.herder.active_topics("c") == []

    with_instance(kafka_broker, scenario, **{"topic.tracking.enable": "false"})


def test_a_sink_cannot_use_the_group_of_the_workers(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        name = instance.herder.worker_config.group_id.removeprefix("connect-")
        config = {"name": name, "connector.class": SOURCE, "topics": "t"}
        code, message = await failure(instance.herder.put_config(name, config, may_exist=False))
        assert code == 400
        assert "conflicts with Connect worker group" in message

    with_instance(kafka_broker, scenario, **{"group.id": "connect-own"})


def test_the_instance_is_starting_until_the_engine_has_started(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        later = Instance(1, group.properties, group.runs)
        later.engine.may_start.clear()
        group.instances.append(later)
        assert later.herder.health[0] == "starting"
        await later.herder.start()
        await async_wait_until(lambda: later.is_member)
        assert later.herder.health[0] == "starting"
        await group.create("a", "b")
        await async_wait_until(lambda: instance.running)
        assert not later.running
        later.engine.may_start.set()
        await async_wait_until(lambda: later.herder.health[0] == "healthy")
        await group.wait_until_all_run(["a", "b"])

    with_instance(kafka_broker, scenario)


def test_an_engine_that_cannot_start_is_unhealthy_and_tried_again(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.connect.herder.instance._FIRST_ENGINE_PAUSE_S", 0.3)

    async def scenario(group: Group, instance: Instance) -> None:
        later = Instance(1, group.properties, group.runs)
        later.engine.start_errors.append(OSError("there is no Java"))
        group.instances.append(later)
        await later.herder.start()
        await async_wait_until(lambda: later.herder.health[0] == "unhealthy")
        assert "there is no Java" in later.herder.health[1]
        await async_wait_until(lambda: later.herder.health[0] == "healthy")

    with_instance(kafka_broker, scenario)


def test_everything_is_as_before_after_a_restart(kafka_broker: Broker) -> None:
    async def scenario(group: Group, instance: Instance) -> None:
        await group.create("a", "b")
        await group.wait_until_all_run(["a", "b"])
        await instance.herder.set_target_state("b", TargetState.PAUSED)
        await status_of(instance, "b", State.PAUSED)
        group.forget(instance)
        await instance.herder.stop()
        assert not group.runs.owners
        other = await group.start()
        await group.wait_until_all_run(["a", "b"])
        status = await status_of(other, "a", State.RUNNING)
        assert status.connector.worker_id == other.worker_id
        await status_of(other, "b", State.PAUSED)

    with_instance(kafka_broker, scenario)
