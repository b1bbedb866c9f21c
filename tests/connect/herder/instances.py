"""Instances of a group in one process, with an engine that only notes what it runs.

All engines share `Runs`, which fails a test in which two of them run a connector at once.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from uuid import uuid4

from tests.wait import async_wait_until

from barnabas.connect.herder.herder import ConnectHerder
from barnabas.connect.model import (
    ConnectorKind,
    State,
    StatusListener,
    StoredOffset,
    TargetState,
)
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.worker_config import WorkerConfig
from barnabas.testing import Broker

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Runs:
    """Which engine runs each connector, and which ones ran it before."""

    def __init__(self) -> None:
        self.owners: dict[str, FakeEngine] = {}
        self.history: dict[str, list[FakeEngine]] = {}
        self.overlaps: list[str] = []

    def start(self, name: str, engine: "FakeEngine") -> None:
        owner = self.owners.get(name)
        if owner is not None and owner is not engine:
            self.overlaps.append(f"{name}: {engine.url} starts, and {owner.url} still runs it")
        if owner is not engine:
            self.history.setdefault(name, []).append(engine)
        self.owners[name] = engine

    def end(self, name: str, engine: "FakeEngine") -> None:
        if self.owners.get(name) is engine:
            del self.owners[name]

    def end_all(self, engine: "FakeEngine") -> None:
        for name in [name for name, owner in self.owners.items() if owner is engine]:
            self.end(name, engine)


class FakeEngine:
    """Has two tasks for each connector that is started."""

    def __init__(
        self, url: str, runs: Runs, positions: OffsetTopic, listener: StatusListener
    ) -> None:
        self.url = url
        self.runs = runs
        self.positions = positions
        self.listener = listener
        self.configs: dict[str, Mapping[str, str]] = {}
        self.calls: list[tuple[object, ...]] = []
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.may_release = asyncio.Event()
        self.may_release.set()
        self.start_errors: list[Exception] = []

    async def start(self) -> None:
        await self.may_start.wait()
        if self.start_errors:
            raise self.start_errors.pop(0)

    async def stop(self) -> None:
        for name in list(self.configs):
            await self.release_connector(name)

    async def run_connector(
        self, name: str, config: Mapping[str, str], target: TargetState
    ) -> None:
        self.calls.append(("run", name, target))
        self.runs.start(name, self)
        self.configs[name] = config
        if config.get("fails") == "at start":
            raise OSError("the disk is on fire")
        tasks = [] if target is TargetState.STOPPED else [{"task": "0"}, {"task": "1"}]
        self.listener.on_task_configs(name, tasks)
        state = State.RUNNING if target is TargetState.STARTED else State(target)
        self.listener.on_connector_status(name, state)
        for task in range(len(tasks)):
            self.listener.on_task_status(name, task, state)

    async def release_connector(self, name: str) -> None:
        await self.may_release.wait()
        self.calls.append(("release", name))
        self.configs.pop(name, None)
        self.runs.end(name, self)

    async def restart(self, name: str, *, connector: bool, tasks: Sequence[int]) -> None:
        self.calls.append(("restart", name, connector, list(tasks)))

    async def offsets(self, name: str, config: Mapping[str, str]) -> list[StoredOffset]:
        await self.positions.read_to_end()
        return [StoredOffset(*each) for each in self.positions.offsets(name)]

    async def alter_offsets(
        self, name: str, config: Mapping[str, str], offsets: Sequence[StoredOffset] | None
    ) -> bool:
        if offsets is None:
            offsets = [
                StoredOffset(each.partition, None) for each in await self.offsets(name, config)
            ]
        await self.positions.write(name, [(each.partition, each.offset) for each in offsets])
        return config.get("external") != "true"


class Instance:
    """One member of a group."""

    def __init__(self, number: int, properties: Mapping[str, str], runs: Runs) -> None:
        self.url = f"http://127.0.0.1:{10_000 + number}"
        self.worker_id = self.url.removeprefix("http://")
        self.engines: list[FakeEngine] = []

        def create_engine(positions: OffsetTopic, listener: StatusListener) -> FakeEngine:
            self.engines.append(FakeEngine(self.url, runs, positions, listener))
            return self.engines[-1]

        self.herder = ConnectHerder(
            WorkerConfig.parse(properties), self.url, create_engine, check_config=check_config
        )
        self.engine = self.engines[0]
        self.runs = runs

    @property
    def running(self) -> set[str]:
        return {name for name, owner in self.runs.owners.items() if owner is self.engine}

    @property
    def is_member(self) -> bool:
        return self.herder.instance.group.current is not None

    @property
    def is_leader(self) -> bool:
        current = self.herder.instance.group.current
        return current is not None and current.is_leader

    async def kill(self) -> None:
        """Ends it as a crash would: it neither releases its connectors nor leaves the group."""
        instance = self.herder.instance
        for task in instance._tasks:
            task.cancel()
        await asyncio.gather(*instance._tasks, return_exceptions=True)
        self.runs.end_all(self.engine)  # they die with the process


def check_config(config: Mapping[str, str | None], worker: Mapping[str, str]) -> ConnectorKind:
    return ConnectorKind.SINK if "topics" in config else ConnectorKind.SOURCE


class Group:
    """The instances of a test."""

    def __init__(self, broker: Broker, **properties: str) -> None:
        group_id = f"g{uuid4().hex}"
        self.properties = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "config.storage.topic": f"{group_id}-configs",
            "offset.storage.topic": f"{group_id}-offsets",
            "offset.storage.partitions": "2",
            "status.storage.topic": f"{group_id}-status",
            "status.storage.partitions": "2",
            "session.timeout.ms": "2000",
            "heartbeat.interval.ms": "20",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.runs = Runs()
        self.instances: list[Instance] = []

    async def start(self, number: int | None = None, **properties: str) -> Instance:
        """Starts an instance; with the number of another, at that one's address."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        number = len(self.instances) if number is None else number
        instance = Instance(number, {**self.properties, **named}, self.runs)
        self.instances.append(instance)
        await instance.herder.start()
        await async_wait_until(lambda: instance.is_member, "it is a member")
        return instance

    def forget(self, instance: Instance) -> None:
        self.instances.remove(instance)

    @property
    def leader(self) -> Instance:
        return next(each for each in self.instances if each.is_leader)

    async def wait_for(self, condition: Callable[[], object], message: str = "") -> None:
        await async_wait_until(condition, message)
        assert self.runs.overlaps == []

    async def wait_until_all_run(self, names: Sequence[str]) -> None:
        expected = set(names)
        await self.wait_for(lambda: self.runs.owners.keys() == expected, f"{expected} run")

    async def create(self, *names: str, **config: str) -> None:
        for name in names:
            await self.leader.herder.put_config(
                name, {"name": name, "connector.class": SOURCE, **config}, may_exist=False
            )


@contextlib.asynccontextmanager
async def group_of(broker: Broker, size: int, **properties: str) -> AsyncIterator[Group]:
    group = Group(broker, **properties)
    try:
        for _ in range(size):
            await group.start()
        await async_wait_until(
            lambda: {len(_group_urls(each)) for each in group.instances} == {size},
            "they are one group",
        )
        yield group
        assert group.runs.overlaps == []
    finally:
        for each in group.instances:
            each.engine.may_release.set()
        await asyncio.gather(*(each.herder.stop() for each in group.instances))
        assert group.runs.overlaps == []


def _group_urls(instance: Instance) -> set[str]:
    current = instance.herder.instance.group.current
    return set() if current is None else set(current.group.urls.values())


def run(scenario: Awaitable[None]) -> None:
    async def main() -> None:
        await scenario

    asyncio.run(main())
