"""The shards of one internal topic: the leader of a partition coordinates its keys."""

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import PartitionLog, TimerService
from barnabas.coordinator.records import RecordTypes
from barnabas.coordinator.shard import CoordinatorShard, CoordinatorState, not_coordinator
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_SEQUENCE

S = TypeVar("S", bound=CoordinatorState)
R = TypeVar("R")

MAX_LOAD_WAIT_MS = 2_000
"""How long a request for all keys waits while partitions are being loaded. New partitions take a
few milliseconds. After that the client gets the error and retries, as with Kafka."""

log = logging.getLogger(__name__)


class CoordinatorRuntime(Generic[S]):
    """Loads a shard when this broker becomes its leader and unloads it when it resigns."""

    def __init__(
        self,
        topic: str,
        types: RecordTypes,
        build: Callable[[CoordinatorShard[S]], S],
        *,
        context: Callable[[], Any],
        open_log: Callable[[int], PartitionLog],
        timer_service: TimerService,
        clock: Callable[[], int],
        partition_count: int,
        write_timeout_ms: int,
        base_sequence: int = NO_SEQUENCE,
    ) -> None:
        self.topic = topic
        self.partition_count = partition_count
        """As configured, until the topic exists."""
        self._types = types
        self._build = build
        self._context = context
        self._open_log = open_log
        self._timer_service = timer_service
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._base_sequence = base_sequence
        self._shards: dict[int, CoordinatorShard[S]] = {}
        self._loading: dict[CoordinatorShard[S], Iterator[None]] = {}
        self._failed: set[int] = set()
        self._waiting: dict[PendingResponse[None], Any] = {}  # their timers

    def partition_of(self, key: str) -> int:
        """Returns the partition that keeps the state of a group or a transactional id."""
        return java_hash(key) % self.partition_count

    def shard_of(self, key: str) -> CoordinatorShard[S]:
        return self.shard(self.partition_of(key))

    def shard(self, index: int) -> CoordinatorShard[S]:
        """Returns the loaded shard. Raises KafkaError if it is not led or not loaded here."""
        shard = self._shards.get(index)
        if shard is not None and not shard.is_active and not shard.is_loading:
            self._load_slice(shard)  # a short log is loaded for its first request
            shard = self._shards.get(index)
        if shard is None:
            raise not_coordinator(self.topic, index)
        if not shard.is_active:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"{self.topic}-{index} is being loaded: try again.",
            )
        return shard

    def active_shard_of(self, key: str) -> CoordinatorShard[S] | None:
        """Returns the shard if it is led and loaded here. It is not loaded for that."""
        shard = self._shards.get(self.partition_of(key))
        return shard if shard is not None and shard.is_active else None

    def active_shards(self) -> list[CoordinatorShard[S]]:
        return [shard for shard in self._shards.values() if shard.is_active]

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    @property
    def loading_count(self) -> int:
        return len(self._loading)

    @property
    def failed_count(self) -> int:
        """The number of partitions that this broker leads but could not load."""
        return len(self._failed)

    def write(self, key: str, decide: Callable[[S], CoordinatorDecision[R]]) -> PendingResponse[R]:
        """Has the shard of `key` decide. The response fails if the shard is not loaded here."""
        try:
            return self.shard_of(key).write(decide)
        except KafkaError as error:
            return PendingResponse.failed(error)

    def read(self, key: str, view: Callable[[S], R]) -> PendingResponse[R]:
        try:
            return self.shard_of(key).read(view)
        except KafkaError as error:
            return PendingResponse.failed(error)

    def when_loaded(self) -> PendingResponse[None]:
        """Completes when every partition that this broker leads is loaded. Fails with
        COORDINATOR_LOAD_IN_PROGRESS if that takes longer than MAX_LOAD_WAIT_MS."""
        if not self._loading:
            return PendingResponse.completed(None)
        response: PendingResponse[None] = PendingResponse()

        def on_timeout() -> None:
            del self._waiting[response]
            response.fail(
                KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    f"{len(self._loading)} partitions of {self.topic} are being loaded: try again.",
                )
            )

        self._waiting[response] = self._timer_service.call_after(MAX_LOAD_WAIT_MS, on_timeout)
        return response

    def on_election(self, index: int, epoch: int) -> None:
        """This broker leads the partition from `epoch` on: load its log."""
        shard = self._shards.get(index)
        if shard is not None and shard.epoch == epoch:
            return
        self._unload(index)
        shard = self._shards[index] = CoordinatorShard(
            self.topic,
            index,
            epoch,
            self._open_log,
            self._types,
            self._build,
            self._context,
            self._timer_service,
            self._clock,
            self._write_timeout_ms,
            self._base_sequence,
        )
        self._loading[shard] = shard.load()
        if len(self._loading) == 1:
            self._timer_service.call_after(0, self._load_next)

    def on_resignation(self, index: int) -> None:
        self._unload(index)
        self._end_wait()

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Passes the update to all shards. Elections are reported separately."""
        topic = image.topics.by_name(self.topic)
        if topic is not None:
            self.partition_count = len(topic.partitions)
        for shard in self._shards.values():
            shard.on_metadata_update(delta, image)

    def close(self) -> None:
        for index in list(self._shards):
            self.on_resignation(index)

    def _unload(self, index: int) -> None:
        self._failed.discard(index)
        shard = self._shards.pop(index, None)
        if shard is not None:
            self._loading.pop(shard, None)
            shard.unload()

    def _load_next(self) -> None:
        """Loads one shard after the other, a slice at a time, so that requests run in between."""
        if self._loading:
            self._load_slice(next(iter(self._loading)))
            self._timer_service.call_after(0, self._load_next)

    def _load_slice(self, shard: CoordinatorShard[S]) -> None:
        try:
            next(self._loading[shard])
        except StopIteration:
            del self._loading[shard]
            self._end_wait()
        except Exception:
            log.exception("%s cannot be loaded; its keys have no coordinator here", shard)
            self.on_resignation(shard.index)
            self._failed.add(shard.index)

    def _end_wait(self) -> None:
        """Completes the responses that wait, if nothing is being loaded any more."""
        if self._loading:
            return
        waiting, self._waiting = self._waiting, {}
        for response, timer in waiting.items():
            self._timer_service.cancel(timer)
            response.complete(None)


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """Returns Java's `String.hashCode`, without its sign as Kafka takes it."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (value * 31 + unit) & 0xFFFFFFFF
    if value >= 1 << 31:
        value = (1 << 32) - value
    return 0 if value == 1 << 31 else value
