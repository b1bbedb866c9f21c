"""Finds out where partitions are to be read from, whenever that is not known (see `assigned.py`).

Each question is asked for all partitions at once that have it. An answer that comes after the
partition was sought elsewhere, or given up, counts for nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from barnabas.client.cluster import Backoff, Cluster, Deadline
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.offset_lookup import OffsetAndTimestamp, OffsetLookup, OffsetResults
from barnabas.client.consumer.subscription_state import (
    LATEST_TIMESTAMP,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import TopicPartitionTuple

Told = Callable[[TopicPartitionState, KafkaError], None]


class PositionUpdater:
    """Asks what is to be asked; calls `settled` when partitions can be fetched."""

    def __init__(
        self,
        cluster: Cluster,
        group: ConsumerCoordinator | None,
        offsets: OffsetLookup,
        settings: ConsumerSettings,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
        told: Told,
        settled: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._offsets = offsets
        self._settings = settings
        self._assignment = assignment
        self._told = told
        self._settled = settled
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._tasks: set[asyncio.Task[None]] = set()

    def update(self) -> None:
        """Ask for everything that has to be known and is not asked for yet."""
        for state, ask in (
            (FetchState.INITIALIZING, self._ask_group),
            (FetchState.AWAIT_RESET, self._search),
            (FetchState.AWAIT_VALIDATION, self._validate),
        ):
            asked = {
                each: each.progress.version
                for each in self._assignment.values()
                if each.state is state and each.pending_version != each.progress.version
            }
            for each, version in asked.items():
                each.pending_version = version
            if asked:
                self._start(self._until_answered(asked, ask))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, asking: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(asking)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_answered(
        self,
        asked: Mapping[TopicPartitionState, int],
        ask: Callable[
            [Mapping[TopicPartitionTuple, TopicPartitionState]], Coroutine[Any, Any, bool]
        ],
    ) -> None:
        """Ask once, and again after a pause for those that have not got an answer."""
        is_answered = await ask({each.key: each for each in asked})
        for each, version in asked.items():
            if each.pending_version == version:
                each.pending_version = None
        if is_answered:
            self._backoff.reset()
        else:
            await asyncio.sleep(self._backoff.next_ms() / 1000)
        self.update()
        self._settled()

    # The three questions. Each says whether there was an answer for all.

    async def _ask_group(self, asked: Mapping[TopicPartitionTuple, TopicPartitionState]) -> bool:
        versions = _versions(asked)
        if self._group is None:
            for each in asked.values():
                self._start_over(each, KafkaError._NO_OFFSET, "no offset is stored")
            return True
        deadline = Deadline.after(self._settings.request_timeout_ms)
        try:
            committed = await self._group.committed(asked.keys(), deadline=deadline)
        except KafkaException as failure:
            if not failure.args[0].retriable():
                for each in _current(asked, versions):
                    self._told(each, failure.args[0])
            return False
        is_answered = True
        for each in _current(asked, versions):
            answer = committed[each.key]
            if answer.error is not None:
                is_answered = False
                if not answer.error.retriable():
                    self._told(each, answer.error)
            elif answer.offset >= 0:
                each.committed_offset = answer.offset
                epoch = answer.leader_epoch
                each.set_position(answer.offset, -1 if epoch is None else epoch)
            else:
                self._start_over(each, KafkaError._NO_OFFSET, "the group has committed no offset")
        return is_answered

    async def _search(self, asked: Mapping[TopicPartitionTuple, TopicPartitionState]) -> bool:
        versions = _versions(asked)
        wanted = {key: each.reset_timestamp for key, each in asked.items()}
        answers = await self._offsets.list_offsets(wanted, self._deadline())
        nothing_so_late = {
            key: LATEST_TIMESTAMP
            for key, answer in answers.items()
            if isinstance(answer, OffsetAndTimestamp) and answer.offset < 0 and wanted[key] >= 0
        }
        if nothing_so_late:
            answers |= await self._offsets.list_offsets(nothing_so_late, self._deadline())
        return self._take(
            asked, versions, answers, lambda each, found: each.set_position(found.offset)
        )

    async def _validate(self, asked: Mapping[TopicPartitionTuple, TopicPartitionState]) -> bool:
        versions = _versions(asked)
        epochs = {key: each.fetch_epoch for key, each in asked.items()}
        answers = await self._offsets.offsets_for_leader_epochs(epochs, self._deadline())
        return self._take(asked, versions, answers, self._validated)

    def _validated(self, each: TopicPartitionState, end: OffsetAndTimestamp) -> None:
        each.state = FetchState.FETCHING
        leader = self._cluster.metadata.leader(*each.key)
        each.leader_epoch = -1 if leader is None else leader.leader_epoch
        if end.offset < 0 or end.leader_epoch < 0:
            self._start_over(each, KafkaError._LOG_TRUNCATION, "the log before it is gone")
        elif end.offset < each.fetch_offset:
            truncated = (
                f"the log was truncated to offset {end.offset} in epoch {end.leader_epoch}, "
                f"before offset {each.fetch_offset}"
            )
            if each.reset_strategy.timestamp(0) is None:
                self._start_over(each, KafkaError._LOG_TRUNCATION, truncated)
            else:
                each.seek(end.offset)  # what comes from there on is new

    # Answers

    def _take(
        self,
        asked: Mapping[TopicPartitionTuple, TopicPartitionState],
        versions: Mapping[TopicPartitionTuple, int],
        answers: OffsetResults,
        found: Callable[[TopicPartitionState, OffsetAndTimestamp], None],
    ) -> bool:
        is_answered = True
        for each in _current(asked, versions):
            answer = answers[each.key]
            if isinstance(answer, KafkaError):
                is_answered = False
                if not answer.retriable() or answer == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self._told(each, answer)
            else:
                found(each, answer)
        return is_answered

    def _start_over(self, each: TopicPartitionState, code: int, why: str) -> None:
        if not each.request_reset():
            is_truncated = code == KafkaError._LOG_TRUNCATION
            told = code if is_truncated else KafkaError._AUTO_OFFSET_RESET
            self._told(each, KafkaError(told, f"{why}, and auto.offset.reset is none"))

    def _deadline(self) -> Deadline:
        return Deadline.after(self._settings.request_timeout_ms)


def _versions(
    asked: Mapping[TopicPartitionTuple, TopicPartitionState],
) -> dict[TopicPartitionTuple, int]:
    return {key: each.progress.version for key, each in asked.items()}


def _current(
    asked: Mapping[TopicPartitionTuple, TopicPartitionState],
    versions: Mapping[TopicPartitionTuple, int],
) -> list[TopicPartitionState]:
    """Those that still are where they were when they were asked for."""
    return [each for key, each in asked.items() if each.progress.version == versions[key]]
