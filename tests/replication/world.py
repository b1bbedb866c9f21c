"""A broker without sockets, clocks or threads: real logs, real metadata, and time at will."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.coordinator.ports import TransactionMarker
from barnabas.log import LogDirectory
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.replication import Partition, Partitions
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.server.disk_reads import DiskReads
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.nodes import BrokerNode
from barnabas.server.purgatory import Purgatory
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.schema import Message

NODE_ID = 1
START_MS = 1_700_000_000_000
LISTENER = "PLAINTEXT"
CLIENT = KafkaPrincipal(USER, "alice")
CLIENT_HOST = "10.0.0.9"


class World:
    """One broker over directories `d0`, `d1`, ... of a folder, and the metadata it follows."""

    def __init__(
        self, folder: Path, *, node_id: int = NODE_ID, disks: int = 1, **settings: str
    ) -> None:
        self.folder = folder
        self.node_id = node_id
        self.controller_requests: list[tuple[Any, asyncio.Future[Message]]] = []
        """The requests to the controller, and the futures of their responses."""
        self.now_ms = START_MS
        self.paths = [folder / f"d{number}" for number in range(disks)]
        for number, path in enumerate(self.paths):
            LogDirectory.format(path, "cluster", node_id, bytes([number + 101] * 16))
        self.settings = BrokerSettings.from_properties(
            {
                "node.id": str(node_id),
                "process.roles": "broker,controller",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "controller.quorum.voters": f"{node_id}@localhost:9093",
                "log.dirs": ",".join(map(str, self.paths)),
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.image = MetadataImage()
        self.metadata_without_broker(registration(node_id))
        self.timer = ManualTimer()
        self.background = InlineExecutor()
        self.start()

    def start(self, lost_paths: Sequence[str] = ()) -> None:
        self.directories = [LogDirectory.open(path) for path in self.paths]
        self.resolver = ConfigResolver(self.settings, self.image.configs)
        self.purgatory = Purgatory(self.timer)  # type: ignore[arg-type]
        self.partitions = Partitions(
            self.node_id,
            self.directories,
            self.resolver,
            self.image,
            purgatory=self.purgatory,
            background=self.background,
            send_to_controller=self._send_to_controller,
            clock=lambda: self.now_ms,
            offline_paths=lost_paths,
        )
        self.broker = BrokerNode(
            node_id=self.node_id,
            cluster_id="cluster",
            settings=self.settings,
            resolver=self.resolver,
            image=self.image,
            partitions=self.partitions,
            controller=None,  # type: ignore[arg-type]
            timer=self.timer,  # type: ignore[arg-type]
            purgatory=self.purgatory,
            fetch_sessions=FetchSessionCache(100),
            disk_reads=DiskReads(self.background),
            clock=lambda: self.now_ms,
        )

    def restart(self, *, clean: bool = True) -> None:
        self.partitions.close(clean)
        self.start()

    def restart_without(self, path: str) -> None:
        """Start again with a disk that cannot be opened."""
        self.partitions.close()
        self.paths = [other for other in self.paths if str(other) != path]
        self.start(lost_paths=[path])

    # Metadata

    def metadata(self, *changes: Message) -> None:
        """Commit records, as the controller would, and let the broker know."""
        delta = self.metadata_without_broker(*changes)
        self.broker.image = self.image
        self.resolver.configs = self.image.configs
        self.resolver.invalidate(delta.configs_changed)
        self.partitions.apply_delta(delta, self.image)

    def metadata_without_broker(self, *changes: Message) -> MetadataDelta:
        self.image = self.image.copy()
        delta = MetadataDelta()
        for record in changes:
            self.image.apply(record, delta)
        self.image.offset += len(changes)
        return delta

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        topic_id: bytes | None = None,
        replicas: tuple[int, ...] = (NODE_ID,),
        isr: tuple[int, ...] | None = None,
        leader: int = NODE_ID,
        **configs: str,
    ) -> bytes:
        """A topic with settings (`cleanup_policy="compact"`); its id."""
        topic_id = topic_id or id_of(name)
        self.metadata(
            *topic_records(
                name,
                partitions,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=leader,
                **configs,
            )
        )
        return topic_id

    def configure(self, topic: str, **configs: str | None) -> None:
        self.metadata(
            *(
                records.ConfigRecord(
                    resource_type=2, resource_name=topic, name=key.replace("_", "."), value=value
                )
                for key, value in configs.items()
            )
        )

    def configure_broker(self, **configs: str) -> None:
        """For all brokers of the cluster."""
        self.metadata(
            *(
                records.ConfigRecord(
                    resource_type=4, resource_name="", name=key.replace("_", "."), value=value
                )
                for key, value in configs.items()
            )
        )

    def lead(
        self,
        topic: str,
        index: int = 0,
        *,
        leader: int = NODE_ID,
        isr: tuple[int, ...] | None = None,
    ) -> None:
        """A new leader epoch."""
        state = self.image.topics.by_name(topic)
        assert state is not None
        self.metadata(
            records.PartitionChangeRecord(
                topic_id=state.topic_id,
                partition_id=index,
                leader=leader,
                isr=list(isr) if isr is not None else None,
            )
        )

    def delete_topic(self, name: str) -> None:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        self.metadata(records.RemoveTopicRecord(topic_id=topic.topic_id))

    # Requests

    def call(
        self,
        version: int,
        *,
        api_key: int = ApiKey.METADATA,
        client_id: str = "test",
        local_host: str = "127.0.0.1",
    ) -> RequestContext:
        connection: Any = SimpleNamespace(
            listener=LISTENER, host=CLIENT_HOST, local_host=local_host, principal=CLIENT
        )
        return RequestContext(
            api_key, version, 1, client_id, connection, self.broker, self.now_ms, 0
        )

    def request(self, handle: Any, request: Message, version: int, **caller: str) -> Any:
        """The response to a request that need not wait."""
        pending = PendingHandler(
            handle(
                _over_the_wire(request, version),
                self.call(version, api_key=request.API_KEY, **caller),
            )
        )
        assert pending.is_complete, "the request waits"
        return pending.response

    def begin_request(
        self, handle: Any, request: Message, version: int, **caller: str
    ) -> "PendingHandler":
        return PendingHandler(
            handle(
                _over_the_wire(request, version),
                self.call(version, api_key=request.API_KEY, **caller),
            )
        )

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.partitions.get_by_name(topic, index)

    def append(self, topic: str, *values: bytes, index: int = 0, acks: int = -1) -> int:
        """Append a batch; its first offset."""
        partition = self.partition(topic, index)
        batch = batch_of(*values, now_ms=self.now_ms)
        return partition.append(batch, acks=acks, now_ms=self.now_ms).first_offset

    def write_in_transaction(
        self,
        topic: str,
        *values: bytes,
        keys: tuple[bytes | None, ...] | None = None,
        producer_id: int = 7,
        epoch: int = 0,
        sequence: int = 0,
    ) -> int:
        """Append a batch of a transaction that its coordinator knows of; its first offset."""
        partition = self.partition(topic)
        batch = batch_of(
            *values,
            now_ms=self.now_ms,
            keys=keys,
            transactional=True,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        verification = partition.start_verification(
            read_header(batch), from_zero=False, now_ms=self.now_ms
        )
        return partition.append(
            batch, acks=-1, now_ms=self.now_ms, verification=verification
        ).first_offset

    def end_transaction(
        self,
        topic: str,
        *,
        committed: bool,
        producer_id: int = 7,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        version: int = 1,
    ) -> int:
        """Write a marker as a coordinator does; its offset."""
        marker = TransactionMarker(producer_id, epoch, coordinator_epoch, committed, version)
        return self.partition(topic).end_transaction(marker, now_ms=self.now_ms).last_offset

    def _send_to_controller(self, request: Message) -> "asyncio.Future[Message]":
        response: asyncio.Future[Message] = asyncio.Future()
        self.controller_requests.append((request, response))
        return response

    def run_maintenance(self, *, for_ms: int = 0) -> None:
        """Let that much time pass, doing all that falls due in it."""
        until_ms = self.now_ms + for_ms
        while True:
            delay_ms = self.partitions.run_maintenance(self.now_ms)
            if delay_ms == 0:
                continue
            if self.now_ms + delay_ms > until_ms:
                break
            self.now_ms += delay_ms
        self.now_ms = until_ms

    def folders(self, disk: int = 0) -> list[str]:
        return sorted(path.name for path in self.paths[disk].iterdir() if path.is_dir())


def id_of(topic: str) -> bytes:
    return topic.encode().ljust(16, b"\0")[:16]


def topic_records(
    name: str,
    partitions: int = 1,
    *,
    topic_id: bytes | None = None,
    replicas: tuple[int, ...] = (NODE_ID,),
    isr: tuple[int, ...] | None = None,
    leader: int = NODE_ID,
    **configs: str,
) -> list[Message]:
    """A topic with settings (`cleanup_policy="compact"`), as the controller makes it."""
    topic_id = topic_id or id_of(name)
    return [
        *(
            records.ConfigRecord(
                resource_type=2, resource_name=name, name=key.replace("_", "."), value=value
            )
            for key, value in configs.items()
        ),
        records.TopicRecord(name=name, topic_id=topic_id),
        *(
            records.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=list(replicas),
                isr=list(isr or replicas),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(15) + b"\1"] * len(replicas),
            )
            for index in range(partitions)
        ),
    ]


def registration(
    broker_id: int, *, epoch: int = 5, rack: str | None = "r1", fenced: bool = False
) -> records.RegisterBrokerRecord:
    """A broker registers with the controller."""
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        end_points=[records.BrokerEndpoint(name=LISTENER, host="here", port=9092)],
        rack=rack,
        fenced=fenced,
    )


class PendingHandler:
    """A request that is stepped by hand."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self.waits_for: Any = None
        self.is_complete = False
        self.response: Any = None
        self.resume()

    def resume(self) -> None:
        """Go on if what it waits for has come."""
        while not self.is_complete and (self.waits_for is None or self.waits_for.done()):
            try:
                self.waits_for = self._coroutine.send(None)
            except StopIteration as returned:
                self.is_complete = True
                self.response = returned.value
            else:
                if self.waits_for is not None:
                    self.waits_for._asyncio_future_blocking = False


