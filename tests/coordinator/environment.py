"""The environment of a coordinator in a test: a simulated clock and a log in memory."""

import os
from collections.abc import Callable
from typing import Any

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.coordinator import GroupCoordinator
from barnabas.coordinator.groups.state import GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import OnCommitted, TransactionMarker
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import DirectoryId, PartitionRegistration, TopicImage
from barnabas.server.timer import TimerQueue, TimerTask
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import assign_offset, iterate_batches, read_header
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.read import read_records

START_MS = 1_700_000_000_000


class SimulatedClock:
    """The time, and everything that is to happen at some time."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms
        self._deadlines = TimerQueue()

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> TimerTask:
        alarm = TimerTask(self.now_ms + max(delay_ms, 0), callback)
        self._deadlines.add(alarm)
        return alarm

    def restart(self, alarm: TimerTask, delay_ms: int) -> TimerTask:
        if self._deadlines.postpone(alarm, self.now_ms + max(delay_ms, 0)):
            return alarm
        self.cancel(alarm)
        return self.call_after(delay_ms, alarm.callback)

    def cancel(self, alarm: TimerTask) -> None:
        self._deadlines.remove(alarm)
        alarm.is_pending = False

    def advance(self, delay_ms: int) -> None:
        """Let time pass; what falls due meanwhile happens in order, each at its moment."""
        until_ms = self.now_ms + delay_ms
        while (due_ms := self._deadlines.next_deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for alarm in self._deadlines.pop_due(due_ms):
                if alarm.is_pending:
                    alarm.is_pending = False
                    alarm.callback()
        self.now_ms = until_ms


class MemoryLog:
    """A partition of an internal topic. `is_committing` off holds the high watermark back."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self.batches: list[bytes] = []
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.is_committing = True
        self.append_error: KafkaError | None = None
        """The error that appends fail with, if any."""
        self._waiting: list[tuple[int, OnCommitted, TimerTask]] = []

    def read(self, offset: int, max_bytes: int) -> bytes:
        chunk = b""
        for batch in self.batches:
            if read_header(batch).next_offset > offset and (not chunk or len(chunk) < max_bytes):
                chunk += batch
        return chunk

    def append(self, batch: bytearray) -> int:
        if self.append_error is not None:
            raise self.append_error
        assign_offset(batch, 0, self.end_offset, 0)
        self.batches.append(bytes(batch))
        self.end_offset = read_header(batch).next_offset
        if self.is_committing:
            self.high_watermark = self.end_offset
        return self.end_offset

    def append_marker(self, marker: TransactionMarker) -> int:
        return self.append(
            build_marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                committed=marker.committed,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp=self._clock.now_ms,
            )
        )

    @property
    def commits_at_once(self) -> bool:
        return self.is_committing and self.is_committed(self.end_offset)

    def is_committed(self, next_offset: int) -> bool:
        return next_offset <= self.high_watermark

    def when_committed(self, next_offset: int, timeout_ms: int, committed: OnCommitted) -> None:
        if next_offset <= self.high_watermark:
            committed(None)
            return
        alarm = self._clock.call_after(timeout_ms, lambda: self._expire(entry))
        entry = (next_offset, committed, alarm)
        self._waiting.append(entry)

    def commit(self, upto: int | None = None) -> None:
        """Move the high watermark on, to the end if nothing else is said."""
        self.high_watermark = self.end_offset if upto is None else upto
        ready = [entry for entry in self._waiting if entry[0] <= self.high_watermark]
        for entry in ready:
            self._waiting.remove(entry)
            self._clock.cancel(entry[2])
            entry[1](None)

    def lose_leadership(self) -> None:
        """Pending writes fail, since their outcome is unknown."""
        waiting, self._waiting = self._waiting, []
        for _, committed, alarm in waiting:
            self._clock.cancel(alarm)
            committed(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Another leads."))

    def truncate_to(self, offset: int) -> None:
        """What was not committed may be lost with its leader."""
        self.batches = [batch for batch in self.batches if read_header(batch).base_offset < offset]
        self.end_offset = read_header(self.batches[-1]).next_offset if self.batches else 0
        self.high_watermark = min(self.high_watermark, self.end_offset)

    def records(self, types: RecordTypes) -> list[CoordinatorRecord]:
        """Everything in it but markers, decoded."""
        return [
            decoded
            for batch in self.batches
            for position, header in iterate_batches(batch)
            if not header.is_control
            for record in read_records(batch, position)
            if record.key is not None
            and (decoded := types.decode(record.key, record.value)) is not None
        ]

    def _expire(self, entry: tuple[int, OnCommitted, TimerTask]) -> None:
        if entry in self._waiting:
            self._waiting.remove(entry)
            entry[1](KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Not committed in time."))


class Settings:
    """Kafka's defaults, except for the settings of a test."""

    def __init__(self, **broker: Any) -> None:
        texts = {name.replace("_", "."): str(value) for name, value in broker.items()}
        static = BrokerSettings.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@127.0.0.1:9093",
                **texts,
            }
        )
        self.groups: dict[str, dict[str, Any]] = {}
        """By group the settings that a test gives it, over the broker's."""
        self._resolver = ConfigResolver(static, {})

    def broker(self, name: str) -> Any:
        return self._resolver.broker(name)

    def group(self, group_name: str) -> dict[str, Any]:
        return {**self._resolver.group(group_name), **self.groups.get(group_name, {})}


