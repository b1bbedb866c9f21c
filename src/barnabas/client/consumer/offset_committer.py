"""Commits consumed offsets: on request, and automatically (enable.auto.commit)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.cluster import Deadline
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.consumer.user_events import CallbackEvent
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey, TopicPartition


class OffsetCommitter:
    """Stores offsets of the assigned partitions and commits them for the group."""

    def __init__(
        self,
        coordinator: ConsumerCoordinator | None,
        settings: ConsumerSettings,
        assignment: Mapping[PartitionKey, TopicPartitionState],
        buffer: FetchBuffer,
    ) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._assignment = assignment
        self._buffer = buffer
        self._auto_commits = settings.enable_auto_commit and coordinator is not None
        self._timer: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    def start_auto_commit(self) -> None:
        """Commits every auto.commit.interval.ms from now on, if auto commit is enabled."""
        if self._auto_commits and self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._commit_periodically())

    async def close(self) -> None:
        """Waits for commits in progress."""
        if self._timer is not None:
            self._timer.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Storing

    def store(self, offsets: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Stores offsets for the next commit, and returns them with their errors."""
        if self._settings.enable_auto_offset_store:
            fail(
                KafkaError._INVALID_ARG,
                "StoreOffsets failed: enable.auto.offset.store must be false to store by hand",
            )
        stored = []
        for partition in offsets:
            stored_offset = TopicPartition(
                partition.topic,
                partition.partition,
                partition.offset,
                partition.metadata,
                partition.leader_epoch,
            )
            state = self._assignment.get((partition.topic, partition.partition))
            if state is None:
                stored_offset.error = KafkaError(KafkaError._STATE, "the partition is not assigned")
            else:
                state.stored_offset = stored_offset
            stored.append(stored_offset)
        if stored and all(offset.error is not None for offset in stored):
            raise KafkaException(stored[0].error)
        return stored

    def stored_offset(self, state: TopicPartitionState) -> TopicPartition | None:
        """Returns the offset of a partition that a commit without arguments commits."""
        return (
            state.offset_to_commit()
            if self._settings.enable_auto_offset_store
            else state.stored_offset
        )

    # Committing

    def uncommitted_offsets(self) -> list[TopicPartition]:
        """Returns the stored offsets that are not committed yet."""
        return self._uncommitted(self._assignment.values())

    async def commit(
        self, offsets: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        """Commits offsets, and returns them with their errors."""
        if self._coordinator is None:
            fail(KafkaError._UNKNOWN_GROUP, "commit() writes the offsets of a group: set group.id")
        offsets = [partition for partition in offsets if partition.offset >= 0]
        if not offsets:
            fail(KafkaError._NO_OFFSET, "Commit failed: no offset is stored since the last commit")
        to_commit = {(partition.topic, partition.partition): partition for partition in offsets}
        errors = await self._coordinator.commit(to_commit, deadline=Deadline.after(timeout_ms))
        results = []
        for key, partition in to_commit.items():
            result = TopicPartition(
                *key, partition.offset, partition.metadata, partition.leader_epoch
            )
            result.error = errors.get(key)
            state = self._assignment.get(key)
            if result.error is None and state is not None:
                state.committed_offset = partition.offset
            results.append(result)
        return results

    def commit_async(self, offsets: Sequence[TopicPartition]) -> None:
        """Commits offsets in the background, and calls on_commit with the outcome."""
        self._start(offsets)

    async def auto_commit(self, partitions: Iterable[TopicPartitionState]) -> None:
        """Commits the offsets of partitions to be unassigned, if auto commit is enabled."""
        due = self._uncommitted(partitions) if self._auto_commits else []
        if due:
            await self._start(due)

    def _uncommitted(self, partitions: Iterable[TopicPartitionState]) -> list[TopicPartition]:
        stored = ((state, self.stored_offset(state)) for state in partitions)
        return [
            offset
            for state, offset in stored
            if offset is not None and offset.offset != state.committed_offset
        ]

    def _start(self, offsets: Sequence[TopicPartition]) -> "asyncio.Task[object]":
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(
            self._commit_and_notify(offsets)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _commit_and_notify(self, offsets: Sequence[TopicPartition]) -> None:
        error: KafkaError | None = None
        results = list(offsets)
        try:
            results = await self.commit(offsets, self._settings.default_api_timeout_ms)
        except KafkaException as failure:
            error = failure.args[0]
        else:
            error = first_error(results)
        if self._settings.on_commit is not None:
            self._buffer.put_event(CallbackEvent(self._settings.on_commit, (error, results)))

    async def _commit_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._settings.auto_commit_interval_ms / 1000)
            due = self.uncommitted_offsets()
            if due:
                await self._start(due)


def first_error(offsets: Iterable[TopicPartition]) -> KafkaError | None:
    return next((offset.error for offset in offsets if offset.error is not None), None)
