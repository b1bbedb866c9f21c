"""The sender: which batches go to which node now, and what becomes of them. No I/O, no clock.

`step` hands out requests; `answered` and `failed` tell it how they ended. What is over stands in
`finished`. Batches of a partition arrive in their order: up to five requests are under way to a
node, and after a failure those of the partition go again one at a time.
"""

from collections.abc import Mapping

from barnabas.client.cluster import Backoff, Metadata
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._queues import Queue
from barnabas.client.producer.dispatch import Answer, Dispatch, Gate, Outcome
from barnabas.client.producer.lane import Lane, Outbound
from barnabas.client.producer.sealing import NOBODY, Identity, Seal
from barnabas.client.producer.verdicts import Verdict, verdict
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ErrorCode

MAX_EPOCH = 0x7FFF
_EXPIRY_CHECKS = 10


class Sender:
    def __init__(
        self, settings: ProducerSettings, accumulator: Accumulator, gate: Gate | None = None
    ) -> None:
        self._accumulator = accumulator
        self._gate = gate
        self._is_idempotent = settings.enable_idempotence
        self._needs_answers = settings.acks != 0
        self._max_in_flight = settings.max_in_flight
        self._retries = settings.retries
        self._largest_request = max(settings.max_request_size, settings.batch_size)
        self._delivery_timeout_s = settings.delivery_timeout_ms / 1000
        self._availability_timeout_s = settings.availability_timeout_ms / 1000
        self._backoff_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        self._seal = Seal.of(settings)
        self._lanes: dict[TopicPartitionTuple, Lane] = {}
        self._held_up: set[TopicPartitionTuple] = set()  # lanes with batches that are to go again
        self._in_flight: dict[int, set[Dispatch]] = {}
        self._muted_until_s: dict[int, float] = {}
        self._metadata = Metadata()
        self._hints: dict[TopicPartitionTuple, tuple[int, int]] = {}
        self._next_expiry_s = 0.0
        self._turn = 0
        self.identity = NOBODY
        self.finished: list[Outcome] = []
        self.is_stale = False  # metadata has proved wrong
        self.fatal: KafkaError | None = None

    @property
    def needs_identity(self) -> bool:
        """Whether InitProducerId has to be asked before anything can be sent."""
        return self._is_idempotent and self.identity is NOBODY and self.fatal is None

    @property
    def under_way(self) -> int:
        """Requests that wait for their answers."""
        return sum(map(len, self._in_flight.values()))

    @property
    def is_drained(self) -> bool:
        """Whether it has nothing that is without an outcome."""
        return all(lane.is_idle for lane in self._lanes.values())

    @property
    def has_gaps(self) -> bool:
        """Whether some partition's sequences are of no more use under this epoch."""
        return any(lane.has_gap or lane.is_refused for lane in self._lanes.values())

    def identify(self, identity: Identity) -> None:
        """A coordinator has given an id, or another epoch for it."""
        self.identity = identity

    def learn(self, metadata: Metadata) -> None:
        self._metadata = metadata
        for place, (_, epoch) in list(self._hints.items()):
            known = metadata.leader(*place)
            if known is None or known.leader_epoch >= epoch:
                del self._hints[place]
        for place in self._held_up:
            lane, known = self._lanes[place], metadata.leader(*place)
            if known is not None and known.leader >= 0 and known.leader != lane.node_id:
                lane.resume_s = 0.0  # the pause was for the one that failed

    # Sending

    def step(self, now_s: float) -> tuple[list[Dispatch], float | None]:
        """The requests to send now, and when to step again if nothing else happens."""
        if now_s >= self._next_expiry_s:
            self._expire(now_s)
        queues, due_s = self._accumulator.ready(now_s)
        wakes = [self._next_expiry_s] if self._accumulator.held_records else []
        if due_s is not None:
            wakes.append(due_s)
        dispatches: list[Dispatch] = []
        if self.fatal is None and not self.needs_identity:
            open_: dict[int, Dispatch] = {}
            for place in sorted(self._held_up):
                self._resend(self._lanes[place], now_s, open_, dispatches, wakes)
            self._turn = (self._turn + 1) % max(1, len(queues))
            queues = queues[self._turn :] + queues[: self._turn]
            while queues:
                # A request has one batch of each partition: further ones go with the next.
                queues = [q for q in queues if self._send_next(q, now_s, open_, dispatches, wakes)]
                open_ = {}
        return dispatches, min((at for at in wakes if at > now_s), default=None)

    def _resend(
        self,
        lane: Lane,
        now_s: float,
        open_: dict[int, Dispatch],
        dispatches: list[Dispatch],
        wakes: list[float],
    ) -> None:
        if lane.needs_new_epoch and not self._renew(lane):
            return
        if not lane.waiting:
            self._held_up.discard(lane.place)
            return
        if lane.under_way:
            return
        if lane.resume_s > now_s:
            wakes.append(lane.resume_s)
            return
        outbound = lane.waiting[0]
        dispatch = self._dispatch_to(lane, outbound.batch.size_bytes, now_s, open_, dispatches)
        if dispatch is not None:
            del lane.waiting[0]
            self._depart(lane, outbound, dispatch)

    def _send_next(
        self,
        queue: Queue,
        now_s: float,
        open_: dict[int, Dispatch],
        dispatches: list[Dispatch],
        wakes: list[float],
    ) -> bool:
        """Send the first batch of a queue if that may be; whether another might go as well."""
        place = queue.place
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = Lane(place)
        if lane.resume_s > now_s:
            wakes.append(lane.resume_s)
            return False
        if not self._accumulator.is_due(queue, now_s) or not self._may_go_on(lane):
            return False
        dispatch = self._dispatch_to(lane, queue.first_bytes, now_s, open_, dispatches)
        if dispatch is None:
            wakes.append(self._muted_until_s.get(self._leader(place), 0.0))
            self._note_blocked(queue, lane, now_s)
            return False
        batch = self._accumulator.take(queue)
        assert batch is not None, "only the loop takes batches, and this queue has one"
        if lane.blocked_since_s is not None:
            lane.blocked_since_s = None
            self._accumulator.shun(queue, False)
        outbound = lane.take(batch)
        lane.enter(outbound, lane.identity, self._seal)
        self._depart(lane, outbound, dispatch)
        return True

    def _may_go_on(self, lane: Lane) -> bool:
        """Whether a batch may follow those that were sent before."""
        if self._gate is not None and not self._gate.admits(lane.place):
            return False
        if not lane.has_room:
            return False
        if lane.needs_new_epoch and not self._renew(lane):
            return False
        if lane.has_gap:
            return False
        if lane.identity != self.identity:
            if lane.under_way:
                return False
            lane.begin(self.identity, self._seal)
        return True

    def _renew(self, lane: Lane) -> bool:
        """Give a lane an epoch in which nothing was sent (KIP-360); whether there is one yet."""
        if not self._is_idempotent:
            lane.begin(NOBODY, self._seal)
            return True
        if self._gate is not None:
            return lane.identity != self.identity and self._start_over(lane)
        if lane.identity == self.identity:
            if self.identity.epoch >= MAX_EPOCH:
                self.identity = NOBODY
                return False
            self.identity = Identity(self.identity.producer_id, self.identity.epoch + 1)
        return self._start_over(lane)

    def _start_over(self, lane: Lane) -> bool:
        lane.begin(self.identity, self._seal)
        return True

    def _dispatch_to(
        self,
        lane: Lane,
        size_bytes: int,
        now_s: float,
        open_: dict[int, Dispatch],
        dispatches: list[Dispatch],
    ) -> Dispatch | None:
        """The request to the lane's leader that a batch can go with; None if it has to wait."""
        node_id = self._leader(lane.place)
        if node_id < 0 or (lane.under_way and lane.node_id != node_id):
            return None
        dispatch = open_.get(node_id)
        if (
            dispatch is not None
            and lane.place not in dispatch.batches
            and dispatch.size_bytes + size_bytes < self._largest_request
        ):
            return dispatch
        in_flight = self._in_flight.setdefault(node_id, set())
        if len(in_flight) >= self._max_in_flight or self._muted_until_s.get(node_id, 0) > now_s:
            return None
        dispatch = open_[node_id] = Dispatch(node_id, now_s)
        in_flight.add(dispatch)
        dispatches.append(dispatch)
        return dispatch

    def _depart(self, lane: Lane, outbound: Outbound, dispatch: Dispatch) -> None:
        outbound.attempts += 1
        lane.node_id = dispatch.node_id
        lane.under_way.append(outbound)
        dispatch.batches[lane.place] = outbound
        dispatch.size_bytes += outbound.batch.size_bytes

    def _leader(self, place: TopicPartitionTuple) -> int:
        hint = self._hints.get(place)
        if hint is not None and hint[0] in self._metadata.brokers:
            return hint[0]
        known = self._metadata.leader(*place)
        if known is None or known.leader < 0:
            self.is_stale = True
            return -1
        return known.leader

    def _note_blocked(self, queue: Queue, lane: Lane, now_s: float) -> None:
        if lane.blocked_since_s is None:
            lane.blocked_since_s = now_s
        elif (
            self._availability_timeout_s
            and now_s - lane.blocked_since_s >= self._availability_timeout_s
        ):
            self._accumulator.shun(queue, True)

    # Answers

    def answered(
        self,
        dispatch: Dispatch,
        answers: Mapping[TopicPartitionTuple, Answer],
        now_s: float,
        throttle_ms: int = 0,
    ) -> None:
        """A broker has told what became of a request's batches."""
        self._land(dispatch)
        if throttle_ms > 0:
            self._muted_until_s[dispatch.node_id] = now_s + throttle_ms / 1000
        missing = Answer(ErrorCode.UNKNOWN_SERVER_ERROR, message="the answer left it out")
        for place, outbound in dispatch.batches.items():
            answer = answers.get(place, missing)
            lane = self._lanes[place]
            lane.under_way.remove(outbound)
            if answer.leader is not None:
                self._take_hint(place, answer.leader)
            self._judge(lane, outbound, answer, now_s)

    def failed(self, dispatch: Dispatch, error: KafkaError, now_s: float) -> None:
        """No answer came: whether the batches were appended is not known."""
        self._land(dispatch)
        self.is_stale = True
        for place, outbound in dispatch.batches.items():
            lane = self._lanes[place]
            lane.under_way.remove(outbound)
            outbound.may_be_appended = True
            self._retry(lane, outbound, error, now_s)

    def unanswered(self, dispatch: Dispatch) -> None:
        """With acks=0 sending is all there is."""
        self._land(dispatch)
        for place, outbound in dispatch.batches.items():
            lane = self._lanes[place]
            lane.under_way.remove(outbound)
            self._finish(lane, outbound)

    def _land(self, dispatch: Dispatch) -> None:
        self._in_flight[dispatch.node_id].discard(dispatch)

    def _judge(self, lane: Lane, outbound: Outbound, answer: Answer, now_s: float) -> None:
        error = broker_error(answer.error, answer.message)
        match verdict(answer.error):
            case Verdict.APPENDED:
                lane.failures = 0
                lane.is_established = True
                self._finish(lane, outbound, answer.base_offset, answer.append_time_ms)
            case Verdict.MOVED:
                has_moved = self._leader(lane.place) != lane.node_id
                if not has_moved:
                    self.is_stale = True
                self._retry(lane, outbound, error, now_s, at_once=has_moved)
            case Verdict.UNSURE:
                outbound.may_be_appended = True
                self._retry(lane, outbound, error, now_s)
            case Verdict.RETRY:
                self._retry(lane, outbound, error, now_s)
            case Verdict.TOO_LARGE if _can_be_split(outbound):
                lane.replace(outbound, self._seal.split(outbound.batch), self._seal)
                self._held_up.add(lane.place)
            case Verdict.MISPLACED if self._is_idempotent:
                self._misplaced(lane, outbound, error, now_s)
            case Verdict.FENCED:
                self.abandon(KafkaError(error.code(), error.str(), fatal=True))
                self._give_up(lane, outbound, error)
            case _:
                self._give_up(lane, outbound, error)

    def _misplaced(self, lane: Lane, outbound: Outbound, error: KafkaError, now_s: float) -> None:
        """The broker misses what comes before this batch.

        That may still arrive, if it has failed and goes again. If there is nothing, it is lost,
        or was given up: then neither this batch nor any behind it was appended, and all of them
        go again under another epoch.
        """
        if not lane.is_first(outbound):
            self._retry(lane, outbound, error, now_s)
        elif self._gate is not None:
            self._give_up(lane, outbound, error)
        else:
            lane.is_refused = True
            self._retry(lane, outbound, error, now_s, at_once=True)

    def _retry(
        self,
        lane: Lane,
        outbound: Outbound,
        error: KafkaError,
        now_s: float,
        *,
        at_once: bool = False,
    ) -> None:
        self._held_up.add(lane.place)
        if outbound.is_reported:
            return
        if outbound.attempts > self._retries:
            self._give_up(lane, outbound, error)
            return
        if not at_once:
            pause = Backoff(*self._backoff_ms)
            pause.failures = lane.failures
            lane.resume_s = max(lane.resume_s, now_s + pause.next_ms() / 1000)
            lane.failures += 1
        lane.put_back(outbound)

    def _take_hint(self, place: TopicPartitionTuple, leader: tuple[int, int]) -> None:
        known = self._metadata.leader(*place)
        epoch = max(
            -1 if known is None else known.leader_epoch, self._hints.get(place, (-1, -1))[1]
        )
        if leader[1] > epoch:
            self._hints[place] = leader
            if leader[0] not in self._metadata.brokers:
                self.is_stale = True

    # Ends

    def expire_all(self, error: KafkaError) -> None:
        """Give up all that was taken and is not under way."""
        for lane in self._lanes.values():
            for outbound in lane.waiting:
                self._give_up(lane, outbound, error)
            lane.waiting.clear()

    def purge(self, queued: KafkaError | None, in_flight: KafkaError | None) -> None:
        """Report what is under way as given up, and give up what is not yet sent."""
        if in_flight is not None:
            self.expire_all(in_flight)
            for lane in self._lanes.values():
                for outbound in lane.under_way:
                    self._give_up(lane, outbound, in_flight)
        if queued is not None:
            for batch in self._accumulator.purge():
                self.finished.append(Outcome(batch, queued))

    def _expire(self, now_s: float) -> None:
        self._next_expiry_s = now_s + min(1.0, self._delivery_timeout_s / _EXPIRY_CHECKS)
        before_s = now_s - self._delivery_timeout_s
        late = KafkaError(
            KafkaError._MSG_TIMED_OUT,
            f"not delivered within delivery.timeout.ms ({self._delivery_timeout_s:g} s)",
        )
        for batch in self._accumulator.expired(before_s):
            if self._gate is not None:
                self._gate.refused(late)
            self.finished.append(Outcome(batch, late))
        for lane in self._lanes.values():
            for outbound in list(lane.unresolved()):
                if outbound.batch.created_s < before_s and not outbound.is_reported:
                    self._give_up(lane, outbound, late)
            lane.waiting = [each for each in lane.waiting if not each.is_reported]

    def _give_up(self, lane: Lane, outbound: Outbound, error: KafkaError) -> None:
        if outbound.is_reported:
            return
        outbound.is_reported = True
        if self._is_idempotent:
            lane.has_gap = True
            self._held_up.add(lane.place)
        if self._gate is not None:
            self._gate.refused(error)
        self._close(lane, outbound, Outcome(outbound.batch, error))

    def _close(self, lane: Lane, outbound: Outbound, outcome: Outcome) -> None:
        """Batches of a partition are reported in their order, whatever order they end in."""
        lane.park(outbound, outcome)
        self.finished += lane.reportable()

    def _finish(
        self, lane: Lane, outbound: Outbound, base_offset: int = -1, append_time_ms: int = -1
    ) -> None:
        if not outbound.is_reported:
            outbound.is_reported = True
            outcome = Outcome(outbound.batch, None, base_offset, append_time_ms)
            self._close(lane, outbound, outcome)

    def abandon(self, error: KafkaError) -> None:
        """Nothing more can be sent by this producer."""
        self.fatal = error
        self.expire_all(error)
        for batch in self._accumulator.purge():
            self.finished.append(Outcome(batch, error))


def _can_be_split(outbound: Outbound) -> bool:
    """Parts of a batch are others to a broker: it would not know them for duplicates."""
    return (
        outbound.batch.record_count > 1
        and not outbound.is_reported
        and not outbound.may_be_appended
    )
