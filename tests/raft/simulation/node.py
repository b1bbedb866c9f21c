"""A node: the real consensus, driven as its driver would, on a simulated disk and network."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.raft.simulation.checkers import Checkers
from tests.raft.simulation.clock import Clock
from tests.raft.simulation.disk import Disk, Record, Snapshot
from tests.raft.simulation.network import LOST, REFUSED, Answered, Network

from barnabas.raft.messages import (
    AppendLeaderChange,
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    FetchOutcome,
    HighWatermark,
    OutgoingRequest,
    Persist,
    RaftVoteRequest,
    RoleChanged,
    SendBeginEpoch,
    SendEndEpoch,
    SendVote,
)
from barnabas.raft.raft_node import ANY_NODE, RaftNode, RaftTimeouts
from barnabas.raft.roles import Follower, Leader
from barnabas.raft.voters import ReplicaKey, VoterSet
from barnabas.wire.errors import ErrorCode

TIMEOUTS = RaftTimeouts(election_ms=300, fetch_ms=600, backoff_max_ms=300)
RETRY_MS = 20
LONG_POLL_MS = 120


class Fetch(NamedTuple):
    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int


class Fetched(NamedTuple):
    verdict: FetchOutcome
    leader_id: int
    epoch: int
    high_watermark: int
    records: list[Record]


class FetchSnapshot(NamedTuple):
    replica: ReplicaKey
    epoch: int


class FetchedSnapshot(NamedTuple):
    error: ErrorCode
    leader_id: int
    epoch: int
    snapshot: Snapshot | None


class Node:
    """One process after another on one disk."""

    def __init__(
        self,
        key: ReplicaKey,
        disk: Disk,
        clock: Clock,
        network: Network,
        random: Random,
        checkers: Checkers,
    ) -> None:
        self.key = key
        self.id = key.node_id
        self.disk = disk
        self.raft: RaftNode | None = None
        self.paused = False
        self.max_fetch_records = 8
        self._clock = clock
        self._network = network
        self._random = random
        self._checkers = checkers
        # Counts processes: what one of them waits for does not concern the next.
        self._process = 0
        self._backlog: list[Callable[[], None]] = []
        network.hosts[self.id] = self

    # Life

    @property
    def is_up(self) -> bool:
        return self.raft is not None

    def start(self) -> None:
        self._process += 1
        self._sent: dict[int, OutgoingRequest] = {}
        self._is_fetching = False
        self._snapshot_wanted = False
        self._is_flushing = False
        self._polls: list[tuple[Fetch, Answered]] = []
        self._ticks_at_ms: int | None = None
        log, now_ms = self.disk.log, self._clock.now_ms
        voters, _ = log.newest_voters()
        self.raft = RaftNode(self.key, voters, self.disk.state, log, TIMEOUTS, self._random, now_ms)
        self._checkers.started(self)
        self._settle()

    def crash(self) -> None:
        self.raft = None
        self._process += 1
        self._backlog.clear()
        self.paused = False
        self.disk.log.crash(self._random)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        backlog, self._backlog = self._backlog, []
        for event in backlog:
            event()

    def _mine(self, event: Callable[[], None]) -> Callable[[], None]:
        """An event for this process, deferred while it is paused."""
        process = self._process

        def happen() -> None:
            if process != self._process:
                return
            if self.paused:
                self._backlog.append(happen)
            else:
                event()

        return happen

    # After every step

    def _settle(self) -> None:
        raft = self._raft
        log = self.disk.log
        for effect in raft.take_effects():
            match effect:
                case Persist(state=state):
                    self._checkers.persists(self, state)
                    self.disk.state = state
                case AppendLeaderChange(epoch=epoch):
                    self._append(Record(epoch, f"leader {self.id}"))
                case HighWatermark(offset=offset):
                    self._checkers.committed(self, offset)
                case RoleChanged(role=role):
                    self._checkers.role_changed(self, role)
                    if not isinstance(role, Leader):
                        self._refuse_polls()
        if log.durable_end_offset != log.end_offset:
            self._flush()
        if self._polls:
            self._answer_polls()
        for outgoing in raft.pending_requests():
            self._send(outgoing)
        if not self._is_fetching and log.durable_end_offset == log.end_offset:
            self._fetch()
        self._set_timer()

    @property
    def _raft(self) -> RaftNode:
        assert self.raft is not None
        return self.raft

    def _set_timer(self) -> None:
        deadline_ms = self._raft.deadline_ms
        if deadline_ms is None or self._ticks_at_ms == deadline_ms:
            return
        self._ticks_at_ms = deadline_ms

        def tick() -> None:
            if self._ticks_at_ms == deadline_ms:
                self._ticks_at_ms = None
            self._raft.tick(self._clock.now_ms)
            self._settle()

        self._clock.later(max(0, deadline_ms - self._clock.now_ms), self._mine(tick))

    # The log

    def _append(self, record: Record) -> None:
        log = self.disk.log
        self._checkers.appends(self, record)
        log.append(record)
        if isinstance(record.content, VoterSet):
            self._raft.on_voters_changed(record.content, log.end_offset - 1, self._clock.now_ms)

    def _flush(self) -> None:
        log = self.disk.log
        if self._is_flushing:
            return
        self._is_flushing = True
        upto, truncations = log.end_offset, log.truncations

        def flushed() -> None:
            self._is_flushing = False
            if truncations == log.truncations:
                log.durable_end_offset = upto
                self._raft.on_flushed(upto, self._clock.now_ms)
            self._settle()

        self._clock.later(self._random.randint(1, self.disk.max_flush_ms), self._mine(flushed))

    def propose(self, content: str | VoterSet) -> bool:
        """Append a record, if this node leads; whether it did."""
        if self.paused or self.raft is None or not self.raft.is_leader:
            return False
        self._append(Record(self.raft.epoch, content))
        self._settle()
        return True

    def resign(self) -> None:
        self._raft.leadership.resign(self._clock.now_ms)
        self._settle()

    def take_snapshot(self) -> None:
        end_offset = self._raft.high_watermark
        if self.disk.log.start_offset < end_offset <= self.disk.log.durable_end_offset:
            self.disk.log.take_snapshot(end_offset)

    def lose_connection(self) -> None:
        self._raft.on_leader_lost(self._clock.now_ms)
        self._settle()

    def may_change_voters(self) -> bool:
        """One change at a time, and only after this epoch has committed a record (KIP-853)."""
        role = self.raft.role if self.raft and not self.paused else None
        _, offset = self.disk.log.newest_voters()
        return isinstance(role, Leader) and role.high_watermark > max(offset, role.start_offset)

    # ElectionSender

    def _send(self, outgoing: OutgoingRequest) -> None:
        voter_id = outgoing.voter.node_id
        if self._sent.get(voter_id) == outgoing:
            return
        self._sent[voter_id] = outgoing
        self._checkers.sends(self, outgoing.request)

        def answered(response: Any) -> None:
            if response in (REFUSED, LOST):
                self._clock.later(RETRY_MS, self._mine(forget))
                return
            match outgoing:
                case SendVote():
                    self._raft.election.on_vote_response(voter_id, response, self._clock.now_ms)
                case SendBeginEpoch():
                    self._raft.election.on_begin_epoch_response(
                        voter_id, response, self._clock.now_ms
                    )
                case SendEndEpoch():
                    self._raft.election.on_end_epoch_response(
                        voter_id, response, self._clock.now_ms
                    )
            forget()

        def forget() -> None:
            if self._sent.get(voter_id) == outgoing:
                del self._sent[voter_id]
            self._settle()

        self._network.ask(self.id, voter_id, outgoing.request, self._on_answer(answered))

    def _on_answer(self, answered: Answered) -> Answered:
        process = self._process

        def arrive(response: Any) -> None:
            if process == self._process:
                self._mine(lambda: answered(response))()

        return arrive

    def _fetch(self) -> None:
        source = self._raft.fetch_source()
        if source == ANY_NODE:
            source = self._random.choice(self._raft.voters.ids())
        if source is None or source == self.id:
            return
        self._is_fetching = True
        epoch, log = self._raft.epoch, self.disk.log
        request: Fetch | FetchSnapshot = FetchSnapshot(self.key, epoch)
        if not self._snapshot_wanted:
            known = self._raft.high_watermark
            request = Fetch(self.key, epoch, log.end_offset, log.last_epoch, known)
        truncations = log.truncations

        def answered(response: Any) -> None:
            if response in (REFUSED, LOST):
                self._lose(response, source)
                return
            if log.truncations == truncations:
                self._take(response)
            go_on()

        def go_on() -> None:
            self._is_fetching = False
            self._settle()

        self._network.ask(self.id, source, request, self._on_answer(answered))
        self._retry_fetch = go_on

    def _lose(self, response: str, source: int) -> None:
        role = self._raft.role
        if response == REFUSED and isinstance(role, Follower) and role.leader_id == source:
            self._raft.on_leader_lost(self._clock.now_ms)
        self._clock.later(RETRY_MS, self._mine(self._retry_fetch))
        self._set_timer()

    def _take(self, response: Fetched | FetchedSnapshot) -> None:
        raft, log, now_ms = self._raft, self.disk.log, self._clock.now_ms
        error = response.verdict.error if isinstance(response, Fetched) else response.error
        self._snapshot_wanted = False
        if not raft.on_fetch_response(error, response.leader_id, response.epoch, now_ms):
            return
        if isinstance(response, FetchedSnapshot):
            assert response.snapshot is not None
            end_offset, epoch = response.snapshot.id
            if (epoch, end_offset) > (log.last_epoch, log.end_offset):
                self._install(response.snapshot)
        elif response.verdict.diverging is not None:
            end_offset = log.truncation_point(response.verdict.diverging)
            self._checkers.truncates(self, end_offset)
            log.truncate(end_offset)
            raft.on_truncated(end_offset)
            raft.on_voters_changed(*log.newest_voters(), now_ms)
        elif response.verdict.snapshot is not None:
            self._snapshot_wanted = True
        else:
            for record in response.records:
                self._append(record)
            raft.on_leader_high_watermark(response.high_watermark)

    def _install(self, snapshot: Snapshot) -> None:
        now_ms = self._clock.now_ms
        self._checkers.installs(self, snapshot)
        self.disk.log.replace(snapshot)
        self._raft.on_truncated(snapshot.id.end_offset)
        self._raft.on_flushed(snapshot.id.end_offset, now_ms)
        self._raft.on_voters_changed(snapshot.voters, snapshot.voters_offset, now_ms)
        self._raft.on_leader_high_watermark(snapshot.id.end_offset)

    # Answering

    def receive(self, request: Any, reply: Answered) -> None:
        self._mine(lambda: self._serve(request, reply))()

    def _serve(self, request: Any, reply: Answered) -> None:
        raft, now_ms = self._raft, self._clock.now_ms
        response: Any
        match request:
            case RaftVoteRequest():
                response = raft.election.on_vote_request(request, now_ms)
                self._settle()
                self._checkers.votes(self, request, response)
            case BeginEpochRequest():
                error = raft.election.on_begin_epoch_request(request, now_ms)
                response = EpochResponse(error, raft.leader_id, raft.epoch)
            case EndEpochRequest():
                error = raft.election.on_end_epoch_request(request, now_ms)
                response = EpochResponse(error, raft.leader_id, raft.epoch)
            case FetchSnapshot():
                error = raft.leadership.on_fetch_snapshot_request(
                    request.replica, request.epoch, now_ms
                )
                snapshot = self.disk.log.snapshot
                if error is ErrorCode.NONE and snapshot is None:
                    error = ErrorCode.SNAPSHOT_NOT_FOUND
                response = FetchedSnapshot(error, raft.leader_id, raft.epoch, snapshot)
            case Fetch():
                self._poll(request, reply)
                return
        self._settle()
        self._checkers.responses(self)
        reply(response)

    def _poll(self, fetch: Fetch, reply: Answered) -> None:
        verdict = self._judge(fetch)
        self._settle()
        if not verdict.has_records or not self._raft.is_leader or self._is_news(fetch):
            reply(self._fetched(fetch, verdict))
            return
        self._polls.append((fetch, reply))

        def give_up() -> None:
            if (fetch, reply) in self._polls:
                self._polls.remove((fetch, reply))
                reply(self._fetched(fetch, self._judge(fetch)))
                self._settle()

        self._clock.later(LONG_POLL_MS, self._mine(give_up))

    def _judge(self, fetch: Fetch) -> FetchOutcome:
        return self._raft.leadership.on_fetch_request(
            fetch.replica, fetch.epoch, fetch.offset, fetch.last_epoch, self._clock.now_ms
        )

    def _is_news(self, fetch: Fetch) -> bool:
        known = self._raft.role.high_watermark if isinstance(self._raft.role, Leader) else -1
        return self.disk.log.end_offset > fetch.offset or known > fetch.high_watermark

    def _answer_polls(self) -> None:
        ready = [(fetch, reply) for fetch, reply in self._polls if self._is_news(fetch)]
        if ready and self._raft.is_leader:
            self._polls = [item for item in self._polls if item not in ready]
            for fetch, reply in ready:
                reply(self._fetched(fetch, self._judge(fetch)))

    def _refuse_polls(self) -> None:
        polls, self._polls = self._polls, []
        for fetch, reply in polls:
            reply(self._fetched(fetch, self._judge(fetch)))

    def _fetched(self, fetch: Fetch, verdict: FetchOutcome) -> Fetched:
        raft, log = self._raft, self.disk.log
        known = raft.role.high_watermark if isinstance(raft.role, Leader) else -1
        good = verdict.has_records and raft.is_leader
        records = log.read(fetch.offset, self.max_fetch_records) if good else []
        return Fetched(verdict, raft.leader_id, raft.epoch, known, records)
