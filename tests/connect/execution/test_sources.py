"""Sources: each row is committed once, after any error and with other drivers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.connect.execution.instance import (
    Instance,
    consume,
    new_world,
    run,
    source_config,
    values_of,
)

from barnabas import KafkaException, Producer
from barnabas.admin import AdminClient
from barnabas.connect.execution.committer import SourceCommitter
from barnabas.connect.model import State, TargetState
from barnabas.spark.sink.producer_pool import TransactionalProducerSlot
from barnabas.spark.sink.transaction_log import BrokerTransactionLog
from barnabas.testing import Broker

ROWS = [str(number) for number in range(40)]


def topics(state: Any) -> list[str]:
    return list(state.rows)


async def until_read(instance: Instance, name: str, position: int, partitions: int = 1) -> None:
    """Waits until the committed positions of all partitions are there."""

    def is_committed() -> bool:
        positions = [each for _, each in instance.positions.offsets(name)]
        return len(positions) == partitions and all(each == {"row": position} for each in positions)

    await instance.until(is_committed, f"{name} at {position}: {instance.listener.tasks}")


def test_a_source_whose_rows_and_positions_are_in_two_clusters_fails(kafka_broker: Broker) -> None:
    world, state = new_world(t=ROWS)
    elsewhere = {"producer.override.bootstrap.servers": "localhost:1"}

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("s", {**source_config(world), **elsewhere})
            await instance.until(lambda: instance.listener.state("s") is State.FAILED)
            assert "several clusters" in (instance.listener.connectors["s"][1][1] or "")

    run(scenario())
    assert state.calls["read"] == 0


@pytest.mark.parametrize("exactly_once", [False, True])
def test_rows_are_written_in_order_and_positions_are_those_of_connect(
    kafka_broker: Broker, exactly_once: bool
) -> None:
    world, state = new_world(a=list(ROWS))
    (topic,) = topics(state)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=exactly_once) as instance:
            await instance.run("src", source_config(world))
            await until_read(instance, "src", 40)
            state.rows[topic] += ["x", "y"]
            await until_read(instance, "src", 42)
            await instance.until_task("src", State.RUNNING)
            assert await values_of(instance.servers, topic) == [*ROWS, "x", "y"]
            assert instance.listener.topics == {("src", topic)}
            (stored,) = await instance.engine.offsets("src", source_config(world))
            assert (stored.partition, stored.offset) == ({"table": topic}, {"row": 42})
            records = [
                message
                for index in range(3)
                for message in consume(instance.servers, instance.positions.topic, index)
            ]
            assert {message.key() for message in records} == {
                json.dumps(["src", {"table": topic}], separators=(",", ":")).encode()
            }
            assert records[-1].value() == b'{"row":42}'

    run(scenario())
    assert state.calls["commit"] >= 2


def test_partitions_are_divided_among_tasks(kafka_broker: Broker) -> None:
    world, state = new_world(a=["1"], b=["2"], c=["3"])

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world, **{"tasks.max": "2"}))
            await until_read(instance, "src", 1, partitions=3)
            assert len(instance.listener.task_configs["src"]) == 2
            for topic, (value,) in state.rows.items():
                assert await values_of(instance.servers, topic) == [value]

    run(scenario())


def once(before: bool, error: Exception) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a wrapper whose first call raises, before or after it has done its work."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        left = [error]

        def call(*arguments: Any, **keywords: Any) -> Any:
            if not left:
                return function(*arguments, **keywords)
            raised = left.pop()
            if not before:
                function(*arguments, **keywords)
            raise raised

        return call

    return wrap


STEPS: list[tuple[type, str, bool]] = [
    (TransactionalProducerSlot, "begin", True),
    (TransactionalProducerSlot, "prepare", True),
    (TransactionalProducerSlot, "prepare", False),
    (BrokerTransactionLog, "find_ended", True),
    (BrokerTransactionLog, "decide", True),
    (BrokerTransactionLog, "decide", False),
    (BrokerTransactionLog, "complete", True),
    (BrokerTransactionLog, "complete", False),
]


@pytest.mark.parametrize(("owner", "step", "before"), STEPS)
def test_rows_are_there_once_after_an_error_at_a_step(
    kafka_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    step: str,
    before: bool,
) -> None:
    world, state = new_world(a=list(ROWS[:10]), b=list(ROWS[10:20]))
    monkeypatch.setattr(owner, step, once(before, OSError("gone"))(getattr(owner, step)))

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world, **{"tasks.max": "2"}))
            await until_read(instance, "src", 10, partitions=2)
            for topic, rows in state.rows.items():
                assert await values_of(instance.servers, topic) == rows

    run(scenario())


@pytest.mark.parametrize("step", ["decide", "complete"])
@pytest.mark.parametrize("before", [True, False])
def test_the_next_driver_completes_what_a_dead_one_has_decided(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    world, state = new_world(a=list(ROWS))
    (topic,) = topics(state)
    original = getattr(BrokerTransactionLog, step)
    recover = SourceCommitter.recover

    def die(committer: SourceCommitter) -> None:
        if dead:
            raise OSError("dead")
        recover(committer)

    def step_and_die(*arguments: Any, **keywords: Any) -> Any:
        if not before:
            original(*arguments, **keywords)
        dead.append(True)
        raise OSError("dead")

    dead: list[bool] = []

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as first:
            monkeypatch.setattr(BrokerTransactionLog, step, step_and_die)
            monkeypatch.setattr(SourceCommitter, "recover", die)
            await first.run("src", source_config(world))
            await first.until(lambda: first.listener.state("src") is State.FAILED)
            monkeypatch.undo()
            await first.engine.release_connector("src")
            async with Instance(kafka_broker, exactly_once=True, cluster=first.cluster) as second:
                await second.run("src", source_config(world))
                await until_read(second, "src", 40)
                assert await values_of(second.servers, topic) == ROWS

    run(scenario())


def test_rows_whose_transaction_was_lost_after_the_decision_are_read_again(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world(a=list(ROWS))
    (topic,) = topics(state)
    complete = BrokerTransactionLog.complete
    lost: list[object] = []

    def complete_too_late(log: BrokerTransactionLog, prepared: Any, *, committed: bool) -> Any:
        if prepared and committed and not lost:
            lost.extend(prepared)
            log.fence(prepared)  # as if they had timed out
        return complete(log, prepared, committed=committed)

    monkeypatch.setattr(BrokerTransactionLog, "complete", complete_too_late)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world))
            await until_read(instance, "src", 40)
            assert await values_of(instance.servers, topic) == ROWS

    run(scenario())
    assert lost


def test_two_drivers_at_once_write_each_row_once(kafka_broker: Broker) -> None:
    world, state = new_world(a=[])
    (topic,) = topics(state)

    async def scenario() -> None:
        async with (
            Instance(kafka_broker, exactly_once=True) as first,
            Instance(kafka_broker, exactly_once=True, cluster=first.cluster) as second,
        ):
            config = source_config(world, **{"barnabas.max.rows.per.task": "3"})
            await first.run("src", config)
            await second.run("src", config)
            for row in ROWS:
                state.rows[topic].append(row)
                await asyncio.sleep(0.01)
            await first.engine.release_connector("src")
            await until_read(second, "src", 40)
            assert await values_of(second.servers, topic) == ROWS
            failed = [*first.listener.task_states("src"), *second.listener.task_states("src")]
            assert State.FAILED in failed

    run(scenario())


def test_no_transaction_is_left_open_by_a_failed_task(kafka_broker: Broker) -> None:
    world, state = new_world(a=list(ROWS))
    (topic,) = topics(state)
    state.failures["read done"] = [ValueError("the table is gone")]

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world))
            await until_read(instance, "src", 40)
            await instance.until_task("src", State.RUNNING)
            states = instance.listener.task_states("src")
            assert states == [State.RUNNING, State.FAILED, State.RESTARTING, State.RUNNING]
            assert await values_of(instance.servers, topic) == ROWS

    run(scenario())


@pytest.fixture
def admin(kafka_broker: Broker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers}) as client:
        yield client


def test_topics_are_created_by_the_settings_of_their_group(
    kafka_broker: Broker, admin: AdminClient
) -> None:
    world, state = new_world(a=["1"], b=["2"])
    of_b = next(topic for topic in state.rows if topic.startswith("b"))
    creation = {
        "topic.creation.groups": "bs",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.bs.include": "b.*",
        "topic.creation.bs.partitions": "3",
        "topic.creation.bs.cleanup.policy": "compact",
    }

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            await instance.run("src", source_config(world, **creation))
            await until_read(instance, "src", 1, partitions=2)

    run(scenario())
    found = admin.list_topics().topics
    assert {name: len(found[name].partitions) for name in state.rows} == {
        name: 3 if name == of_b else 2 for name in state.rows
    }


@pytest.mark.parametrize("exactly_once", [False, True])
def test_failed_rows_of_a_source_become_dead_letters(
    kafka_broker: Broker, exactly_once: bool
) -> None:
    world, state = new_world(a=["1", "poison", "2"])
    (topic,) = topics(state)
    config = source_config(
        world,
        **{
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{topic}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=exactly_once) as instance:
            await instance.run("src", config)
            await until_read(instance, "src", 3)
            assert await values_of(instance.servers, topic) == ["1", "2"]

    run(scenario())
    (letter, *more) = consume(kafka_broker.bootstrap_servers, f"{topic}-dlq")
    assert letter.value() == b'"poison"'
    assert dict(letter.headers())["__connect.errors.topic"] == topic.encode()
    assert len(more) == 1  # its key failed, too


def test_a_row_that_is_too_large_fails_alone(kafka_broker: Broker) -> None:
    world, state = new_world(a=["1", "x" * 2_000_000, "2"])
    (topic,) = topics(state)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world, **{"errors.tolerance": "all"}))
            await until_read(instance, "src", 3)
            assert await values_of(instance.servers, topic) == ["1", "2"]

    run(scenario())


def test_a_paused_source_has_committed_what_was_in_flight(kafka_broker: Broker) -> None:
    world, state = new_world(a=list(ROWS))
    other_world, other = new_world(b=["1"])
    (topic,), (other_topic,) = topics(state), topics(other)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            loop, resume = asyncio.get_running_loop(), asyncio.Event()
            state.hooks["read done"] = lambda: asyncio.run_coroutine_threadsafe(
                resume.wait(), loop
            ).result()
            await instance.run("src", source_config(world))
            await instance.run("other", source_config(other_world))
            await instance.until(lambda: state.calls["read done"])
            pausing = asyncio.create_task(
                instance.run("src", source_config(world), TargetState.PAUSED)
            )
            await asyncio.sleep(0)
            assert not pausing.done()
            resume.set()
            await pausing
            state.hooks.clear()
            assert await values_of(instance.servers, topic) == ROWS
            assert instance.listener.state("src") is State.PAUSED
            assert instance.listener.task("src") is State.PAUSED
            state.rows[topic].append("later")
            other.rows[other_topic].append("2")
            await until_read(instance, "other", 2)
            assert await values_of(instance.servers, topic) == ROWS
            await instance.run("src", source_config(world))
            await until_read(instance, "src", 41)
            assert await values_of(instance.servers, topic) == [*ROWS, "later"]
            assert instance.listener.task("src") is State.RUNNING

    run(scenario())


def test_a_worker_of_kafka_that_ran_the_source_is_fenced(kafka_broker: Broker) -> None:
    world, state = new_world(a=list(ROWS))
    (topic,) = topics(state)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            worker = Producer(
                {
                    "bootstrap.servers": instance.servers,
                    "transactional.id": f"{instance.cluster}-src-0",
                }
            )
            worker.init_transactions(10)
            worker.begin_transaction()
            worker.produce(topic, value="of a zombie")
            worker.flush()
            await instance.run("src", source_config(world))
            await until_read(instance, "src", 40)
            with pytest.raises(KafkaException, match="FENCED"):
                worker.commit_transaction(10)
            worker.close(0)
            assert await values_of(instance.servers, topic) == ROWS

    run(scenario())


def test_transactions_that_zombies_begin_after_the_takeover_are_aborted(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.connect.execution.source_work.ORPHANS_DELAY_S", 0.3)
    world, state = new_world(a=[])
    (topic,) = topics(state)

    async def scenario() -> None:
        async with Instance(kafka_broker, exactly_once=True) as instance:
            await instance.run("src", source_config(world))
            await instance.until_task("src", State.RUNNING)
            prefix = f"connect-{instance.cluster}-source-src"
            zombie = Producer(
                {
                    "bootstrap.servers": instance.servers,
                    "transactional.id": f"{prefix}-0123456789abcdef-0",
                }
            )
            zombie.init_transactions(10)
            zombie.begin_transaction()
            zombie.produce(topic, value="of a zombie")
            zombie.flush()
            log = BrokerTransactionLog(instance.worker.client("producer"), prefix)
            await instance.until(lambda: not log.open_transactions())
            zombie.close(0)
            state.rows[topic].append("1")
            await until_read(instance, "src", 1)
            assert await values_of(instance.servers, topic) == ["1"]

    run(scenario())
