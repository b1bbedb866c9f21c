"""An instance of the engine in the process of a test, with items that run in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Self
from uuid import uuid4

from tests.connect.execution.memory import MODULE, WORLDS, World
from tests.wait import async_wait_until

from barnabas import Consumer, Producer
from barnabas.client.values import TopicPartition
from barnabas.connect.execution.engine import SparkConnectorEngine
from barnabas.connect.execution.log_ends import LogEnds
from barnabas.connect.model import State, TargetState
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.worker_config import WorkerConfig
from barnabas.spark.runtime.inline_query import InlineWorkQuery
from barnabas.testing import Broker

TIMEOUT_S = 60.0
SOON_S = 30.0


class RecordingListener:
    """Implements `StatusListener`."""

    def __init__(self) -> None:
        self.connectors: dict[str, list[tuple[State, str | None]]] = {}
        self.tasks: dict[tuple[str, int], list[tuple[State, str | None]]] = {}
        self.task_configs: dict[str, list[Mapping[str, str]]] = {}
        self.topics: set[tuple[str, str]] = set()

    def on_connector_status(self, name: str, state: State, trace: str | None = None) -> None:
        self.connectors.setdefault(name, []).append((state, trace))

    def on_task_status(self, name: str, task: int, state: State, trace: str | None = None) -> None:
        self.tasks.setdefault((name, task), []).append((state, trace))

    def on_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        self.task_configs[name] = list(configs)

    def on_topic_used(self, name: str, topic: str) -> None:
        self.topics.add((name, topic))

    def state(self, name: str) -> State | None:
        return self.connectors.get(name, [(None, None)])[-1][0]

    def task(self, name: str, task: int = 0) -> State | None:
        return self.tasks.get((name, task), [(None, None)])[-1][0]

    def task_states(self, name: str, task: int = 0) -> list[State]:
        return [state for state, _ in self.tasks.get((name, task), [])]

    def trace(self, name: str, task: int = 0) -> str:
        traces = [trace for _, trace in self.tasks.get((name, task), []) if trace]
        return traces[-1] if traces else ""


class Instance:
    """One worker. Instances of one `cluster` share the topics of the group."""

    def __init__(
        self,
        broker: Broker,
        *,
        cluster: str | None = None,
        exactly_once: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.servers = broker.bootstrap_servers
        self.cluster = cluster or f"cluster-{uuid4().hex[:8]}"
        self.listener = RecordingListener()
        self.worker = WorkerConfig.parse(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.cluster,
                "offset.storage.topic": f"{self.cluster}-offsets",
                "exactly.once.source.support": "enabled" if exactly_once else "disabled",
                "key.converter": f"{MODULE}:TextConverter",
                "value.converter": f"{MODULE}:TextConverter",
                "barnabas.restart.initial.ms": "20",
                "barnabas.restart.max.ms": "100",
                **(settings or {}),
            }
        )

    async def __aenter__(self) -> Self:
        self.positions = OffsetTopic(
            self.worker.offset_topic, self.worker.worker_client, partitions=3, replication_factor=1
        )
        await self.positions.start()
        self.engine = SparkConnectorEngine(
            self.worker,
            self.positions,
            self.listener,
            _no_session,
            create_query=_inline_query,
            log_ends=LogEnds(0.02),
        )
        await self.engine.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.stop()
        await self.positions.stop()

    async def run(
        self, name: str, config: Mapping[str, str], target: TargetState = TargetState.STARTED
    ) -> None:
        await self.engine.run_connector(name, {"name": name, **config}, target)

    async def until(self, condition: Callable[[], object], message: str = "") -> None:
        await async_wait_until(condition, message, SOON_S, poll_s=0.01)

    async def until_task(self, name: str, state: State, task: int = 0) -> None:
        await self.until(
            lambda: self.listener.task(name, task) is state,
            f"{name}-{task} {state}, but {self.listener.tasks} {self.listener.connectors}",
        )


def _inline_query(name: str, planner: Any, on_batch: Any) -> InlineWorkQuery:
    return InlineWorkQuery(name, planner, on_batch, idle_wait_s=0.1)


def _no_session() -> Any:
    raise AssertionError("items run in a thread")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await scenario

    asyncio.run(limited())


def new_world(**tables: list[str]) -> tuple[str, World]:
    """Returns the name and the state of a world with tables of unique names."""
    name = uuid4().hex[:8]
    WORLDS[name] = World(rows={f"{table}-{name}": rows for table, rows in tables.items()})
    return name, WORLDS[name]


def produce(servers: str, topic: str, *values: str, **keywords: Any) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value=value, partition=0, **keywords)
    assert producer.flush(60) == 0


def consume(servers: str, topic: str, partition: int = 0) -> list[Any]:
    """Returns all committed messages of a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = []
    try:
        while True:
            message = consumer.poll(SOON_S)
            assert message is not None, f"the end of {topic} is not reached"
            if message.error() is not None:
                return messages
            messages.append(message)
    finally:
        consumer.close()


async def values_of(servers: str, topic: str) -> list[str]:
    messages = await asyncio.to_thread(consume, servers, topic)
    return [message.value().decode() for message in messages]


def source_config(world: str, **settings: str) -> dict[str, str]:
    return {"connector.class": f"{MODULE}:MemorySource", "world": world, **settings}


def sink_config(world: str, topics: str, kind: str = "MemorySink", **more: str) -> dict[str, str]:
    return {"connector.class": f"{MODULE}:{kind}", "world": world, "topics": topics, **more}
