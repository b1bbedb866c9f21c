"""Several brokers in one process, whose coordinators send each other requests in memory.

Logs, partitions, coordinators and handlers are real. Time is simulated, and tests change the
metadata.
"""

import asyncio
import os
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from tests.simulation.world.clock import Latency, SimulatedLoop
from tests.simulation.world.disk import InlineDiskThreads
from tests.simulation.world.network import RequestNetwork, ResponseCallback

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.log import LogDirectory
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
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
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_response
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.producer_ids import AllocateProducerIdsResponse
from barnabas.wire.schema import Message

PORT = 9092
FETCH_INTERVAL_S = 0.005
UNASSIGNED = (1).to_bytes(16, "big")


class Cluster:
    """Brokers 1, 2, ... and their metadata, which brokers in `lagging` do not get."""

    def __init__(self, folder: Path, count: int, **settings: str) -> None:
        self.loop = SimulatedLoop()
        asyncio.set_event_loop(self.loop)
        self.network = BrokerNetwork(self.loop)
        self.image = MetadataImage()
        self.lagging: dict[int, list[MetadataDelta]] = {}
        self.next_producer_id = 1_000
        self.brokers: dict[int, ClusterBroker] = {}
        self._change(
            *(_registration(broker_id) for broker_id in range(1, count + 1)),
            records.FeatureLevelRecord(name="transaction.version", feature_level=2),
        )
        for broker_id in range(1, count + 1):
            self.brokers[broker_id] = ClusterBroker(
                self, broker_id, folder / str(broker_id), settings
            )
        self.loop.call_later(FETCH_INTERVAL_S, self._replicate)

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.elections.stop()
            broker.partitions.close(clean=False)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        self.loop.close()

    def run(self, for_ms: int = 100) -> None:
        """Lets time pass."""
        self.loop.run_until_complete(asyncio.sleep(for_ms / 1000))

    # Metadata

    def create_topic(self, name: str, *leaders: int, replicas: tuple[int, ...] = ()) -> None:
        """Creates a topic with one partition per leader, which is its only replica by default."""
        topic_id = name.encode().ljust(16, b"\1")[:16]
        self.metadata(
            records.TopicRecord(name=name, topic_id=topic_id),
            *(
                _partition(topic_id, index, leader, replicas or (leader,))
                for index, leader in enumerate(leaders)
            ),
        )

    def delete_topic(self, name: str) -> None:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        self.metadata(records.RemoveTopicRecord(topic_id=topic.topic_id))

    def lead(
        self, name: str, index: int, leader: int, *, isr: tuple[int, ...] | None = None
    ) -> None:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        self.metadata(
            records.PartitionChangeRecord(
                topic_id=topic.topic_id,
                partition_id=index,
                leader=leader,
                isr=list(isr) if isr is not None else None,
            )
        )

    def fence(self, broker_id: int) -> None:
        self.metadata(
            records.BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker_id, fenced=1
            )
        )

    def metadata(self, *changes: Message) -> None:
        delta = self._change(*changes)
        for broker in self.brokers.values():
            if broker.broker_id in self.lagging:
                self.lagging[broker.broker_id].append(delta)
            else:
                broker.apply_metadata(delta, self.image)

    def catch_up(self, broker_id: int) -> None:
        for delta in self.lagging.pop(broker_id):
            self.brokers[broker_id].apply_metadata(delta, self.image)

    def _change(self, *changes: Message) -> MetadataDelta:
        self.image = self.image.copy()
        delta = MetadataDelta()
        for record in changes:
            self.image.apply(record, delta)
        return delta

    # Replication, instead of replica fetchers

    def _replicate(self) -> None:
        for topic in self.image.topics:
            for index, state in topic.partitions.items():
                for follower in state.replicas:
                    if state.leader in self.brokers and follower != state.leader:
                        self._fetch(topic.name, index, state, follower)
        self.loop.call_later(FETCH_INTERVAL_S, self._replicate)

    def _fetch(self, topic: str, index: int, state: PartitionRegistration, follower: int) -> None:
        brokers = self.brokers[follower], self.brokers[state.leader]
        if self.network.is_cut(follower, state.leader) or not all(b.is_up for b in brokers):
            return
        leader_replica = self.brokers[state.leader].partition(topic, index)
        follower_replica = self.brokers[follower].partition(topic, index)
        if not leader_replica.is_leader or follower_replica.is_leader:
            return
        if follower_replica.log.log_end_offset > leader_replica.log.log_end_offset:
            follower_replica.follower.truncate_to(leader_replica.log.log_end_offset)
        fetched = leader_replica.fetch_as_follower(
            follower,
            follower,
            follower_replica.log.log_end_offset,
            1 << 20,
            log_start_offset=follower_replica.log.log_start_offset,
            now_ms=self.loop.now_ms,
        )
        if fetched.records is not None:
            follower_replica.follower.append(
                memoryview(bytearray(fetched.records.read())),
                leader_high_watermark=fetched.high_watermark,
                leader_log_start_offset=fetched.log_start_offset,
                now_ms=self.loop.now_ms,
            )

    # The controller

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """Allocates producer ids, the only request that brokers send here."""
        self.next_producer_id += 100
        return AllocateProducerIdsResponse(
            producer_id_start=self.next_producer_id, producer_id_len=100
        )


