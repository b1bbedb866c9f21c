"""Brokers that replicate one partition, stepped by hand: no network, and a controller at will."""

import asyncio
from pathlib import Path
from typing import Any

from tests.replication.world import START_MS, World, batch_of, registration, topic_records

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.alter_partition import (
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records
from barnabas.wire.schema import Message

TOPIC = "orders"
EPOCH = 5
"""The first broker epoch of every broker."""


class Cluster:
    """Each broker has its own disk and hears the metadata while it is up."""

    def __init__(self, folder: Path, *broker_ids: int, **settings: str) -> None:
        self.now_ms = START_MS
        self.worlds = {
            broker_id: World(folder / str(broker_id), node_id=broker_id, **settings)
            for broker_id in broker_ids
        }
        self.image = MetadataImage()
        """What the controller has committed."""
        self.down: set[int] = set()
        self.missed_metadata: dict[int, list[Message]] = {}
        """The records that a broker has missed while it is down or gets no metadata."""
        self.commit_metadata(*(registration(broker_id, epoch=EPOCH) for broker_id in broker_ids))

    # What the controller does

    def commit_metadata(self, *changes: Message) -> None:
        """Commits records, and applies them on every broker that gets metadata."""
        for record in changes:
            self.image.apply(record, MetadataDelta())
        for broker_id, world in self.worlds.items():
            if broker_id in self.missed_metadata:
                self.missed_metadata[broker_id] += changes
            else:
                world.metadata(*changes)

    def create_topic(self, **made: Any) -> None:
        made = {"replicas": tuple(self.worlds), **made}
        self.commit_metadata(*topic_records(TOPIC, **made))

    def elect(self, leader: int, *, isr: tuple[int, ...] | None = None) -> None:
        """A new leader epoch."""
        self.change(leader=leader, isr=list(isr) if isr is not None else None)

    def change(self, **fields: Any) -> None:
        """Change the partition; that is a new partition epoch, at least."""
        topic_id = TOPIC.encode().ljust(16, b"\0")
        self.commit_metadata(
            records.PartitionChangeRecord(topic_id=topic_id, partition_id=0, **fields)
        )

    def submitted_isrs(self) -> list[tuple[int, ...]]:
        """The ISRs in the requests to which the controller has not responded."""
        return [
            tuple(each.broker_id for each in requested.new_isr_with_epochs)
            for world in self.worlds.values()
            for request, response in world.controller_requests
            if not response.done()
            for topic in request.topics
            for requested in topic.partitions
        ]

    def respond(self, error: ErrorCode = ErrorCode.NONE, *, is_lost: bool = False) -> None:
        """Responds to all requests, by applying them or with an error; the responses may be
        lost."""
        for world in self.worlds.values():
            requests, world.controller_requests = world.controller_requests, []
            for request, response in requests:
                (topic,) = request.topics
                (requested,) = topic.partitions
                outcome = ResponsePartitionData(error_code=error)
                if not error:
                    outcome = self._alter(request.broker_id, requested)
                if is_lost:
                    response.set_exception(ConnectionResetError())
                    continue
                outcome.partition_index = requested.partition_index
                response_topic = ResponseTopicData(topic_id=topic.topic_id, partitions=[outcome])
                response.set_result(AlterPartitionResponse(topics=[response_topic]))
        run_callbacks()

    def _alter(self, leader: int, requested: RequestPartitionData) -> ResponsePartitionData:
        state = self.state
        if requested.leader_epoch != state.leader_epoch:
            return ResponsePartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
        if requested.partition_epoch != state.partition_epoch or state.leader != leader:
            return ResponsePartitionData(error_code=ErrorCode.INVALID_UPDATE_VERSION)
        isr = [each.broker_id for each in requested.new_isr_with_epochs]
        if any(broker_id in self.down for broker_id in isr):
            return ResponsePartitionData(error_code=ErrorCode.INELIGIBLE_REPLICA)
        self.change(isr=isr)
        return ResponsePartitionData(
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            isr=isr,
            partition_epoch=state.partition_epoch + 1,
        )

    @property
    def state(self) -> PartitionRegistration:
        """The partition as the metadata has it."""
        topic = self.image.topics.by_name(TOPIC)
        assert topic is not None
        return topic.partitions[0]

    # Lives and deaths

    def kill(self, broker_id: int) -> None:
        """Without a chance to write anything down."""
        self.stop_metadata(broker_id)
        self.down.add(broker_id)
        self.worlds[broker_id].partitions.close(clean=False)

    def restart(self, broker_id: int) -> None:
        self.down.discard(broker_id)
        self.worlds[broker_id].start()
        self.resume_metadata(broker_id)

    def stop_metadata(self, broker_id: int) -> None:
        """Lets a broker continue without metadata from the controller."""
        self.missed_metadata.setdefault(broker_id, [])

    def resume_metadata(self, broker_id: int) -> None:
        missed = self.missed_metadata.pop(broker_id, [])
        if missed:
            self.worlds[broker_id].metadata(*missed)

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for world in self.worlds.values():
            world.now_ms = self.now_ms

    # What brokers do

    def __getitem__(self, broker_id: int) -> Partition:
        return self.worlds[broker_id].partition(TOPIC)

    @property
    def leader(self) -> Partition:
        return self[self.state.leader]

    def append(self, *values: bytes, acks: int = -1, by: int | None = None) -> int:
        """Append to a leader; the offset at which the append ends."""
        partition = self.leader if by is None else self[by]
        batch = batch_of(*values, now_ms=self.now_ms)
        return partition.append(batch, acks=acks, now_ms=self.now_ms).last_offset + 1

    def shrink_isr(self, broker_id: int) -> None:
        """Submits an ISR without lagging followers, if the broker leads."""
        leader_state = self[broker_id].leader_state
        if leader_state is not None:
            leader_state.shrink_isr(self.now_ms)

    def fetch(self, follower_id: int, *, is_lost: bool = False) -> ErrorCode:
        """One fetch of a follower from its leader according to its metadata; the response may be
        lost."""
        follower = self[follower_id]
        assert follower.state is not None
        log, leader = follower.log, self[follower.state.leader]
        try:
            found = leader.fetch_as_follower(
                follower_id,
                EPOCH,
                log.log_end_offset,
                1 << 20,
                leader_epoch=follower.leader_epoch,
                last_fetched_epoch=log.latest_epoch,
                log_start_offset=log.log_start_offset,
                now_ms=self.now_ms,
            )
        except KafkaError as error:
            return error.code
        if is_lost:
            return ErrorCode.NONE
        leader_offsets = {
            "leader_high_watermark": found.high_watermark,
            "leader_log_start_offset": found.log_start_offset,
        }
        if found.diverging_epoch is not None:
            epoch, end_offset = log.epoch_end_offset(found.diverging_epoch.epoch)
            ends = [found.diverging_epoch.end_offset, *([end_offset] if epoch >= 0 else [])]
            follower.follower.truncate_to(min(ends))
        elif found.records is not None:
            sent = memoryview(found.records.read())
            follower.follower.append(sent, now_ms=self.now_ms, **leader_offsets)
        else:
            follower.follower.update_offsets(**leader_offsets)
        return ErrorCode.NONE

    def fetch_all(self, *follower_ids: int) -> None:
        """Until they have everything and know that it counts."""
        for _ in range(4):
            for follower_id in follower_ids:
                assert self.fetch(follower_id) == ErrorCode.NONE


def contents(partition: Partition, *, upto: int | None = None) -> list[tuple[int, bytes | None]]:
    """The leader epoch and the value of every record in a log."""
    log = partition.log
    upto = log.log_end_offset if upto is None else upto
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while offset < upto:
        slice_ = log.read(offset, 1 << 20, upto=log.log_end_offset)
        assert slice_ is not None
        batches = slice_.read()
        for position, header in iterate_batches(batches):
            batch = batches[position : position + header.size_bytes]
            for record in read_records(batch):
                if offset <= record.offset < upto:
                    found.append((header.leader_epoch, record.value))
        offset = slice_.next_offset
    return found


def run_callbacks() -> None:
    """Runs the callbacks of completed futures."""
    loop = asyncio.get_event_loop_policy().get_event_loop()
    for _ in range(3):
        loop.run_until_complete(asyncio.sleep(0))
