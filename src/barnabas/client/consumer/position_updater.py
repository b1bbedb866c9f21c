"""Finds the fetch positions of partitions that have none (see `subscription_state.py`).

One request is about all partitions that need it. A result for a partition that was sought or
unassigned meanwhile is ignored.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from barnabas.client.cluster import Backoff, ClusterClient, Deadline
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.offset_lookup import OffsetAndTimestamp, OffsetLookup, OffsetResults
from barnabas.client.consumer.subscription_state import (
    LATEST_TIMESTAMP,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey

ReportError = Callable[[TopicPartitionState, KafkaError], None]


class PositionUpdater:
    """Requests positions, and calls `on_updated` when partitions can be fetched."""

    def __init__(
        self,
        cluster: ClusterClient,
        coordinator: ConsumerCoordinator | None,
        offsets: OffsetLookup,
        settings: ConsumerSettings,
        assignment: Mapping[PartitionKey, TopicPartitionState],
        report: ReportError,
        on_updated: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._offsets = offsets
        self._settings = settings
        self._assignment = assignment
        self._report = report
        self._on_updated = on_updated
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._tasks: set[asyncio.Task[None]] = set()

    def update(self) -> None:
        """Requests the positions that are unknown and not requested yet."""
        for state, update in (
            (FetchState.INITIALIZING, self._fetch_committed),
            (FetchState.AWAIT_RESET, self._reset),
            (FetchState.AWAIT_VALIDATION, self._validate),
        ):
            pending = {
                partition: partition.progress.version
                for partition in self._assignment.values()
                if partition.state is state
                and partition.pending_version != partition.progress.version
            }
            for partition, version in pending.items():
                partition.pending_version = version
            if pending:
                self._start(self._update_until_complete(pending, update))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, update: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(update)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _update_until_complete(
        self,
        pending: Mapping[TopicPartitionState, int],
        update: Callable[[Mapping[PartitionKey, TopicPartitionState]], Coroutine[Any, Any, bool]],
    ) -> None:
        """Requests once, and after a backoff again for partitions with an error."""
        is_complete = await update({partition.key: partition for partition in pending})
        for partition, version in pending.items():
            if partition.pending_version == version:
                partition.pending_version = None
        if is_complete:
            self._backoff.reset()
        else:
            await asyncio.sleep(self._backoff.next_ms() / 1000)
        self.update()
        self._on_updated()

    # Updates by state. Each returns whether no partition has an error.

    async def _fetch_committed(
        self, partitions: Mapping[PartitionKey, TopicPartitionState]
    ) -> bool:
        versions = _versions(partitions)
        if self._coordinator is None:
            for partition in partitions.values():
                self._request_reset(partition, KafkaError._NO_OFFSET, "no offset is stored")
            return True
        deadline = Deadline.after(self._settings.request_timeout_ms)
        try:
            committed = await self._coordinator.committed(partitions.keys(), deadline=deadline)
        except KafkaException as failure:
            if not failure.args[0].retriable():
                for partition in _current(partitions, versions):
                    self._report(partition, failure.args[0])
            return False
        is_complete = True
        for partition in _current(partitions, versions):
            offset = committed[partition.key]
            if offset.error is not None:
                is_complete = False
                if not offset.error.retriable():
                    self._report(partition, offset.error)
            elif offset.offset >= 0:
                partition.committed_offset = offset.offset
                epoch = offset.leader_epoch
                partition.set_position(offset.offset, -1 if epoch is None else epoch)
            else:
                self._request_reset(
                    partition, KafkaError._NO_OFFSET, "the group has committed no offset"
                )
        return is_complete

    async def _reset(self, partitions: Mapping[PartitionKey, TopicPartitionState]) -> bool:
        versions = _versions(partitions)
        timestamps = {key: partition.reset_timestamp for key, partition in partitions.items()}
        results = await self._offsets.list_offsets(timestamps, self._deadline())
        without_record = {
            key: LATEST_TIMESTAMP
            for key, result in results.items()
            if isinstance(result, OffsetAndTimestamp) and result.offset < 0 and timestamps[key] >= 0
        }
        if without_record:
            results |= await self._offsets.list_offsets(without_record, self._deadline())
        return self._apply(
            partitions,
            versions,
            results,
            lambda partition, found: partition.set_position(found.offset),
        )

    async def _validate(self, partitions: Mapping[PartitionKey, TopicPartitionState]) -> bool:
        versions = _versions(partitions)
        epochs = {key: partition.fetch_epoch for key, partition in partitions.items()}
        results = await self._offsets.offsets_for_leader_epochs(epochs, self._deadline())
        return self._apply(partitions, versions, results, self._validated)

    def _validated(self, partition: TopicPartitionState, end: OffsetAndTimestamp) -> None:
        partition.state = FetchState.FETCHING
        leader = self._cluster.metadata.leader(*partition.key)
        partition.leader_epoch = -1 if leader is None else leader.leader_epoch
        if end.offset < 0 or end.leader_epoch < 0:
            self._request_reset(partition, KafkaError._LOG_TRUNCATION, "the log before it is gone")
        elif end.offset < partition.fetch_offset:
            truncated = (
                f"the log was truncated to offset {end.offset} in epoch {end.leader_epoch}, "
                f"before offset {partition.fetch_offset}"
            )
            if partition.reset_strategy.timestamp(0) is None:
                self._request_reset(partition, KafkaError._LOG_TRUNCATION, truncated)
            else:
                partition.seek(end.offset)  # records from there on are new

    # Results

    def _apply(
        self,
        partitions: Mapping[PartitionKey, TopicPartitionState],
        versions: Mapping[PartitionKey, int],
        results: OffsetResults,
        on_found: Callable[[TopicPartitionState, OffsetAndTimestamp], None],
    ) -> bool:
        is_complete = True
        for partition in _current(partitions, versions):
            result = results[partition.key]
            if isinstance(result, KafkaError):
                is_complete = False
                if not result.retriable() or result == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self._report(partition, result)
            else:
                on_found(partition, result)
        return is_complete

    def _request_reset(self, partition: TopicPartitionState, code: int, why: str) -> None:
        if not partition.request_reset():
            is_truncated = code == KafkaError._LOG_TRUNCATION
            reported_code = code if is_truncated else KafkaError._AUTO_OFFSET_RESET
            self._report(
                partition, KafkaError(reported_code, f"{why}, and auto.offset.reset is none")
            )

    def _deadline(self) -> Deadline:
        return Deadline.after(self._settings.request_timeout_ms)


def _versions(partitions: Mapping[PartitionKey, TopicPartitionState]) -> dict[PartitionKey, int]:
    return {key: partition.progress.version for key, partition in partitions.items()}


def _current(
    partitions: Mapping[PartitionKey, TopicPartitionState], versions: Mapping[PartitionKey, int]
) -> list[TopicPartitionState]:
    """Returns the partitions that were not sought or unassigned since the request."""
    return [
        partition
        for key, partition in partitions.items()
        if partition.progress.version == versions[key]
    ]