class ClusterBroker:
    """One broker of the cluster, with its coordinators."""

    def __init__(
        self, cluster: Cluster, broker_id: int, folder: Path, settings: dict[str, str]
    ) -> None:
        self.broker_id = broker_id
        self._cluster = cluster
        loop = cluster.loop
        LogDirectory.format(folder, "cluster", broker_id, bytes([broker_id + 100] * 16))
        static = BrokerSettings.from_properties(
            {
                "node.id": str(broker_id),
                "process.roles": "broker",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://:{PORT}",
                "controller.quorum.bootstrap.servers": "localhost:9093",
                "log.dirs": str(folder),
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        resolver = ConfigResolver(static, cluster.image.configs)
        timer = Timer(loop)
        purgatory = Purgatory(timer)
        self.partitions = Partitions(
            broker_id,
            [LogDirectory.open(folder)],
            resolver,
            cluster.image,
            purgatory=purgatory,
            background=InlineDiskThreads(),
            send_to_controller=lambda _: loop.create_future(),  # only tests change the ISR
            clock=lambda: loop.now_ms,
        )
        controller: Any = cluster
        self.broker = BrokerNode(
            node_id=broker_id,
            cluster_id="cluster",
            settings=static,
            resolver=resolver,
            image=cluster.image,
            partitions=self.partitions,
            controller=controller,
            timer=timer,
            purgatory=purgatory,
            fetch_sessions=FetchSessionCache(10),
            disk_reads=DiskReads(InlineDiskThreads()),
            clock=lambda: loop.now_ms,
        )
        cluster.network.hosts[broker_id] = self
        peers = cluster.network.of(broker_id)
        self.elections = add_coordinators(self.broker, peers, os.urandom)

    def apply_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.broker.image = image
        self.broker.resolver.configs = image.configs
        self.broker.resolver.invalidate(delta.configs_changed)
        self.partitions.apply_delta(delta, image)
        self.elections.on_metadata_change(delta, image)

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.partitions.get_by_name(topic, index)

    @property
    def is_up(self) -> bool:
        return self.broker_id not in self._cluster.network.stopped

    def on_request(self, request: Any, respond: ResponseCallback) -> None:
        """Handles a request of another broker."""
        self.start_request(request, api(ApiKey(request.API_KEY)).stable_versions.max, respond)

    def start_request(
        self, request: Message, version: int, on_response: Callable[[Any], None]
    ) -> None:
        """Handles a request as the pipeline does, in the next turn of the loop."""
        self._cluster.loop.call_soon(self._handle, request, version, on_response)

    def _handle(self, request: Message, version: int, on_response: Callable[[Any], None]) -> None:
        connection: Any = SimpleNamespace(listener="PLAINTEXT", host="there", principal=ANONYMOUS)
        loop = self._cluster.loop
        key = ApiKey(type(request).API_KEY)
        frame = memoryview(bytearray(request.write(version)))
        received, _ = type(request).read(frame, version)
        call = RequestContext(key, version, 1, "test", connection, self.broker, loop.now_ms, 0)

        def complete(response: Any, failure: BaseException | None) -> None:
            if failure is not None:
                code, message = error_of(failure, key.name, call)
                response = error_response(received, version, code, message)
            content = response.write(version)
            on_response(api(key).response.read_exactly(memoryview(bytes(content)), version, 0))

        coroutine = HANDLERS[key](received, call)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            complete(returned.value, None)
        except Exception as failure:
            complete(None, failure)
        else:
            SuspendedHandler(coroutine, awaited, complete, loop)

    def send_request(self, request: Message, version: int, timeout_ms: int = 60_000) -> Any:
        """Returns the response; time may pass until it comes."""
        response: asyncio.Future[Any] = self._cluster.loop.create_future()
        self.start_request(request, version, response.set_result)
        waiting = asyncio.wait_for(response, timeout_ms / 1000)
        return self._cluster.loop.run_until_complete(waiting)


class BrokerNetwork(RequestNetwork):
    """Delivers requests at once, unless a test isolates brokers or holds messages."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(loop, Random(0), Latency(fast_ms=0))
        self.sent: list[tuple[int, int, Message]] = []
        """Sender, receiver and request."""
        self.stopped: set[int] = set()
        """Brokers without a process: connections to them are refused."""
        self.isolated: set[int] = set()
        """Brokers that no message reaches, and whose messages are lost."""
        self.held: list[Callable[[], object]] | None = None

    def of(self, broker_id: int) -> "_Peers":
        return _Peers(self, broker_id)

    def is_cut(self, source: Hashable, target: Hashable) -> bool:
        return bool({source, target} & self.isolated)

    def hold(self) -> None:
        """Messages are not delivered until they are released."""
        self.held = []

    def release(self) -> None:
        held, self.held = self.held or [], None
        for deliver in held:
            deliver()

    def deliver(
        self, source: Hashable, target: Hashable, arrive: Callable[..., object], *args: Any
    ) -> bool:
        if self.held is not None:
            self.held.append(partial(self.deliver, source, target, arrive, *args))
            return True
        return super().deliver(source, target, arrive, *args)


class _Peers:
    def __init__(self, network: BrokerNetwork, broker_id: int) -> None:
        self._network = network
        self._broker_id = broker_id

    def at(self, host: str, port: int, purpose: str) -> "_Peer":
        assert port == PORT
        return _Peer(self._network, self._broker_id, int(host))


class _Peer:
    def __init__(self, network: BrokerNetwork, sender: int, to: int) -> None:
        self._network = network
        self._sender = sender
        self._to = to

    def send(self, request: Message, timeout_ms: int, on_response: ResponseCallback) -> None:
        self._network.sent.append((self._sender, self._to, request))
        self._network.send(self._sender, self._to, request, timeout_ms, on_response)

    def close(self) -> None:
        """There is no connection to close."""


def _registration(broker_id: int) -> Message:
    """The host name of a broker is its id."""
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=broker_id,
        end_points=[records.BrokerEndpoint(name="PLAINTEXT", host=str(broker_id), port=PORT)],
        fenced=False,
    )


def _partition(topic_id: bytes, index: int, leader: int, replicas: tuple[int, ...]) -> Message:
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=[UNASSIGNED] * len(replicas),
    )
