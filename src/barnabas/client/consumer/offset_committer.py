"""Committing what was consumed: when the user asks for it, and by itself."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.cluster import Deadline
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.consumer.user_events import CallbackEvent
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import TopicPartition, TopicPartitionTuple


class OffsetCommitter:
    """Stored offsets on their way to the group."""

    def __init__(
        self,
        group: ConsumerCoordinator | None,
        settings: ConsumerSettings,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
        inbox: FetchBuffer,
    ) -> None:
        self._group = group
        self._settings = settings
        self._assignment = assignment
        self._inbox = inbox
        self._is_automatic = settings.enable_auto_commit and group is not None
        self._timer: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    def start_auto_commit(self) -> None:
        """Commit every auto.commit.interval.ms from now on."""
        if self._is_automatic and self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._commit_regularly())

    async def close(self) -> None:
        """Wait for what is under way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Storing

    def store(self, offsets: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Keep these for the next commit; each comes back with its error, if it has one."""
        if self._settings.enable_auto_offset_store:
            fail(
                KafkaError._INVALID_ARG,
                "StoreOffsets failed: enable.auto.offset.store must be false to store by hand",
            )
        stored = []
        for place in offsets:
            answer = TopicPartition(
                place.topic, place.partition, place.offset, place.metadata, place.leader_epoch
            )
            each = self._assignment.get((place.topic, place.partition))
            if each is None:
                answer.error = KafkaError(KafkaError._STATE, "the partition is not assigned")
            else:
                each.stored_offset = answer
            stored.append(answer)
        if stored and all(each.error is not None for each in stored):
            raise KafkaException(stored[0].error)
        return stored

    def stored_offset(self, each: TopicPartitionState) -> TopicPartition | None:
        """What a commit without arguments commits of a partition."""
        return (
            each.offset_to_commit()
            if self._settings.enable_auto_offset_store
            else each.stored_offset
        )

    # Committing

    def uncommitted_offsets(self) -> list[TopicPartition]:
        """What is stored and not committed yet."""
        return self._due(self._assignment.values())

    async def commit(
        self, offsets: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        """Commit these; each comes back with its error, if it has one."""
        if self._group is None:
            fail(KafkaError._UNKNOWN_GROUP, "commit() needs a group.id")
        offsets = [each for each in offsets if each.offset >= 0]
        if not offsets:
            fail(KafkaError._NO_OFFSET, "Commit failed: no offset is stored")
        wanted = {(each.topic, each.partition): each for each in offsets}
        errors = await self._group.commit(wanted, deadline=Deadline.after(timeout_ms))
        answers = []
        for key, each in wanted.items():
            answer = TopicPartition(*key, each.offset, each.metadata, each.leader_epoch)
            answer.error = errors.get(key)
            assigned = self._assignment.get(key)
            if answer.error is None and assigned is not None:
                assigned.committed_offset = each.offset
            answers.append(answer)
        return answers

    def commit_async(self, offsets: Sequence[TopicPartition]) -> None:
        """Commit these and call on_commit with what came of it."""
        self._start(offsets)

    async def auto_commit(self, partitions: Iterable[TopicPartitionState]) -> None:
        """What is consumed of partitions that are given up, if that is wanted."""
        due = self._due(partitions) if self._is_automatic else []
        if due:
            await self._start(due)

    def _due(self, partitions: Iterable[TopicPartitionState]) -> list[TopicPartition]:
        stored = ((each, self.stored_offset(each)) for each in partitions)
        return [
            place
            for each, place in stored
            if place is not None and place.offset != each.committed_offset
        ]

    def _start(self, offsets: Sequence[TopicPartition]) -> "asyncio.Task[object]":
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(
            self._commit_and_tell(offsets)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _commit_and_tell(self, offsets: Sequence[TopicPartition]) -> None:
        error: KafkaError | None = None
        answers = list(offsets)
        try:
            answers = await self.commit(offsets, self._settings.default_api_timeout_ms)
        except KafkaException as failure:
            error = failure.args[0]
        else:
            error = next((each.error for each in answers if each.error is not None), None)
        if self._settings.on_commit is not None:
            self._inbox.put_event(CallbackEvent(self._settings.on_commit, (error, answers)))

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._settings.auto_commit_interval_ms / 1000)
            due = self.uncommitted_offsets()
            if due:
                await self._start(due)
