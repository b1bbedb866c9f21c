"""Errors at random steps, pauses, restarts and takeovers: each row is there once in the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
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

from barnabas.client.producer import Producer
from barnabas.connect.execution.committer import SinkCommitter, SourceCommitter
from barnabas.connect.model import TargetState
from barnabas.spark.sink.producer_pool import TransactionalProducerSlot
from barnabas.spark.sink.transaction_log import BrokerTransactionLog
from barnabas.testing import Broker

SEEDS = range(4)
ROUNDS = 12
ROWS_PER_ROUND = 3


class RandomErrors:
    """Lets calls fail before or after their work, until `end`."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self._is_active = True
        self._monkeypatch = monkeypatch

    def inject(self, owner: type, *names: str) -> None:
        for name in names:
            self._monkeypatch.setattr(owner, name, self._wrap(getattr(owner, name), name))

    def end(self) -> None:
        self._is_active = False

    def _wrap(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            chance = self.random.random() if self._is_active else 1
            if chance < 0.06:
                self.count += 1
                raise OSError(f"before {name}")
            result = function(*arguments, **keywords)
            if chance < 0.12:
                self.count += 1
                raise OSError(f"after {name}")
            return result

        return call


async def disturb(
    errors: RandomErrors, instances: list[Instance], config: dict[str, str]
) -> Instance:
    """Pauses, restarts or moves the connector. Returns the instance that runs it."""
    instance = instances[0]
    match errors.random.randrange(4):
        case 0:
            await instance.run("c", config, TargetState.PAUSED)
            await instance.run("c", config)
        case 1:
            await instance.engine.restart("c", connector=True, tasks=[0, 1])
        case 2:
            instances.reverse()
            await instances[0].run("c", config)  # before the other has ended it
            await instance.engine.release_connector("c")
    return instances[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_row_of_a_source_is_written_once(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world, state = new_world(a=[], b=[])
    config = source_config(world, **{"tasks.max": "2", "barnabas.max.rows.per.task": "4"})
    errors = RandomErrors(seed, monkeypatch)
    monkeypatch.setattr("barnabas.connect.execution.source_work.ORPHANS_DELAY_S", 0.2)
    monkeypatch.setattr("barnabas.connect.execution.connector_run.RECOVERY_TIMEOUT_S", 1.0)

    async def scenario() -> None:
        async with (
            Instance(kafka_broker, exactly_once=True) as first,
            Instance(kafka_broker, exactly_once=True, cluster=first.cluster) as second,
        ):
            instances = [first, second]
            errors.inject(TransactionalProducerSlot, "begin", "prepare")
            errors.inject(BrokerTransactionLog, "fence_other_drivers", "find_ended", "decide")
            errors.inject(BrokerTransactionLog, "complete", "open_transactions")
            errors.inject(SourceCommitter, "recover", "commit")
            await first.run("c", config)
            for round_ in range(ROUNDS):
                for rows in state.rows.values():
                    rows += [f"{round_}-{number}" for number in range(ROWS_PER_ROUND)]
                await asyncio.sleep(errors.random.random() * 0.1)
                current = await disturb(errors, instances, config)
            errors.end()

            def is_complete() -> bool:
                return all(
                    current.positions.offset("c", {"table": topic}) == {"row": len(rows)}
                    for topic, rows in state.rows.items()
                )

            await current.until(is_complete, f"{current.listener.connectors}")
            for topic, rows in state.rows.items():
                assert await values_of(current.servers, topic) == rows

    run(scenario())
    assert errors.count > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_written_once_by_a_sink_that_keeps_positions(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world, state = new_world()
    config = sink_config(world, kafka_topic, "ExactMemorySink")
    errors = RandomErrors(seed, monkeypatch)
    expected: list[str] = []

    async def scenario() -> None:
        async with (
            Instance(kafka_broker) as first,
            Instance(kafka_broker, cluster=first.cluster) as second,
        ):
            instances = [first, second]
            errors.inject(SinkCommitter, "fence", "committed", "commit")
            errors.inject(Producer, "send_offsets_to_transaction", "commit_transaction")
            for call in ("open", "write", "close", "commit", "committed"):
                state.hooks[call] = errors._wrap(lambda: None, call)
            await first.run("c", config)
            for round_ in range(ROUNDS):
                rows = [f"{round_}-{number}" for number in range(ROWS_PER_ROUND)]
                expected.extend(rows)
                await asyncio.to_thread(produce, first.servers, kafka_topic, *rows)
                await asyncio.sleep(errors.random.random() * 0.1)
                current = await disturb(errors, instances, config)
            errors.end()
            end = {(kafka_topic, 0): len(expected)}
            await current.until(lambda: state.positions == end, f"{current.listener.tasks}")

    run(scenario())
    assert errors.count > 0
    assert state.values() == expected
