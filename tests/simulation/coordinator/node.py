"""The broker under test. Only time, the network and the controller are simulated.

It can be killed between any two steps of its loop and right after any append. Its memory is lost
then; its logs stay, or are truncated to the committed records, as if a follower had become leader.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.simulation.coordinator.events import ShardLoaded, ShardLost, TopicPartition
from tests.simulation.coordinator.metadata import NODE_ID, OTHER_ID, Metadata
from tests.simulation.world.clock import SimulatedLoop
from tests.simulation.world.disk import InlineDiskThreads, Killed
from tests.simulation.world.events import Events

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.log import Log, LogDirectory
from barnabas.metadata.delta import MetadataDelta
from barnabas.node.coordinators import add_coordinators
from barnabas.replication import Partition, Partitions
from barnabas.security.principal import ANONYMOUS
from barnabas.server.api import HANDLERS
from barnabas.server.disk_reads import DiskReads
from barnabas.server.errors import error_of
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.network.suspended_handler import SuspendedHandler
from barnabas.server.nodes import BrokerNode
from barnabas.server.purgatory import Purgatory
from barnabas.server.request_context import RequestContext
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey
from barnabas.wire.error_response import error_response
from barnabas.wire.schema import Message

ResponseCallback = Callable[[Message | None], None]


class Node:
    """One broker, which is killed and started again."""

    def __init__(
        self, folder: Path, metadata: Metadata, loop: SimulatedLoop, events: Events, **settings: Any
    ) -> None:
        self.metadata = metadata
        self.events = events
        self.is_up = False
        self.incarnation = 0
        self.committed: dict[TopicPartition, int] = {}
        """The highest known high watermark of every log."""
        self.ends: dict[TopicPartition, list[int]] = {}
        """The end offsets of the batches of every log."""
        self.appends_left: int | None = None
        self.on_killed: Callable[[], None] = lambda: None
        """Called when an append was the last one."""
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

    # Start and kill

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
            background=InlineDiskThreads(),
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
            disk_reads=DiskReads(InlineDiskThreads()),
            clock=lambda: loop.now_ms,
        )
        no_peers: Any = None  # there is no other broker
        self._elections = add_coordinators(
            self.broker, no_peers, Random(self.incarnation).randbytes
        )
        self.is_up = True
        self.apply_metadata(metadata.elect_all())
        self._elections.start(metadata.image)
        self.events.note("node", f"starts as incarnation {self.incarnation}")

    def kill(self, *, truncate: bool, while_writing: bool = False) -> None:
        """Stops the broker; no request in flight may change the logs any more."""
        if not while_writing:
            for runtime in self.runtimes:
                self.record_lost_shards(runtime)
        for runtime in self.runtimes:
            # Requests in flight find no coordinator any more.
            for shard in runtime.active_shards():
                shard.is_active = False
            runtime._shards.clear()
            runtime._loading.clear()
        self.is_up = False
        self.appends_left = None
        self.events.note("node", "is killed" + (", its logs are truncated" if truncate else ""))
        self.broker.timer.close()
        for partition in self.partitions.opened():
            self.note_committed(partition)
            partition.is_leader = False
            if truncate:
                self.truncate_to_committed(partition)
        self.partitions.close(clean=False)

    def truncate_to_committed(self, partition: Partition) -> None:
        """Loses the records that are not committed, as when a follower becomes leader."""
        key = (partition.topic, partition.index)
        end = partition.log.log_end_offset
        partition.log.truncate_to(self.committed.get(key, 0))
        if partition.log.log_end_offset < end:
            self.events.note(
                "node", f"{key} is truncated from {end} to {partition.log.log_end_offset}"
            )
        self.ends[key] = [
            end for end in self.ends.get(key, ()) if end <= partition.log.log_end_offset
        ]

    # Requests

    def handle(
        self, request: Message, version: int, client_id: str, respond: ResponseCallback
    ) -> None:
        """Starts to handle a request, as the pipeline of the server does."""
        connection: Any = SimpleNamespace(listener="PLAINTEXT", host="there", principal=ANONYMOUS)
        broker = self.broker
        key = ApiKey(type(request).API_KEY)
        call = RequestContext(key, version, 1, client_id, connection, broker, self._loop.now_ms, 0)

        def complete(response: Message | None, failure: BaseException | None) -> None:
            if broker is not self.broker or not self.is_up:
                return
            if failure is not None:
                code, message = error_of(failure, key.name, call)
                response = error_response(request, version, code, message)
            respond(response)

        coroutine = HANDLERS[key](request, call)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            complete(returned.value, None)
        except Exception as failure:
            complete(None, failure)
        else:
            SuspendedHandler(coroutine, awaited, complete, self._loop)

    # Metadata and replicas

    def apply_metadata(self, delta: MetadataDelta) -> None:
        """Applies a change of the metadata."""
        if not self.is_up:
            return
        broker = self.broker
        broker.image = self.metadata.image
        broker.resolver.configs = self.metadata.image.configs
        broker.resolver.invalidate(delta.configs_changed)
        self.partitions.apply_delta(delta, self.metadata.image)
        with suppress(Killed):  # it may be killed by the write of a marker
            self._elections.on_metadata_change(delta, self.metadata.image)

    def create_topic(self, name: str, partitions: int) -> None:
        self.apply_metadata(self.metadata.create_topic(name, partitions))

    def stop_replication(self, topic: str, index: int) -> None:
        """The other replica is in sync and does not fetch: no new record is committed."""
        self.apply_metadata(self.metadata.change_partition(topic, index, isr=[NODE_ID, OTHER_ID]))

    def replicate_to(self, topic: str, index: int, offset: int) -> None:
        """The other replica has fetched the records before `offset`."""
        if self.is_up:
            partition = self.partitions.get_by_name(topic, index)
            if partition.high_watermark < offset <= partition.log.log_end_offset:
                partition.high_watermark = offset
                self.note_committed(partition)
                self.broker.purgatory.notify(partition)

    def resume_replication(self, topic: str, index: int) -> None:
        """This broker is the only one in sync: all records are committed."""
        self.apply_metadata(self.metadata.change_partition(topic, index, isr=[NODE_ID]))

    def resign(self, topic: str, index: int, *, truncate: bool) -> None:
        """The other replica becomes leader, and appends nothing."""
        for runtime in self.runtimes:
            if runtime.topic == topic:
                self.record_lost_shards(runtime, index)
        self.events.note(
            "node", f"no longer leads {topic}-{index}" + (", truncated" if truncate else "")
        )
        self.apply_metadata(self.metadata.change_partition(topic, index, leader=OTHER_ID))
        if truncate:
            partition = self.partitions.get_by_name(topic, index)
            self.note_committed(partition)
            self.truncate_to_committed(partition)

    def become_leader(self, topic: str, index: int) -> None:
        self.events.note("node", f"leads {topic}-{index} again")
        self.apply_metadata(self.metadata.change_partition(topic, index, leader=NODE_ID))

    def note_committed(self, partition: Partition) -> None:
        key = (partition.topic, partition.index)
        self.committed[key] = max(self.committed.get(key, 0), partition.high_watermark)

    def partition(self, topic: str, index: int) -> Partition:
        return self.partitions.get_by_name(topic, index)

    # Coordinators

    @property
    def runtimes(self) -> list[CoordinatorRuntime[Any]]:
        return [self.broker.groups.runtime, self.broker.transactions.runtime]

    def record_lost_shards(self, runtime: CoordinatorRuntime[Any], only: int | None = None) -> None:
        for shard in runtime.active_shards():
            if only is None or shard.index == only:
                end = self.partition(runtime.topic, shard.index).log.log_end_offset
                self.events.record(ShardLost(runtime.topic, shard.index, shard.state, end))

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Records ends of batches and loaded shards, and kills the broker after its last append."""
        append, load = Log.append_as_leader, CoordinatorShard.load

        def append_and_observe(log: Log, *args: Any, **kwargs: Any) -> Any:
            appended = append(log, *args, **kwargs)
            self.ends.setdefault((log.topic, log.partition), []).append(appended.last_offset + 1)
            if self.appends_left is not None:
                self.appends_left -= 1
                if self.appends_left <= 0:
                    self.on_killed()
                    raise Killed
            return appended

        def load_and_record(shard: CoordinatorShard[Any]) -> Iterator[None]:
            yield from load(shard)
            end = self.partition(shard.topic, shard.index).log.log_end_offset
            self.events.record(ShardLoaded(shard.topic, shard.index, shard.state, end))

        with (
            patch.object(Log, "append_as_leader", append_and_observe),
            patch.object(CoordinatorShard, "load", load_and_record),
        ):
            yield
