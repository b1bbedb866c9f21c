"""Sinks: what is written, how often, and what is committed."""

from __future__ import annotations

import asyncio

import pytest
from tests.connect.execution.instance import (
    Instance,
    consume,
    new_world,
    produce,
    run,
    sink_config,
)
from tests.connect.execution.memory import MODULE

from barnabas.connect.errors import RetriableError
from barnabas.connect.execution.committer import SinkCommitter
from barnabas.connect.model import State
from barnabas.testing import Broker

SINKS = ["MemorySink", "ExactMemorySink"]


@pytest.mark.parametrize("kind", SINKS)
def test_records_are_written_in_order_and_their_offsets_are_committed(
    kafka_broker: Broker, kafka_topic: str, kind: str
) -> None:
    world, state = new_world()
    expected = [str(number) for number in range(50)]

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, *expected[:20])
            config = sink_config(world, kafka_topic, kind)
            await instance.run("s", config)
            await instance.until(lambda: len(state.written) == 20)
            await instance.until_task("s", State.RUNNING)
            produce(instance.servers, kafka_topic, *expected[20:])
            await instance.until(lambda: len(state.written) == 50)
            await instance.engine.release_connector("s")
            (stored,) = await instance.engine.offsets("s", config)
            assert stored.partition == {"kafka_topic": kafka_topic, "kafka_partition": 0}
            assert stored.offset == {"kafka_offset": 50}
            assert instance.listener.topics == {("s", kafka_topic)}

    run(scenario())
    assert state.values() == expected
    assert state.calls["stop"] == 1