class InlineExecutor:
    """Background work that is done at once, or held until `release`."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] | None = None

    def hold(self) -> None:
        self.held = []

    def release(self) -> None:
        held, self.held = self.held or [], None
        for work in held:
            work()

    def run_next(self) -> None:
        """Does the oldest work that is held; what it starts is held too."""
        assert self.held is not None
        self.held.pop(0)()

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        def do() -> None:
            try:
                work()
            except Exception as failure:
                done(failure)
            else:
                done(None)

        if self.held is not None:
            self.held.append(do)
        else:
            do()


class ManualTimer:
    """Alarms that `ring` triggers."""

    def __init__(self) -> None:
        self.alarms: list[tuple[int, Callable[[], object]]] = []

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> Hashable:
        alarm = (delay_ms, callback)
        self.alarms.append(alarm)
        return alarm

    def restart(self, alarm: tuple[int, Callable[[], object]], delay_ms: int) -> Hashable:
        self.cancel(alarm)
        return self.call_after(delay_ms, alarm[1])

    def cancel(self, alarm: tuple[int, Callable[[], object]]) -> None:
        if alarm in self.alarms:
            self.alarms.remove(alarm)

    def ring(self) -> None:
        for _, callback in list(self.alarms):
            callback()


def batch_of(
    *values: bytes | None,
    now_ms: int = START_MS,
    keys: tuple[bytes | None, ...] | None = None,
    **fields: Any,
) -> memoryview:
    made = [
        Record(number, now_ms, keys[number] if keys else None, value, [])
        for number, value in enumerate(values)
    ]
    return memoryview(build_batch(made, **fields))


def _over_the_wire(request: Message, version: int) -> Message:
    """As a handler gets it: read from the frame it came in."""
    frame = bytearray(request.write(version))
    message, _ = type(request).read(memoryview(frame), version)
    return message
