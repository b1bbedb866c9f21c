"""The core of a consumer: joins assignment, fetching, positions, commits and the group.

It runs on one event loop. The facades `Consumer` and `AioConsumer` call it there, and take
messages and events from the fetch buffer.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence

from barnabas.client.cluster import ClusterClient, MetadataSnapshot
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.metrics import ConsumerMetrics, ConsumerStatistics
from barnabas.client.consumer.offset_committer import OffsetCommitter
from barnabas.client.consumer.offset_lookup import OffsetLookup
from barnabas.client.consumer.position_updater import PositionUpdater
from barnabas.client.consumer.subscription_state import AutoOffsetResetStrategy, TopicPartitionState
from barnabas.client.consumer.user_events import RebalanceEvent, RebalanceType, UserEvents
from barnabas.client.errors import KafkaError, client_log, fail
from barnabas.client.metrics import Metrics
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey, TopicPartition
from barnabas.wire.errors import ErrorCode

_CHECKS_PER_POLL_INTERVAL = 10


class ConsumerCore:
    """A consumer without its facade; it is the `RebalanceListener` of its group."""

    def __init__(self, settings: ConsumerSettings, poller: Poller, buffer: FetchBuffer) -> None:
        self.settings = settings
        self.assignment: dict[PartitionKey, TopicPartitionState] = {}
        self._events = UserEvents(settings, buffer)
        self.cluster = ClusterClient(settings, self._events.on_connection_error)
        self.coordinator = (
            ConsumerCoordinator(self.cluster, settings, self) if settings.group_id else None
        )
        self.offset_lookup = OffsetLookup(self.cluster, settings)
        self.offset_committer = OffsetCommitter(self.coordinator, settings, self.assignment, buffer)
        self._poller = poller
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._reset = AutoOffsetResetStrategy(settings.auto_offset_reset)
        self._fetcher = Fetcher(
            self.cluster,
            settings,
            self.assignment,
            buffer,
            on_position_unknown=self._on_position_unknown,
            error_to_report=self._events.error_to_report,
            on_throttled=self._on_throttled,
        )
        self._position_updater = PositionUpdater(
            self.cluster,
            self.coordinator,
            self.offset_lookup,
            settings,
            self.assignment,
            self._events.report_for,
            self._fetcher.send_fetches,
        )
        self.current_rebalance: RebalanceEvent | None = None  # whose callback runs
        self.is_user_waiting = False  # the user waits in poll
        self._last_poll_count = 0
        self._is_subscribed = False
        self._has_topics = False  # from the first subscription or assignment on
        self._is_unreferenced = False
        buffer.on_space_freed = self._on_space_freed
        self.cluster.add_listener(self._on_metadata)
        self._poll_check: asyncio.TimerHandle | None = None
        self._check_user_polls()
        self._statistics = ConsumerStatistics(
            settings, self.cluster, self.assignment, self.offset_committer, self._events
        )
        self._metrics = ConsumerMetrics(settings, self.cluster, self.assignment)

    async def close(self) -> None:
        """Commits offsets if auto commit is enabled, leaves the group and disconnects."""
        self._statistics.close()
        if self._poll_check is not None:
            self._poll_check.cancel()
        try:
            if self.coordinator is not None:
                await self.coordinator.close()
            await self.remove(list(self.assignment))
            await self.offset_committer.close()
        finally:
            self._position_updater.close()
            self._fetcher.close()
            await self.cluster.close()

    async def abandon(self) -> None:
        """Closes a consumer that the user has dropped: no callback can run any more."""
        self._is_unreferenced = True
        for event in self._buffer.take_events():
            if isinstance(event, RebalanceEvent):
                await self.end_rebalance(event)
        await self.close()

    def log_not_closed(self) -> None:
        """Logs that the user has dropped a member of the group whose loop does not run any more."""
        if self.coordinator is not None and self.coordinator.member_id:
            client_log(self.settings).warning(
                "%s: the consumer was not closed: its partitions stay assigned to it until group "
                "%s removes it (session.timeout.ms). Call close() first.",
                self.settings.client_id,
                self.settings.group_id,
            )

    def metrics(self) -> Metrics:
        return self._metrics.metrics(self._statistics.rebalances)

    # Subscription and assignment

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Joins the group for these topics; manually assigned partitions are unassigned."""
        if self.coordinator is None:
            fail(KafkaError._UNKNOWN_GROUP, "subscribe() joins a group: set group.id")
        if not self._is_subscribed:
            await self.remove(list(self.assignment))
        self._is_subscribed = self._has_topics = True
        self.coordinator.subscribe(topics)

    async def unsubscribe(self) -> None:
        """Leaves the group, or unassigns manually assigned partitions."""
        if self.coordinator is not None and self._is_subscribed:
            self._is_subscribed = False
            await self.coordinator.unsubscribe()
        await self.remove(list(self.assignment))

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Reads these partitions alone."""
        self._require_rebalance_calls(RebalanceType.ASSIGNED, incremental=False)
        assigned = {(partition.topic, partition.partition) for partition in partitions}
        await self.remove([key for key in self.assignment if key not in assigned])
        self._mark_applied()
        for partition in partitions:
            self._start_partition(partition)
        self._start_fetching()

    async def unassign(self) -> None:
        self._require_rebalance_calls(RebalanceType.REVOKED, incremental=False)
        await self.remove(list(self.assignment))
        self._mark_applied()

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Reads these partitions besides the assigned ones."""
        self._require_rebalance_calls(RebalanceType.ASSIGNED, incremental=True)
        for partition in partitions:
            if (partition.topic, partition.partition) in self.assignment:
                name = f"{partition.topic} [{partition.partition}]"
                fail(KafkaError._CONFLICT, f"{name} is already part of the current assignment")
        self._mark_applied()
        for partition in partitions:
            self._start_partition(partition)
        self._start_fetching()

    async def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        self._require_rebalance_calls(RebalanceType.REVOKED, incremental=True)
        for partition in partitions:
            if (partition.topic, partition.partition) not in self.assignment:
                fail(
                    KafkaError._INVALID_ARG,
                    f"{partition.topic} [{partition.partition}] can't be unassigned since it is "
                    f"not in the current assignment",
                )
        await self.remove([(partition.topic, partition.partition) for partition in partitions])
        self._mark_applied()

    async def remove(self, keys: Collection[PartitionKey], *, are_lost: bool = False) -> None:
        """Unassigns partitions; their offsets are committed, unless other members own them."""
        states = [self.assignment[key] for key in keys if key in self.assignment]
        for state in states:
            state.revoke()
        if states and not are_lost:
            await self.offset_committer.auto_commit(states)
        for state in states:
            if self.assignment.pop(state.key, None) is not None:
                self._metrics.on_unassigned(state)
            self._buffer.discard(state.progress)
        self._fetcher.send_fetches()

    def seek(self, partition: TopicPartition) -> None:
        state = self.assignment.get((partition.topic, partition.partition))
        if state is None:
            fail(
                KafkaError._STATE,
                f"Failed to seek to offset {partition.offset}: {partition.topic} "
                f"[{partition.partition}] is not assigned; call assign() with the offset, or "
                f"seek() in the on_assign callback",
            )
        state.seek(
            partition.offset, -1 if partition.leader_epoch is None else partition.leader_epoch
        )
        self._buffer.discard(state.progress)
        self._start_fetching()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self.assignment.get((partition.topic, partition.partition))
            if state is not None:
                state.pause()

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self.assignment.get((partition.topic, partition.partition))
            if state is not None and state.is_paused:
                state.resume()
                self._buffer.restore_paused(state.progress)
        self._fetcher.send_fetches()

    def _start_partition(self, partition: TopicPartition) -> None:
        key = (partition.topic, partition.partition)
        state = self.assignment.get(key)
        if state is None:
            state = self.assignment[key] = TopicPartitionState(*key, self._reset)
        else:
            self._buffer.discard(state.progress)
        state.seek(
            partition.offset, -1 if partition.leader_epoch is None else partition.leader_epoch
        )

    def _start_fetching(self) -> None:
        self._has_topics = True
        self.cluster.add_topics({topic for topic, _ in self.assignment})
        self._position_updater.update()
        self._fetcher.send_fetches()
        self.offset_committer.start_auto_commit()

    def _require_rebalance_calls(self, change: RebalanceType, *, incremental: bool) -> None:
        """Raises _STATE if a callback mixes incremental and complete assignments."""
        rebalance = self.current_rebalance
        if (
            rebalance is not None
            and rebalance.type is change
            and rebalance.is_incremental != incremental
        ):
            calls = "incremental_assign() and incremental_unassign()"
            calls = calls if rebalance.is_incremental else "assign() and unassign()"
            fail(KafkaError._STATE, f"the group rebalances by {calls}")

    def _mark_applied(self) -> None:
        if self.current_rebalance is not None:
            self.current_rebalance.is_applied = True

    # Rebalances

    async def on_partitions_assigned(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        await self._run_user_callback(RebalanceType.ASSIGNED, partitions, incremental)

    async def on_partitions_revoked(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        await self._run_user_callback(RebalanceType.REVOKED, partitions, incremental)

    async def on_partitions_lost(self, partitions: Collection[PartitionKey]) -> None:
        await self._run_user_callback(RebalanceType.LOST, partitions, True)

    def on_error(self, error: KafkaError, topic: str | None = None) -> None:
        """Reports an error from `poll`."""
        self._events.report(error, topic)

    async def _run_user_callback(
        self, change: RebalanceType, partitions: Collection[PartitionKey], incremental: bool
    ) -> None:
        rebalance = RebalanceEvent(
            change, tuple(sorted(partitions)), incremental, self._loop.create_future()
        )
        self._statistics.rebalances += 1
        if self._is_unreferenced:
            await self._apply(rebalance)
            return
        self._buffer.put_event(rebalance)
        await rebalance.done

    def begin_rebalance(self, rebalance: RebalanceEvent) -> None:
        """Notes that the user's callback runs now."""
        self.current_rebalance = rebalance

    async def end_rebalance(self, rebalance: RebalanceEvent) -> None:
        """Applies the rebalance, unless the user's callback has done so itself."""
        try:
            if not rebalance.is_applied:
                await self._apply(rebalance)
        finally:
            self.current_rebalance = None
            if not rebalance.done.done():
                rebalance.done.set_result(None)

    async def _apply(self, rebalance: RebalanceEvent) -> None:
        partitions = [TopicPartition(*partition) for partition in rebalance.partitions]
        match rebalance.type:
            case RebalanceType.ASSIGNED if rebalance.is_incremental:
                self.incremental_assign(
                    [
                        partition
                        for partition in partitions
                        if (partition.topic, partition.partition) not in self.assignment
                    ]
                )
            case RebalanceType.ASSIGNED:
                await self.assign(partitions)
            case RebalanceType.REVOKED:
                revoked = (
                    rebalance.partitions if rebalance.is_incremental else list(self.assignment)
                )
                await self.remove(revoked)
            case RebalanceType.LOST:
                await self.remove(rebalance.partitions, are_lost=True)

    # Events of the cluster and the user

    def _on_throttled(self, node_id: int, throttle_ms: int) -> None:
        broker = self.cluster.metadata.brokers.get(node_id)
        if broker is not None:
            self._events.on_throttled(
                f"{broker.host}:{broker.port}/{node_id}", node_id, throttle_ms
            )

    def _on_metadata(self, metadata: MetadataSnapshot) -> None:
        for (topic, index), state in self.assignment.items():
            info = metadata.topics.get(topic)
            if info is None or info.error is ErrorCode.LEADER_NOT_AVAILABLE:
                continue
            if info.error:
                self._events.report_for(
                    state, KafkaError(info.error, f"{topic}: {info.error.name}")
                )
            elif index >= len(info.partitions):
                self.cluster.refresh()
                missing = f"{topic} has {len(info.partitions)} partitions, no partition {index}"
                self._events.report_for(state, KafkaError(KafkaError._UNKNOWN_PARTITION, missing))
        self._position_updater.update()
        self._fetcher.send_fetches()

    def _on_position_unknown(self) -> None:
        self._loop.call_soon(self._position_updater.update)

    def _on_space_freed(self) -> None:
        """Runs in the user's thread."""
        self._loop.call_soon_threadsafe(self._fetcher.send_fetches)

    def _check_user_polls(self) -> None:
        """Notices from time to time that the user polls: a call with every poll costs too much."""
        if self.coordinator is None:
            return
        try:
            poll_count = self._poller.poll_count
        except ReferenceError:  # the user has dropped the consumer
            return
        if self.is_user_waiting or poll_count != self._last_poll_count:
            self._last_poll_count = poll_count
            self.coordinator.on_poll()
            self._log_missing_subscription()
        pause_s = min(1.0, self.settings.max_poll_interval_ms / 1000 / _CHECKS_PER_POLL_INTERVAL)
        self._poll_check = self._loop.call_later(pause_s, self._check_user_polls)

    def _log_missing_subscription(self) -> None:
        """Logs once that the user polls in vain."""
        if not self._has_topics:
            self._has_topics = True
            client_log(self.settings).warning(
                "%s: poll() has nothing to return: call subscribe() or assign() first",
                self.settings.client_id,
            )
