"""Two brokers that replicate to each other without a network: real logs, real sessions."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.replication.world import START_MS, World, registration

from barnabas.log import Log, LogSlice
from barnabas.replication import Partition
from barnabas.replication.replica_fetcher.followed_partition import PartitionFetchState
from barnabas.replication.replica_fetcher.replica_fetcher import FetchLimits, ReplicaFetcher
from barnabas.replication.throttle import ReplicationThrottle, ThrottleSide
from barnabas.server.api import list_offsets
from barnabas.server.fetching.session_cache import FetchSessionCache, SessionPartition
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 9
BROKER_EPOCH = 5
TOPIC = "orders"

LIMITS = FetchLimits(
    wait_max_ms=500,
    min_bytes=1,
    response_max_bytes=10_000,
    partition_max_bytes=1_000,
    backoff_ms=1_000,
)

LeaderResponse = FetchResponse | ListOffsetsResponse
Spoil = Callable[[FetchResponse], None]


class Leader:
    """Responds to the fetches of followers from a broker's logs; `spoil` may falsify a response."""

    def __init__(self, world: World, *, slots: int = 100) -> None:
        self.world = world
        self.sessions = FetchSessionCache(slots)
        self.spoil: Spoil | None = None
        self.requests: list[FetchRequest | ListOffsetsRequest] = []

    def respond(self, request: FetchRequest | ListOffsetsRequest) -> LeaderResponse:
        self.requests.append(request)
        if isinstance(request, ListOffsetsRequest):
            found = self.world.request(list_offsets.handle, request, LIST_OFFSETS_VERSION)
            assert isinstance(found, ListOffsetsResponse)
            return found
        request, _ = FetchRequest.read(memoryview(request.write(FETCH_VERSION)), FETCH_VERSION)
        context = self.sessions.context(request, FETCH_VERSION, self.world.now_ms)
        found = [(requested, self._read(requested, request)) for requested in context.partitions()]
        response = context.response(found, self.world.now_ms)
        if self.spoil is not None:
            self.spoil(response)
        frame = bytearray(response.write(FETCH_VERSION))
        response, _ = FetchResponse.read(memoryview(frame), FETCH_VERSION)
        return response

    def _read(self, requested: SessionPartition, request: FetchRequest) -> PartitionData:
        response = PartitionData(partition_index=requested.index, records=b"")
        replica = request.replica_state
        try:
            found = self.world.partitions.get(
                requested.topic_id, requested.index
            ).fetch_as_follower(
                replica.replica_id,
                replica.replica_epoch,
                requested.fetch_offset,
                requested.max_bytes,
                leader_epoch=requested.current_leader_epoch,
                last_fetched_epoch=requested.last_fetched_epoch,
                log_start_offset=requested.log_start_offset,
                now_ms=self.world.now_ms,
            )
        except KafkaError as error:
            response.error_code = error.code
            response.high_watermark = -1
            return response
        response.high_watermark = found.high_watermark
        response.log_start_offset = found.log_start_offset
        if isinstance(found.records, LogSlice):
            response.records = found.records.read()
        if found.diverging_epoch is not None:
            epoch, end_offset = found.diverging_epoch
            response.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return response