class CoordinatorEnvironment:
    """One shard of a state machine, its log, and the time."""

    def __init__(
        self, settings: Settings | None = None, image: MetadataImage | None = None
    ) -> None:
        self.clock = SimulatedClock()
        self.settings = settings or Settings()
        self.image = image or MetadataImage()
        self.log = MemoryLog(self.clock)
        self.may_describe: Callable[[str], bool] | None = None
        self._runtime: CoordinatorRuntime[Any] | None = None
        self._epoch = 0

    def advance(self, delay_ms: int) -> None:
        self.clock.advance(delay_ms)

    def lead(
        self, topic: str, types: RecordTypes, build: Callable[[CoordinatorShard[Any]], Any]
    ) -> Any:
        """Become the leader of the one partition there is; the state, loaded from the log."""
        return self._lead(
            CoordinatorRuntime(
                topic,
                types,
                build,
                open_log=lambda _: self.log,
                context=lambda: None,
                timer_service=self.clock,
                clock=lambda: self.clock.now_ms,
                partition_count=1,
                write_timeout_ms=5_000,
            )
        )

    def _lead(self, runtime: CoordinatorRuntime[Any]) -> Any:
        if self._runtime is not None:
            self.log.lose_leadership()
            self._runtime.close()
        self._epoch += 1
        self._runtime = runtime
        self._runtime.on_election(0, self._epoch)
        while self._runtime.is_loading:
            self.advance(0)
        return self.shard.state

    def lead_groups(self) -> GroupCoordinatorState:
        """Leads a partition of `__consumer_offsets`, also if it was led before."""
        self.coordinator = GroupCoordinator(
            self.settings,
            lambda: self.image,
            open_log=lambda _: self.log,
            timer_service=self.clock,
            clock=lambda: self.clock.now_ms,
            random_bytes=os.urandom,
        )
        self.coordinator.runtime.partition_count = 1
        state: GroupCoordinatorState = self._lead(self.coordinator.runtime)
        return state

    def decide(
        self, decide: Callable[..., Any], request: Any, version: int
    ) -> PendingResponse[Any]:
        """Writes the decision of one function on a request of this version."""
        client = GroupClient("client", "/10.0.0.1", version, self.may_describe)
        return self.shard.write(
            lambda groups: decide(request, groups, self.coordinator._context(client))
        )

    @property
    def shard(self) -> CoordinatorShard[Any]:
        assert self._runtime is not None
        return self._runtime.shard(0)

    @property
    def runtime(self) -> CoordinatorRuntime[Any]:
        assert self._runtime is not None
        return self._runtime

    # Metadata

    def create_topic(self, name: str, partitions: int = 1, topic_id: bytes | None = None) -> bytes:
        """A topic with so many partitions (or more of them, if it is there); its id."""
        known = self.image.topics.by_name(name)
        topic_id = known.topic_id if known else topic_id or name.encode().ljust(16, b"\1")[:16]
        state = PartitionRegistration((1,), (1,), 1, 0, 0, (DirectoryId.UNASSIGNED,))
        topic = TopicImage(name, topic_id, dict.fromkeys(range(partitions), state))
        self.image.topics.add(topic)
        delta = MetadataDelta(
            partitions_changed={(topic_id, index): state for index in range(partitions)}
        )
        if known is None:
            delta.topics_created[topic_id] = topic
        self._publish(delta)
        return topic_id

    def delete_topic(self, name: str) -> None:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        self.image.topics.remove(topic.topic_id)
        self._publish(MetadataDelta(topics_deleted={topic.topic_id: topic}))

    def _publish(self, delta: MetadataDelta) -> None:
        if self._runtime is not None:
            self._runtime.on_metadata_update(delta, self.image)


def code_of(response: PendingResponse[Any]) -> ErrorCode:
    """Returns the error code that the client gets, from an error or from the response."""
    error = response.error
    if isinstance(error, KafkaError):
        return error.code
    return ErrorCode(response.result().error_code)