def test_another_instance_continues_from_the_committed_offsets(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as first:
            produce(first.servers, kafka_topic, "a", "b")
            await first.run("s", sink_config(world, kafka_topic))
            await first.until(lambda: len(state.written) == 2)
        async with Instance(kafka_broker, cluster=first.cluster) as second:
            produce(second.servers, kafka_topic, "c")
            await second.run("s", sink_config(world, kafka_topic))
            await second.until(lambda: len(state.written) >= 3)

    run(scenario())
    assert state.values() == ["a", "b", "c"]


def test_positions_with_the_data_matter_more_than_the_offsets_of_the_group(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    """The sink commits, and its process dies before the offsets of the group are committed."""
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a", "b")
            state.failures["committed"] = [OSError("gone after the data was committed")]
            await instance.run("s", sink_config(world, kafka_topic, "ExactMemorySink"))
            await instance.until_task("s", State.FAILED)
            await instance.until_task("s", State.RUNNING)
            produce(instance.servers, kafka_topic, "c")
            await instance.until(lambda: len(state.written) == 3)

    run(scenario())
    assert state.values() == ["a", "b", "c"]


@pytest.mark.parametrize("call", ["open", "write", "close", "commit"])
def test_a_sink_that_fails_anywhere_writes_the_records_again(
    kafka_broker: Broker, kafka_topic: str, call: str
) -> None:
    world, state = new_world()
    state.failures[call] = [ValueError("the disk is full")]

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a", "b")
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: len(state.written) == 2)
            await instance.until_task("s", State.RUNNING)
            states = instance.listener.task_states("s")
            assert states == [State.RUNNING, State.FAILED, State.RESTARTING, State.RUNNING]
            assert "the disk is full" in instance.listener.trace("s")

    run(scenario())
    assert state.values() == ["a", "b"]


def test_retriable_errors_are_retried_in_the_task(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()
    state.failures["write"] = [RetriableError("the target is down")] * 2
    config = {"errors.retry.timeout": "30000", "errors.retry.delay.max.ms": "1"}

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", sink_config(world, kafka_topic, **config))
            await instance.until(lambda: len(state.written) == 1)

    run(scenario())
    assert (state.calls["open"], state.calls["abort"]) == (3, 2)


def test_a_target_that_is_down_leaves_the_task_running(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    state.failures["write"] = [RetriableError("the target is down")] * 3

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", sink_config(world, kafka_topic))
            await instance.until(lambda: len(state.written) == 1)
            assert instance.listener.task_states("s") == [State.RUNNING]

    run(scenario())
    assert state.calls["abort"] == 3


def test_a_fenced_instance_commits_nothing(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as first:
            fenced = asyncio.Event()
            loop = asyncio.get_running_loop()
            state.hooks["close"] = lambda: asyncio.run_coroutine_threadsafe(
                fenced.wait(), loop
            ).result()
            produce(first.servers, kafka_topic, "a")
            await first.run("s", sink_config(world, kafka_topic))
            await first.until(lambda: state.calls["close"])
            other = SinkCommitter(
                None,  # type: ignore[arg-type]
                "connect-s",
                f"connect-{first.cluster}-sink-s",
                first.worker.client("producer"),
                first.worker.client("admin"),
            )
            await asyncio.to_thread(other.fence)
            del state.hooks["close"]
            fenced.set()
            await first.until_task("s", State.FAILED)
            assert state.calls["commit"] == 0
            assert "FENCED" in first.listener.trace("s")
            await asyncio.to_thread(other.close)

    run(scenario())


def test_a_sink_decides_how_far_the_next_write_goes(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "1", "2")
            await instance.run("s", sink_config(world, kafka_topic, "PatientSink"))
            await instance.until_task("s", State.RUNNING)
            produce(instance.servers, kafka_topic, "3", "4")
            await instance.until(lambda: len(state.written) == 3)
            produce(instance.servers, kafka_topic, "5", "6", "7")
            await instance.until(lambda: len(state.written) == 6)

    run(scenario())
    assert state.calls["open"] == 2


def test_new_topics_that_match_are_read_by_tasks(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            config = sink_config(world, "", **{"topics.regex": f"{kafka_topic}-.*"})
            kafka_broker.create_topic(f"{kafka_topic}-1", 2)
            produce(instance.servers, f"{kafka_topic}-1", "a")
            await instance.run("s", {**config, "tasks.max": "2"})
            await instance.until(lambda: state.values() == ["a"])
            assert len(instance.listener.task_configs["s"]) == 2
            assert instance.listener.task("s", 1) is State.RUNNING

    run(scenario())


def test_a_pattern_that_is_invalid_fails_its_connector_only(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            config = sink_config(world, "")
            await instance.run("wrong", {**config, "topics.regex": "("})
            await instance.until(lambda: instance.listener.state("wrong") is State.FAILED)
            java = kafka_topic.replace("-", "\\p{Punct}")
            await instance.run("right", {**config, "topics.regex": java})
            await instance.until(lambda: state.values() == ["a"])

    run(scenario())


def test_records_that_the_target_has_are_not_passed_to_the_writer(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    """Also if a transform gives them another topic."""
    world, state = new_world()
    state.first_offsets[kafka_topic, 0] = 2
    config = {
        "transforms": "route",
        "transforms.route.type": f"{MODULE}:Route",
        "transforms.route.topic": "other",
    }

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a", "b", "c")
            await instance.run("s", sink_config(world, kafka_topic, **config))
            await instance.until(lambda: state.calls["commit"])

    run(scenario())
    assert state.written == [("other", 0, 2, "c")]


def test_positions_of_a_topic_that_was_created_again_are_reset(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, state = new_world()
    monkeypatch.setattr("barnabas.connect.execution.sink_work.TRUNCATION_GRACE_S", 0)
    state.positions[kafka_topic, 0] = 1000
    seen: list[int] = []
    state.hooks["open"] = lambda: seen.append(state.positions[kafka_topic, 0])

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            await instance.run("s", sink_config(world, kafka_topic, "ExactMemorySink"))
            await instance.until(lambda: state.values() == ["a"])

    run(scenario())
    assert seen[0] == 0


def test_a_sink_may_begin_at_the_latest_offset(kafka_broker: Broker, kafka_topic: str) -> None:
    world, state = new_world()
    latest = {"consumer.override.auto.offset.reset": "latest"}

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "old")
            await instance.run("s", sink_config(world, kafka_topic, **latest))
            await instance.until_task("s", State.RUNNING)
            run_ = instance.engine._runs["s"]
            await instance.until(lambda: run_._work._planner.positions)  # type: ignore
            produce(instance.servers, kafka_topic, "new")
            await instance.until(lambda: state.written)

    run(scenario())
    assert state.values() == ["new"]


# Records that fail


def dead_letter_config(topic: str) -> dict[str, str]:
    return {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": topic,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def test_poison_records_become_dead_letters_with_connects_headers(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    dead_letters = f"{kafka_topic}-dlq"

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a")
            produce(
                instance.servers, kafka_topic, "poison", key="k", headers={"h": b"1"}, timestamp=77
            )
            produce(instance.servers, kafka_topic, "refused", "b")
            config = sink_config(world, kafka_topic, **dead_letter_config(dead_letters))
            await instance.run("s", config)
            await instance.until(lambda: len(state.written) == 2)
            assert set(instance.listener.task_states("s")) == {State.RUNNING}

    run(scenario())
    assert state.values() == ["a", "b"]
    poison, refused = consume(kafka_broker.bootstrap_servers, dead_letters)
    assert (poison.key(), poison.value(), poison.timestamp()[1]) == (b"k", b"poison", 77)
    prefix = "__connect.errors."
    headers = poison.headers()
    assert headers[:-1] == [
        ("h", b"1"),
        (f"{prefix}topic", kafka_topic.encode()),
        (f"{prefix}partition", b"0"),
        (f"{prefix}offset", b"1"),
        (f"{prefix}connector.name", b"s"),
        (f"{prefix}task.id", b"0"),
        (f"{prefix}stage", b"VALUE_CONVERTER"),
        (f"{prefix}class.name", b"tests.connect.execution.memory:TextConverter"),
        (f"{prefix}exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        (f"{prefix}exception.message", b"Poison is not text."),
    ]
    name, trace = headers[-1]
    assert name == f"{prefix}exception.stacktrace"
    assert b"Poison is not text." in trace
    described = dict(refused.headers())
    assert described[f"{prefix}stage"] == b"TASK_PUT"
    assert described[f"{prefix}class.name"] == b"org.apache.kafka.connect.sink.SinkTask"
    assert refused.value() == b"refused"


def test_records_that_are_reported_late_are_found_under_their_first_topic(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    other = f"{kafka_topic}-other"
    route = {
        "transforms": "route",
        "transforms.route.type": f"{MODULE}:Route",
        "transforms.route.topic": "somewhere else",
    }

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, other, "a", "{}", "refused", "{}", key="k")
            produce(instance.servers, kafka_topic, "b")
            errors = dead_letter_config(f"{kafka_topic}-dlq")
            config = sink_config(world, f"{kafka_topic},{other}", "LateSink", **route, **errors)
            await instance.run("s", config)
            await instance.until(lambda: len(state.written) == 4)

    run(scenario())
    assert {topic for topic, *_ in state.written} == {"somewhere else"}
    (letter,) = consume(kafka_broker.bootstrap_servers, f"{kafka_topic}-dlq")
    assert (letter.key(), letter.value()) == (b"k", b"refused")
    headers = dict(letter.headers())
    assert headers["__connect.errors.topic"] == other.encode()
    assert headers["__connect.errors.offset"] == b"2"


def test_without_tolerance_a_poison_record_fails_the_task_and_nothing_else(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    world, state = new_world()
    other_world, other = new_world()

    async def scenario() -> None:
        async with Instance(kafka_broker) as instance:
            produce(instance.servers, kafka_topic, "a", "poison")
            produce(instance.servers, f"{kafka_topic}-other", "1")
            never = {"barnabas.restart.initial.ms": "0"}
            await instance.run("s", sink_config(world, kafka_topic, **never))
            await instance.run("other", sink_config(other_world, f"{kafka_topic}-other"))
            await instance.until_task("s", State.FAILED)
            assert "Tolerance exceeded in error handler" in instance.listener.trace("s")
            assert "Poison is not text." in instance.listener.trace("s")
            produce(instance.servers, f"{kafka_topic}-other", "2")
            await instance.until(lambda: other.values() == ["1", "2"])
            assert instance.listener.state("s") is State.RUNNING
            assert instance.listener.task_states("s") == [State.RUNNING, State.FAILED]

    run(scenario())
    assert state.written == []
