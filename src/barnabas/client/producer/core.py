"""A producer's part on the loop: joins the sender to the cluster."""

import asyncio
import time
from collections.abc import Callable

from barnabas.client.cluster import Backoff, Cluster, Metadata, TopicInfo, told_by_network
from barnabas.client.errors import KafkaError, KafkaException, told_by_broker
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._batch import Batch
from barnabas.client.producer.outbox import Outbox
from barnabas.client.producer.sealing import Identity
from barnabas.client.producer.sender import Answer, Dispatch, Sender
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import Partition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PROPAGATION_S = 30.0
"""How long a topic may be unknown: brokers hear of a new one at different times."""


class ProducerCore:
    """Made and touched on the loop alone, but for the accumulator and the outbox."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: Accumulator,
        outbox: Outbox,
        told: Callable[[KafkaError], None],
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._outbox = outbox
        self._loop = asyncio.get_running_loop()
        self.cluster = Cluster(settings, told)
        self.cluster.listen(self._learn)
        self.sender = Sender(settings, accumulator)
        self._known: dict[str, TopicInfo] = {}
        self._unknown: set[str] = set()  # topics with records, of which nothing is known yet
        self._timer: asyncio.TimerHandle | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._is_closed = False

    def step(self) -> None:
        """Send what may be sent now. Called whenever something has changed."""
        if self._is_closed:
            return
        now_s = time.monotonic()
        names = self._accumulator.asked_for()
        if names:
            self._unknown.update(names)
            self.cluster.want(names)
        if self.sender.needs_identity and self._identifying is None:
            self._identifying = self._loop.create_task(self._identify())
        dispatches, again_s = self.sender.step(now_s)
        for dispatch in dispatches:
            self._transmit(dispatch)
        self._settle()
        unknown_s = self._give_up_unknown(now_s)
        if self.sender.is_stale:
            self.sender.is_stale = False
            self.cluster.refresh()
        self._step_again(min((at for at in (again_s, unknown_s) if at is not None), default=None))

    async def close(self) -> None:
        """Hang up; what is not delivered by now will not be."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._identifying is not None:
            self._identifying.cancel()
        await self.cluster.close()

    def _step_again(self, at_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_s is not None:
            # A little late rather than a little early, or it would be for nothing.
            self._timer = self._loop.call_later(
                max(0.0, at_s - time.monotonic()) + 0.0005, self.step
            )

    # Sending

    def _transmit(self, dispatch: Dispatch) -> None:
        request = self._request(dispatch)
        settings = self._settings
        if settings.acks == 0:
            self.cluster.send(dispatch.node_id, request, settings.request_timeout_ms, None)
            self.sender.unanswered(dispatch)
            return

        def answered(outcome: ProduceResponse | OSError) -> None:
            now_s = time.monotonic()
            if isinstance(outcome, OSError):
                self.sender.failed(dispatch, told_by_network(outcome), now_s)
            else:
                answers = self._answers(outcome)
                self.sender.answered(dispatch, answers, now_s, outcome.throttle_time_ms)
            self.step()

        self.cluster.send(dispatch.node_id, request, settings.request_timeout_ms, answered)

    def _request(self, dispatch: Dispatch) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for (name, partition), outbound in dispatch.batches.items():
            topic = topics.get(name)
            if topic is None:
                known = self.cluster.metadata.topics[name]
                topic = topics[name] = TopicProduceData(name=name, topic_id=known.topic_id)
            topic.partition_data.append(
                PartitionProduceData(index=partition, records=outbound.batch.records)
            )
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.ack_timeout_ms,
            topic_data=list(topics.values()),
        )

    def _answers(self, response: ProduceResponse) -> dict[Partition, Answer]:
        names = self.cluster.metadata.names
        answers: dict[Partition, Answer] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for told in topic.partition_responses:
                leader = told.current_leader
                answers[name, told.index] = Answer(
                    told.error_code,
                    told.base_offset,
                    told.log_append_time_ms,
                    told.error_message,
                    None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
                )
        return answers

    async def _identify(self) -> None:
        """Get a producer id, however long that takes: batches time out by themselves."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        try:
            while self.sender.needs_identity:
                try:
                    told = await self.cluster.ask(request)
                except KafkaException:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                    continue
                if told.error_code == ErrorCode.NONE:
                    self.sender.identify(Identity(told.producer_id, told.producer_epoch))
                elif ErrorCode.of(told.error_code).retriable:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                else:
                    self.sender.abandon(told_by_broker(told.error_code))
        finally:
            self._identifying = None
        self.step()

    # Outcomes

    def _settle(self) -> None:
        """Hand over what is delivered or has failed."""
        finished, self.sender.finished = self.sender.finished, []
        for outcome in finished:
            batch = outcome.batch
            if batch.resolve(
                outcome.error,
                outcome.base_offset,
                outcome.append_time_ms,
                self._settings.report_only_errors,
            ):
                self._outbox.put(batch)
            else:
                self._outbox.let_go(batch)

    def _fail(self, batch: Batch, error: KafkaError) -> None:
        if batch.resolve(error, -1, -1, False):
            self._outbox.put(batch)
        else:
            self._outbox.let_go(batch)

    # Metadata

    def _learn(self, metadata: Metadata) -> None:
        self.sender.learn(metadata)
        for name, topic in metadata.topics.items():
            if self._known.get(name) == topic:
                continue
            if topic.error == ErrorCode.NONE and topic.partitions:
                self._known[name] = topic
                self._unknown.discard(name)
                available = [each.index for each in topic.partitions if each.leader >= 0]
                for misfit in self._accumulator.learn(name, len(topic.partitions), available):
                    self._fail(
                        misfit,
                        KafkaError(KafkaError._UNKNOWN_PARTITION, f"{name} has no such partition"),
                    )
            elif not topic.error.retriable and topic.error != ErrorCode.NONE:
                self._give_up(name, told_by_broker(topic.error))
        self.step()

    def _give_up_unknown(self, now_s: float) -> float | None:
        """Report records of topics that stay unknown; when to look again."""
        if not self._unknown:
            return None
        patience_s = min(PROPAGATION_S, self._settings.delivery_timeout_ms / 1000)
        for name, since_s in self._accumulator.waiting_since().items():
            if now_s - since_s >= patience_s:
                self._give_up(name, _why_unknown(name, self.cluster.metadata.topics.get(name)))
        return now_s + min(1.0, patience_s / 10)

    def _give_up(self, name: str, error: KafkaError) -> None:
        batch = self._accumulator.give_up(name)
        if batch is not None:
            self._fail(batch, error)


def _why_unknown(name: str, known: TopicInfo | None) -> KafkaError:
    if known is not None and known.error != ErrorCode.NONE:
        return told_by_broker(known.error, f"{name}: {known.error.name}")
    return KafkaError(KafkaError._MSG_TIMED_OUT, f"nothing is known of {name}: no broker answers")
