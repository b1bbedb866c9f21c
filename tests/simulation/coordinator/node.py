"""The broker under test: everything of it is real but time, the network and the controller.

It can be killed between any two steps of its loop and right after any append. What it had in
memory is gone then; its logs stay, or are cut back to what was committed, as if a follower had
taken over.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.simulation.world.clock import SimulatedLoop
from tests.simulation.coordinator.events import Events, ShardLoaded, ShardLost, TopicPartition
from tests.simulation.coordinator.metadata import NODE_ID, OTHER_ID, Metadata

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.log import Log, LogDirectory
from barnabas.metadata.delta import MetadataDelta
from barnabas.node.coordinators import add_coordinators
from barnabas.replication import Partition, Partitions
from barnabas.server.api import HANDLERS
from barnabas.server.nodes import BrokerNode
from barnabas.server.errors import error_of
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.network.suspended_handler import SuspendedHandler
from barnabas.server.purgatory import Purgatory
from barnabas.server.request_context import RequestContext
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey
from barnabas.wire.error_response import error_response
from barnabas.wire.schema import Message

Answer = Callable[[Message | None], None]


class Killed(BaseException):
    """The process ends here. No code of its own gets to see it."""


class Node:
    """One broker, over and over again."""

    def __init__(
        self, folder: Path, metadata: Metadata, loop: SimulatedLoop, events: Events, **settings: Any
    ) -> None:
        self.metadata = metadata
        self.events = events
        self.is_up = False
        self.incarnation = 0
        self.committed: dict[TopicPartition, int] = {}
        """How far each log is known to be on all replicas; kept by who raises it."""
        self.ends: dict[TopicPartition, list[int]] = {}
        """Where batches end in each log."""
        self.dies_after_appends: int | None = None
        self.died: Callable[[], None] = lambda: None
        """Told when an append was the last."""
        self._path = folder
        self._loop = loop
        LogDirectory.format(folder, "cluster", NODE_ID, bytes([7] * 16))
        self._settings = BrokerSettings.from_properties(
            {
                "node.id": str(NODE_ID),
                "process.roles": "broker,controller",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "controller.quorum.voters": "1@localhost:9093",
                "log.dirs": str(folder),
                **{name.replace("_", "."): str(value) for name, value in settings.items()},
            }
        )

    # Life and death

    def start(self) -> None:
        self.incarnation += 1
        metadata, loop = self.metadata, self._loop
        resolver = ConfigResolver(self._settings, metadata.image.configs)
        timer = Timer(loop)
        purgatory = Purgatory(timer)
        self.partitions = Partitions(
            NODE_ID,
            [LogDirectory.open(self._path)],
            resolver,
            metadata.image,
            purgatory=purgatory,
            background=_Foreground(),
            send_to_controller=lambda _: loop.create_future(),
            clock=lambda: loop.now_ms,
        )
        self.broker = BrokerNode(
            node_id=NODE_ID,
            cluster_id="cluster",
            settings=self._settings,
            resolver=resolver,
            image=metadata.image,
            partitions=self.partitions,
            controller=metadata,  # type: ignore[arg-type]
            timer=timer,
            purgatory=purgatory,
            fetch_sessions=FetchSessionCache(100),
            clock=lambda: loop.now_ms,
        )
        nobody: Any = None  # there is no other broker to ask
        self._elections = add_coordinators(self.broker, nobody, Random(self.incarnation).randbytes)
        self.is_up = True
        self.follow(metadata.lead_all_anew())
        self._elections.start(metadata.image)
        self.events.note("node", f"starts as incarnation {self.incarnation}")

    def kill(self, *, cut: bool, in_mid_write: bool = False) -> None:
        """Nothing that is still under way may touch the logs from here on."""
        if not in_mid_write:
            for runtime in self.runtimes:
                self.tell_lost(runtime)
        for runtime in self.runtimes:
            # Whatever is still under way finds no coordinator any more.
            for shard in runtime.active_shards():
                shard.is_active = False
            runtime._shards.clear()
            runtime._loading.clear()
        self.is_up = False
        self.dies_after_appends = None
        self.events.note("node", "is killed" + (", its logs are cut" if cut else ""))
        self.broker.timer.close()
        for partition in self.partitions.opened():
            self.note_committed(partition)
            partition.is_leader = False
            if cut:
                self.cut(partition)
        self.partitions.close(clean=False)

    def cut(self, partition: Partition) -> None:
        """What is not committed is lost, as when a follower takes over."""
        key = (partition.topic, partition.index)
        end = partition.log.log_end_offset
        partition.log.truncate_to(self.committed.get(key, 0))
        if partition.log.log_end_offset < end:
            self.events.note("node", f"{key} is cut from {end} to {partition.log.log_end_offset}")
        self.ends[key] = [
            each for each in self.ends.get(key, ()) if each <= partition.log.log_end_offset
        ]

    # Requests

    def handle(self, request: Message, version: int, client_id: str, answer: Answer) -> None:
        """Begin to answer, as the server's pipeline does."""
        connection: Any = SimpleNamespace(listener="PLAINTEXT", host="there", principal="User:me")
        broker = self.broker
        call = RequestContext(version, 1, client_id, connection, broker, self._loop.now_ms, 0)
        key = ApiKey(type(request).API_KEY)

        def ended(response: Message | None, failure: BaseException | None) -> None:
            if broker is not self.broker or not self.is_up:
                return
            if failure is not None:
                code, message = error_of(failure, key.name, call)
                response = error_response(request, version, code, message)
            answer(response)

        coroutine = HANDLERS[key](request, call)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            ended(returned.value, None)
        except Exception as failure:
            ended(None, failure)
        else:
            SuspendedHandler(coroutine, awaited, ended, self._loop)

    # Metadata and replicas

    def follow(self, delta: MetadataDelta) -> None:
        """The controller has decided something."""
        if not self.is_up:
            return
        broker = self.broker
        broker.image = self.metadata.image
        broker.resolver.configs = self.metadata.image.configs
        broker.resolver.invalidate(delta.configs_changed)
        self.partitions.apply_delta(delta, self.metadata.image)
        with suppress(Killed):  # a marker that the change sends may be the write it dies in
            self._elections.on_metadata_change(delta, self.metadata.image)

    def create_topic(self, name: str, partitions: int) -> None:
        self.follow(self.metadata.create_topic(name, partitions))

    def hold_back(self, topic: str, index: int) -> None:
        """The other replica is in sync and slow: nothing new is committed."""
        self.follow(self.metadata.change_partition(topic, index, isr=[NODE_ID, OTHER_ID]))

    def catch_up(self, topic: str, index: int, offset: int) -> None:
        """The other replica has all before `offset`."""
        if self.is_up:
            partition = self.partitions.get_by_name(topic, index)
            if partition.high_watermark < offset <= partition.log.log_end_offset:
                partition.high_watermark = offset
                self.note_committed(partition)
                self.broker.purgatory.notify(partition)

    def let_go(self, topic: str, index: int) -> None:
        """This node is the only one in sync: everything is committed."""
        self.follow(self.metadata.change_partition(topic, index, isr=[NODE_ID]))

    def resign(self, topic: str, index: int, *, cut: bool) -> None:
        """The other replica leads for a while, and does not write anything."""
        for runtime in self.runtimes:
            if runtime.topic == topic:
                self.tell_lost(runtime, index)
        self.events.note("node", f"no longer leads {topic}-{index}" + (", cut" if cut else ""))
        self.follow(self.metadata.change_partition(topic, index, leader=OTHER_ID))
        if cut:
            partition = self.partitions.get_by_name(topic, index)
            self.note_committed(partition)
            self.cut(partition)

    def lead_again(self, topic: str, index: int) -> None:
        self.events.note("node", f"leads {topic}-{index} again")
        self.follow(self.metadata.change_partition(topic, index, leader=NODE_ID))

    def note_committed(self, partition: Partition) -> None:
        key = (partition.topic, partition.index)
        self.committed[key] = max(self.committed.get(key, 0), partition.high_watermark)

    def partition(self, topic: str, index: int) -> Partition:
        return self.partitions.get_by_name(topic, index)

    # Coordinators

    @property
    def runtimes(self) -> list[CoordinatorRuntime[Any]]:
        return [self.broker.groups.runtime, self.broker.transactions.runtime]

    def tell_lost(self, runtime: CoordinatorRuntime[Any], only: int | None = None) -> None:
        for shard in runtime.active_shards():
            if only is None or shard.index == only:
                end = self.partition(runtime.topic, shard.index).log.log_end_offset
                self.events.tell(ShardLost(runtime.topic, shard.index, shard.state, end))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note where batches end, and die after one of them if so told; tell of what is loaded."""
        append, load = Log.append_as_leader, CoordinatorShard.load

        def append_and_note(log: Log, *args: Any, **kwargs: Any) -> Any:
            appended = append(log, *args, **kwargs)
            self.ends.setdefault((log.topic, log.partition), []).append(appended.last_offset + 1)
            if self.dies_after_appends is not None:
                self.dies_after_appends -= 1
                if self.dies_after_appends <= 0:
                    self.died()
                    raise Killed
            return appended

        def load_and_tell(shard: CoordinatorShard[Any]) -> Iterator[None]:
            yield from load(shard)
            end = self.partition(shard.topic, shard.index).log.log_end_offset
            self.events.tell(ShardLoaded(shard.topic, shard.index, shard.state, end))

        with (
            patch.object(Log, "append_as_leader", append_and_note),
            patch.object(CoordinatorShard, "load", load_and_tell),
        ):
            yield


class _Foreground:
    """Work that a real broker gives to its threads."""

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        work()
        done(None)