class Pair:
    """Brokers 1 and 2; both get the same metadata, and each can follow the other."""

    def __init__(
        self, folder: Path, *, slots: int = 100, disks: int = 1, limits: FetchLimits = LIMITS
    ) -> None:
        self.now_ms = 0
        self.worlds = {
            node_id: World(folder / f"{node_id}", node_id=node_id, disks=disks)
            for node_id in (1, 2)
        }
        for node_id, world in self.worlds.items():
            world.metadata(registration(3 - node_id))
        self.leaders = {node_id: Leader(world, slots=slots) for node_id, world in self.each()}
        self.throttles = {
            node_id: ReplicationThrottle(ThrottleSide.FOLLOWER, node_id, world.resolver)
            for node_id, world in self.each()
        }
        self.limits = limits
        self.fetchers = {node_id: self._new_fetcher(node_id) for node_id in self.worlds}
        self.leader_id = 1

    def each(self) -> Iterator[tuple[int, World]]:
        return iter(self.worlds.items())

    @property
    def follower_id(self) -> int:
        return 3 - self.leader_id

    @property
    def leader(self) -> Leader:
        return self.leaders[self.leader_id]

    @property
    def fetcher(self) -> ReplicaFetcher:
        return self.fetchers[self.follower_id]

    @property
    def led(self) -> Partition:
        return self.worlds[self.leader_id].partition(TOPIC)

    @property
    def followed(self) -> Partition:
        return self.worlds[self.follower_id].partition(TOPIC)

    def create_topic(self, partitions: int = 1, *, topic: str = TOPIC) -> None:
        for _, world in self.each():
            world.create_topic(topic, partitions, replicas=(1, 2), leader=self.leader_id)
        for index in range(partitions):
            self._follow(topic, index)

    def lead(self, leader_id: int, topic: str = TOPIC, index: int = 0) -> None:
        """A new leader epoch; the other one follows from here on."""
        for _, world in self.each():
            world.lead(topic, index, leader=leader_id, isr=(1, 2))
        partition = self.worlds[leader_id].partition(topic, index)
        self.fetchers[leader_id].remove((partition.topic_id, index))
        self.leader_id = leader_id
        self._follow(topic, index)

    def restart(self, node_id: int, *, clean: bool) -> None:
        """Stop a broker, or kill it; it begins with what its disk has."""
        self.worlds[node_id].restart(clean=clean)
        self.fetchers[node_id] = self._new_fetcher(node_id)
        self.leaders[node_id].sessions = FetchSessionCache(100)
        self.fetchers[3 - node_id].reset_connection()
        self.lead(self.leader_id)

    def append(self, *values: bytes, topic: str = TOPIC, index: int = 0) -> int:
        return self.worlds[self.leader_id].append(topic, *values, index=index, acks=1)

    def exchange(self) -> bool:
        """One request and its response; False if there is no request."""
        fetcher = self.fetcher
        request = fetcher.next_request(self.now_ms)
        if request is None:
            return False
        fetcher.on_response(self.leader.respond(request), self.now_ms)
        return True

    def settle(self, rounds: int = 60) -> None:
        """Replicate until two rounds change nothing, however long delays are."""
        still = 0
        for _ in range(rounds):
            before = self._ends()
            if self.exchange() and (self._ends() != before or self.fetcher.has_unsent_partitions):
                still = 0
                continue
            still += 1
            if still > 1 and self._is_quiet:
                return
            self.now_ms = self.fetcher.next_due_ms(self.now_ms) or self.now_ms
        raise AssertionError(f"not settled: {self.led!r}, {list(self.fetcher)}")

    @property
    def _is_quiet(self) -> bool:
        quiet = (PartitionFetchState.FETCHING, PartitionFetchState.FAILED)
        return all(followed.fetch_state in quiet for followed in self.fetcher)

    def _ends(self) -> list[tuple[int, ...]]:
        return [
            (
                log.log_end_offset,
                log.log_start_offset,
                log.latest_epoch,
                followed.partition.high_watermark,
            )
            for followed in self.fetcher
            for log in (followed.partition.log,)
        ]

    def _new_fetcher(self, node_id: int) -> ReplicaFetcher:
        return ReplicaFetcher(
            node_id,
            self.limits,
            broker_epoch=lambda: BROKER_EPOCH,
            clock=lambda: START_MS,
            throttle=self.throttles[node_id],
            on_truncated=self.worlds[node_id].partitions.replica_moves.on_truncated,
        )

    def _follow(self, topic: str, index: int) -> None:
        partition = self.worlds[self.follower_id].partition(topic, index)
        self.fetchers[self.follower_id].add(partition, partition.leader_epoch)

    def close(self) -> None:
        for _, world in self.each():
            world.partitions.close(clean=False)


def content(log: Log, offset: int = 0) -> bytes:
    """The bytes of all batches that reach an offset."""
    found = b""
    while (records := log.read(offset, 1 << 20, upto=log.log_end_offset)) is not None:
        found += records.read()
        offset = records.next_offset
    return found
