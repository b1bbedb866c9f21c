"""The core of a consumer: joins assignment, fetching, positions, commits and the group.

It lives on one loop and is touched only from there. The facades, plain and aio, hand it what
users call, and take from its inbox what they get.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence

from barnabas.client.cluster import Cluster, Metadata
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.metrics import ConsumerMetrics
from barnabas.client.consumer.offset_committer import OffsetCommitter
from barnabas.client.consumer.offset_lookup import OffsetLookup
from barnabas.client.consumer.offset_queries import OffsetQueries
from barnabas.client.consumer.position_updater import PositionUpdater
from barnabas.client.consumer.statistics import ConsumerStatistics
from barnabas.client.consumer.subscription_state import AutoOffsetResetStrategy, TopicPartitionState
from barnabas.client.consumer.user_events import RebalanceEvent, RebalanceType, UserEvents
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.metrics import Metrics
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ConsumerGroupMetadata, TopicPartition, TopicPartitionTuple
from barnabas.wire.errors import ErrorCode

_LOOKS_PER_POLL_INTERVAL = 10


class ConsumerCore:
    """A consumer without its facade; what a group calls an assignee."""

    def __init__(self, settings: ConsumerSettings, tap: Poller, inbox: FetchBuffer) -> None:
        self.settings = settings
        self.assignment: dict[TopicPartitionTuple, TopicPartitionState] = {}
        self._news = UserEvents(settings, inbox)
        self.cluster = Cluster(settings, self._news.on_connection_error)
        self.coordinator = (
            ConsumerCoordinator(self.cluster, settings, self) if settings.group_id else None
        )
        offsets = OffsetLookup(self.cluster, settings)
        self.queries = OffsetQueries(self.cluster, self.coordinator, offsets, self.assignment)
        self.offset_committer = OffsetCommitter(self.coordinator, settings, self.assignment, inbox)
        self._tap = tap
        self._inbox = inbox
        self._loop = asyncio.get_running_loop()
        self._reset = AutoOffsetResetStrategy(settings.auto_offset_reset)
        self._fetcher = Fetcher(
            self.cluster,
            settings,
            self.assignment,
            inbox,
            on_position_unknown=self._on_position_unknown,
            error_to_report=self._news.error_to_report,
            on_throttled=self._on_throttled,
        )
        self._positions = PositionUpdater(
            self.cluster,
            self.coordinator,
            offsets,
            settings,
            self.assignment,
            self._news.report_for,
            self._fetcher.send_fetches,
        )
        self.rebalance: RebalanceEvent | None = None  # that the user is being asked about
        self.is_waiting = False  # the user waits in poll
        self._polls_seen = 0
        self._is_subscribed = False
        self._is_abandoned = False
        inbox.on_space_freed = self._room_made
        self.cluster.add_listener(self._metadata_changed)
        self._watch: asyncio.TimerHandle | None = None
        self._look_at_user()
        self._statistics = ConsumerStatistics(
            settings, self.cluster, self.assignment, self.offset_committer, self._news
        )
        self._metrics = ConsumerMetrics(settings, self.cluster, self.assignment)

    async def close(self) -> None:
        """Commit what auto commit has to, give back what is assigned, leave, hang up."""
        self._statistics.close()
        if self._watch is not None:
            self._watch.cancel()
        try:
            if self.coordinator is not None:
                await self.coordinator.close()
            await self.remove(list(self.assignment))
            await self.offset_committer.close()
        finally:
            self._positions.close()
            self._fetcher.close()
            await self.cluster.close()

    async def abandon(self) -> None:
        """The same when there is no user any more, who could be asked about it."""
        self._is_abandoned = True
        for event in self._inbox.take_events():
            if isinstance(event, RebalanceEvent):
                await self.end_rebalance(event)
        await self.close()

    def metrics(self) -> Metrics:
        return self._metrics.metrics(self._statistics.rebalances)

    # What is subscribed and assigned

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Become a member for these topics; what was assigned by hand is given up."""
        if self.coordinator is None:
            fail(KafkaError._UNKNOWN_GROUP, "subscribe() needs a group.id")
        if not self._is_subscribed:
            await self.remove(list(self.assignment))
        self._is_subscribed = True
        self.coordinator.subscribe(topics)

    async def unsubscribe(self) -> None:
        """Leave the group, or give up what was assigned by hand."""
        if self.coordinator is not None and self._is_subscribed:
            self._is_subscribed = False
            await self.coordinator.unsubscribe()
        await self.remove(list(self.assignment))

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these and nothing else."""
        self._require_suits(RebalanceType.ASSIGNED, incremental=False)
        kept = {(each.topic, each.partition) for each in partitions}
        await self.remove([key for key in self.assignment if key not in kept])
        self._applied()
        for each in partitions:
            self._begin(each)
        self._start()

    async def unassign(self) -> None:
        self._require_suits(RebalanceType.REVOKED, incremental=False)
        await self.remove(list(self.assignment))
        self._applied()

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these besides."""
        self._require_suits(RebalanceType.ASSIGNED, incremental=True)
        for each in partitions:
            if (each.topic, each.partition) in self.assignment:
                named = f"{each.topic} [{each.partition}]"
                fail(KafkaError._CONFLICT, f"{named} is already part of the current assignment")
        self._applied()
        for each in partitions:
            self._begin(each)
        self._start()

    async def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        self._require_suits(RebalanceType.REVOKED, incremental=True)
        for each in partitions:
            if (each.topic, each.partition) not in self.assignment:
                fail(
                    KafkaError._INVALID_ARG,
                    f"{each.topic} [{each.partition}] can't be unassigned since it is not in the "
                    f"current assignment",
                )
        await self.remove([(each.topic, each.partition) for each in partitions])
        self._applied()

    async def remove(
        self, keys: Collection[TopicPartitionTuple], *, are_lost: bool = False
    ) -> None:
        """Read these no more; what was consumed of them is committed, unless they are lost."""
        removed = [self.assignment[key] for key in keys if key in self.assignment]
        for each in removed:
            each.revoke()
        if removed and not are_lost:
            await self.offset_committer.auto_commit(removed)
        for each in removed:
            if self.assignment.pop(each.key, None) is not None:
                self._metrics.on_unassigned(each)
            self._inbox.discard(each.progress)
        self._fetcher.send_fetches()

    def seek(self, place: TopicPartition) -> None:
        each = self.assignment.get((place.topic, place.partition))
        if each is None:
            fail(
                KafkaError._STATE,
                f"Failed to seek to offset {place.offset}: {place.topic} [{place.partition}] is "
                f"not assigned",
            )
        each.seek(place.offset, -1 if place.leader_epoch is None else place.leader_epoch)
        self._inbox.discard(each.progress)
        self._start()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for place in partitions:
            each = self.assignment.get((place.topic, place.partition))
            if each is not None:
                each.pause()

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for place in partitions:
            each = self.assignment.get((place.topic, place.partition))
            if each is not None and each.is_paused:
                each.resume()
                self._inbox.restore_paused(each.progress)
        self._fetcher.send_fetches()

    def _begin(self, place: TopicPartition) -> None:
        key = (place.topic, place.partition)
        each = self.assignment.get(key)
        if each is None:
            each = self.assignment[key] = TopicPartitionState(*key, self._reset)
        else:
            self._inbox.discard(each.progress)
        each.seek(place.offset, -1 if place.leader_epoch is None else place.leader_epoch)

    def _start(self) -> None:
        self.cluster.add_topics({topic for topic, _ in self.assignment})
        self._positions.update()
        self._fetcher.send_fetches()
        self.offset_committer.start_auto_commit()

    def _require_suits(self, change: RebalanceType, *, incremental: bool) -> None:
        """A callback that is given all partitions, or some, has to take them as such."""
        asked = self.rebalance
        if asked is not None and asked.type is change and asked.is_incremental != incremental:
            calls = "incremental_assign() and incremental_unassign()"
            calls = calls if asked.is_incremental else "assign() and unassign()"
            fail(KafkaError._STATE, f"the group rebalances by {calls}")

    def _applied(self) -> None:
        if self.rebalance is not None:
            self.rebalance.is_applied = True

    # What a group calls its assignee

    async def on_partitions_assigned(
        self, partitions: Collection[TopicPartitionTuple], *, incremental: bool
    ) -> None:
        await self._ask_user(RebalanceType.ASSIGNED, partitions, incremental)

    async def on_partitions_revoked(
        self, partitions: Collection[TopicPartitionTuple], *, incremental: bool
    ) -> None:
        await self._ask_user(RebalanceType.REVOKED, partitions, incremental)

    async def on_partitions_lost(self, partitions: Collection[TopicPartitionTuple]) -> None:
        await self._ask_user(RebalanceType.LOST, partitions, True)

    def owned(self) -> frozenset[TopicPartitionTuple]:
        return frozenset(self.assignment)

    def on_error(self, error: KafkaError) -> None:
        """Something that `poll` has to tell."""
        self._news.report(error)

    async def _ask_user(
        self, change: RebalanceType, partitions: Collection[TopicPartitionTuple], incremental: bool
    ) -> None:
        rebalance = RebalanceEvent(
            change, tuple(sorted(partitions)), incremental, self._loop.create_future()
        )
        self._statistics.rebalances += 1
        if self._is_abandoned:
            await self._apply(rebalance)
            return
        self._inbox.put_event(rebalance)
        await rebalance.done

    def begin_rebalance(self, rebalance: RebalanceEvent) -> None:
        """The user's callback, if there is one, is called now."""
        self.rebalance = rebalance

    async def end_rebalance(self, rebalance: RebalanceEvent) -> None:
        """It has returned: do what it has not done itself."""
        try:
            if not rebalance.is_applied:
                await self._apply(rebalance)
        finally:
            self.rebalance = None
            if not rebalance.done.done():
                rebalance.done.set_result(None)

    async def _apply(self, rebalance: RebalanceEvent) -> None:
        places = [TopicPartition(*each) for each in rebalance.partitions]
        match rebalance.type:
            case RebalanceType.ASSIGNED if rebalance.is_incremental:
                self.incremental_assign(
                    [each for each in places if (each.topic, each.partition) not in self.assignment]
                )
            case RebalanceType.ASSIGNED:
                await self.assign(places)
            case RebalanceType.REVOKED:
                gone = rebalance.partitions if rebalance.is_incremental else list(self.assignment)
                await self.remove(gone)
            case RebalanceType.LOST:
                await self.remove(rebalance.partitions, are_lost=True)

    # Offsets

    async def commit(
        self, offsets: Sequence[TopicPartition] | None, *, asynchronous: bool
    ) -> list[TopicPartition] | None:
        """Commit these, or what is stored."""
        places = self.offset_committer.uncommitted_offsets() if offsets is None else offsets
        if asynchronous:
            self.offset_committer.commit_async(places)
            return None
        committed = await self.offset_committer.commit(places, self.settings.default_api_timeout_ms)
        error = next((each.error for each in committed if each.error is not None), None)
        if error is not None:
            raise KafkaException(error)
        return committed

    # The cluster and the group

    def member_id(self) -> str | None:
        return (self.coordinator.member_id or None) if self.coordinator is not None else None

    def group_metadata(self) -> ConsumerGroupMetadata:
        if self.coordinator is None:
            fail(KafkaError._UNKNOWN_GROUP, "a consumer without a group.id is in no group")
        return self.coordinator.metadata

    # News

    def _on_throttled(self, node_id: int, throttle_ms: int) -> None:
        broker = self.cluster.metadata.brokers.get(node_id)
        if broker is not None:
            self._news.on_throttled(f"{broker.host}:{broker.port}/{node_id}", node_id, throttle_ms)

    def _metadata_changed(self, metadata: Metadata) -> None:
        for (topic, index), each in self.assignment.items():
            known = metadata.topics.get(topic)
            if known is None or known.error is ErrorCode.LEADER_NOT_AVAILABLE:
                continue
            if known.error:
                self._news.report_for(each, KafkaError(known.error, f"{topic}: {known.error.name}"))
            elif index >= len(known.partitions):
                self.cluster.refresh()
                missing = f"{topic} has {len(known.partitions)} partitions, no partition {index}"
                self._news.report_for(each, KafkaError(KafkaError._UNKNOWN_PARTITION, missing))
        self._positions.update()
        self._fetcher.send_fetches()

    def _on_position_unknown(self) -> None:
        self._loop.call_soon(self._positions.update)

    def _room_made(self) -> None:
        """Called in the user's thread."""
        self._loop.call_soon_threadsafe(self._fetcher.send_fetches)

    def _look_at_user(self) -> None:
        """Tell the group now and then that the user still polls: each poll would cost too much."""
        if self.coordinator is None:
            return
        try:
            polls = self._tap.poll_count
        except ReferenceError:  # the user has dropped his consumer
            return
        if self.is_waiting or polls != self._polls_seen:
            self._polls_seen = polls
            self.coordinator.on_poll()
        pause_s = min(1.0, self.settings.max_poll_interval_ms / 1000 / _LOOKS_PER_POLL_INTERVAL)
        self._watch = self._loop.call_later(pause_s, self._look_at_user)
