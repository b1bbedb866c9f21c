"""Two equal brokers that get the same requests of group members: one has the lanes, one has not."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.coordinator.environment import SimulatedClock
from tests.replication.world import NODE_ID, World, topic_records
from tests.server.lanes.produce_brokers import FOLLOWER, RecordingConnection

from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import GROUP_VERSION
from barnabas.node.coordinators import add_coordinators
from barnabas.server.api import HANDLERS
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import Histogram, RequestMetrics
from barnabas.server.network._pipeline import RequestPipeline
from barnabas.server.network.routes import RouteTable
from barnabas.server.nodes import BrokerNode
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.headers import RequestHeader, write_request_header
from barnabas.wire.messages.metadata_records import FeatureLevelRecord, PartitionRecord
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

LaneFactory = Callable[[BrokerNode, RequestMetrics], Lane]

SHARDS = 2
"""Partitions of `__consumer_offsets`. The last one has a replica, which may lag."""

SLOW_SHARD = SHARDS - 1


class GroupWorld(World):
    """A broker with coordinators, whose clock the test steps."""

    def start(self, lost_paths: object = ()) -> None:
        self.time = SimulatedClock(self.now_ms)
        self.timer = self.time  # type: ignore[assignment]
        super().start()
        self.broker.clock = lambda: self.time.now_ms
        no_peers: Any = None  # there is no other broker
        self.elections = add_coordinators(self.broker, no_peers, Random(1).randbytes)
        self.elections.start(self.image)

    def metadata_without_broker(self, *changes: object) -> MetadataDelta:
        delta = super().metadata_without_broker(*changes)  # type: ignore[arg-type]
        self._delta = delta
        return delta

    def metadata(self, *changes: object) -> None:
        super().metadata(*changes)  # type: ignore[arg-type]
        self.elections.on_metadata_change(self._delta, self.image)

    def advance(self, delay_ms: int) -> None:
        self.time.advance(delay_ms)
        self.now_ms = self.time.now_ms

    def set_group_version(self, level: int) -> None:
        self.metadata(FeatureLevelRecord(name=GROUP_VERSION, feature_level=level))

    def add_partition(self, name: str, replicas: tuple[int, ...] = (NODE_ID,)) -> None:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        (added,) = (
            record
            for record in topic_records(name, len(topic.partitions) + 1, replicas=replicas)
            if isinstance(record, PartitionRecord) and record.partition_id == len(topic.partitions)
        )
        self.metadata(added)

    def replicate(self) -> None:
        """The follower fetches everything, which commits it."""
        partition = self.partition(GROUPS_TOPIC, SLOW_SHARD)
        if partition.is_leader and partition.leader_state is not None:
            partition.fetch_as_follower(
                FOLLOWER,
                5,
                partition.log.log_end_offset,
                0,
                log_start_offset=0,
                now_ms=self.now_ms,
            )


class GroupBroker:
    """A broker and its pipeline. `handled` counts the requests that handlers got, by API."""

    def __init__(
        self,
        folder: Path,
        loop: asyncio.AbstractEventLoop,
        lanes: Mapping[ApiKey, LaneFactory],
        connections: int,
    ) -> None:
        self.world = world = GroupWorld(folder, group_initial_rebalance_delay_ms="0")
        self.handled = dict.fromkeys(ApiKey, 0)
        self._loop = loop
        broker = world.broker
        broker.monotonic_ns = lambda: 1  # 0 is that of responses that are not complete
        routes = RouteTable(
            broker.metrics,
            {key: self._counted(key, handle) for key, handle in HANDLERS.items()},
            {
                key: lane(broker, broker.metrics.request(api(key).name))
                for key, lane in lanes.items()
            },
        )
        self._pipeline = RequestPipeline(broker, loop, routes)
        self._connections = [RecordingConnection() for _ in range(connections)]
        world.set_group_version(1)
        world.create_topic("orders", 4)
        world.create_topic("payments", 2)
        world.create_topic(GROUPS_TOPIC, SLOW_SHARD)
        world.add_partition(GROUPS_TOPIC, replicas=(NODE_ID, FOLLOWER))
        world.advance(0)

    def send(self, number: int, frame: bytes) -> tuple[object, ...]:
        """Handles a frame of a connection; returns what all clients notice."""
        content = bytearray(frame)
        violation = None
        try:
            self.handle(number, content)
        except ProtocolViolation as error:
            violation = str(error)
        # The memory of a frame is used again as soon as the pipeline returns.
        content[:] = b"\xaa" * len(content)
        return violation, *self.notice()

    def handle(self, number: int, content: bytearray) -> None:
        connection = self._connections[number]
        connection.received_ms = self.world.now_ms
        with memoryview(content) as view:
            self._run(self._handle(connection, view))

    def notice(self) -> tuple[object, ...]:
        """Lets the loop run, and returns what the clients have got since."""
        for _ in range(3):
            self._run(asyncio.sleep(0))
        return tuple(connection.take() for connection in self._connections)

    def state(self) -> dict[str, object]:
        """Returns what the requests of members change."""
        state: dict[str, object] = {}
        for name, metrics in self.world.broker.metrics.requests.items():
            if not any(metrics.requests.values()):
                continue
            state[f"requests {name}"] = metrics.requests
            state[f"errors {name}"] = {code: n for code, n in metrics.errors.items() if n}
            for histogram in ("request_bytes", "queue_ns", "local_ns", "remote_ns", "total_ns"):
                observed: Histogram = getattr(metrics, histogram)
                state[f"{histogram} {name}"] = (observed.buckets, observed.total)
        for shard in self.world.broker.groups.runtime.active_shards():
            state[f"timers of {shard}"] = {
                key: running.task.deadline_ms for key, running in shard.timers._running.items()
            }
            state[f"groups of {shard}"] = {
                group_id: group.state_name for group_id, group in shard.state.by_id.items()
            }
        for path in sorted(self.world.folder.glob(f"*/{GROUPS_TOPIC}-*/*.log")):
            state[str(path.relative_to(self.world.folder))] = path.read_bytes()
        return state

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for _ in range(3):
            self._run(asyncio.sleep(0))
        self.world.elections.stop()
        self.world.partitions.close(clean=False)

    def _counted(self, key: ApiKey, handle: Any) -> Any:
        def counted(request: Message, context: RequestContext) -> Any:
            self.handled[key] += 1
            return handle(request, context)

        return counted

    async def _handle(self, connection: RecordingConnection, view: memoryview) -> None:
        self._pipeline.handle(connection, view)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._loop.run_until_complete(coroutine)


def frame_of(request: Message, version: int, client_id: str = "test") -> bytes:
    """Returns a request without its length, as the pipeline gets it. Its API key is the correlation
    id too."""
    out = Outgoing()
    key = request.API_KEY
    write_request_header(RequestHeader(key, version, key, client_id), out)
    return bytes(out) + request.write(version)


def folder_of(root: Path, number: int) -> Path:
    folder = root / f"{number:08}"
    folder.mkdir()
    return folder
