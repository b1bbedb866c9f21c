"""A raft node: the real consensus, driven as by its driver, on a simulated disk and network."""

from functools import partial
from random import Random
from typing import Any, NamedTuple

from tests.simulation.raft.checkers import Checkers
from tests.simulation.raft.memory_log import Disk, Record, Snapshot
from tests.simulation.world.network import RequestNetwork, ResponseCallback
from tests.simulation.world.process import Process, ProcessLoop

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
REQUEST_TIMEOUT_MS = 250
RETRY_MS = 20
LONG_POLL_MS = 120


class Fetch(NamedTuple):
    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int


class Fetched(NamedTuple):
    outcome: FetchOutcome
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
    """A node that runs as one process after the other on one disk."""

    def __init__(
        self,
        key: ReplicaKey,
        disk: Disk,
        loop: ProcessLoop,
        network: RequestNetwork,
        random: Random,
        checkers: Checkers,
    ) -> None:
        self.key = key
        self.id = key.node_id
        self.disk = disk
        self.raft: RaftNode | None = None
        self.max_fetch_records = 8
        self._loop = loop
        self._network = network
        self._random = random
        self._checkers = checkers
        self._process = Process(f"node-{self.id}", f"node-{self.id}", loop)
        network.hosts[self.id] = self

    # Processes

    @property
    def is_up(self) -> bool:
        return self.raft is not None

    @property
    def is_paused(self) -> bool:
        return self._process.is_paused

    def start(self) -> None:
        self._process = Process(f"node-{self.id}", f"node-{self.id}", self._loop)
        self._sent: dict[int, OutgoingRequest] = {}
        self._is_fetching = False
        self._needs_snapshot = False
        self._is_flushing = False
        self._polls: list[tuple[Fetch, ResponseCallback]] = []
        self._ticks_at_ms: int | None = None
        log, now_ms = self.disk.log, self._loop.now_ms
        voters, _ = log.newest_voters()
        self.raft = RaftNode(self.key, voters, self.disk.state, log, TIMEOUTS, self._random, now_ms)
        self._checkers.on_started(self)
        self._perform_effects()

    def crash(self) -> None:
        self.raft = None
        self._process.kill()
        self.disk.log.crash(self._random)

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    # After every step

    def _perform_effects(self) -> None:
        raft = self._raft
        log = self.disk.log
        for effect in raft.take_effects():
            match effect:
                case Persist(state=state):
                    self._checkers.on_persist(self, state)
                    self.disk.state = state
                case AppendLeaderChange(epoch=epoch):
                    self._append(Record(epoch, f"leader {self.id}"))
                case HighWatermark(offset=offset):
                    self._checkers.on_committed(self, offset)
                case RoleChanged(role=role):
                    self._checkers.on_role_changed(self, role)
                    if not isinstance(role, Leader):
                        self._complete_polls()
        if log.durable_end_offset != log.end_offset:
            self._flush()
        if self._polls:
            self._complete_ready_polls()
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
            self._raft.tick(self._loop.now_ms)
            self._perform_effects()

        self._process.call_later(max(0, deadline_ms - self._loop.now_ms), tick)

    # The log

    def _append(self, record: Record) -> None:
        log = self.disk.log
        self._checkers.on_append(self, record)
        log.append(record)
        if isinstance(record.content, VoterSet):
            self._raft.on_voters_changed(record.content, log.end_offset - 1, self._loop.now_ms)

    def _flush(self) -> None:
        log = self.disk.log
        if self._is_flushing:
            return
        self._is_flushing = True
        upto, truncations = log.end_offset, log.truncations

        def on_flushed() -> None:
            self._is_flushing = False
            if truncations == log.truncations:
                log.durable_end_offset = upto
                self._raft.on_flushed(upto, self._loop.now_ms)
            self._perform_effects()

        flush_s = self.disk.flush_latency.draw_s(self._random)
        self._process.call_later(flush_s * 1000, on_flushed)

    def propose(self, content: str | VoterSet) -> bool:
        """Appends a record if this node leads. Returns whether it did."""
        if self.is_paused or self.raft is None or not self.raft.is_leader:
            return False
        self._append(Record(self.raft.epoch, content))
        self._perform_effects()
        return True

    def resign(self) -> None:
        self._raft.leadership.resign(self._loop.now_ms)
        self._perform_effects()

    def take_snapshot(self) -> None:
        end_offset = self._raft.high_watermark
        if self.disk.log.start_offset < end_offset <= self.disk.log.durable_end_offset:
            self.disk.log.take_snapshot(end_offset)

    def lose_connection(self) -> None:
        self._raft.on_leader_lost(self._loop.now_ms)
        self._perform_effects()

    def may_change_voters(self) -> bool:
        """One change at a time, and only after this epoch has committed a record (KIP-853)."""
        role = self.raft.role if self.raft and not self.is_paused else None
        _, offset = self.disk.log.newest_voters()
        return isinstance(role, Leader) and role.high_watermark > max(offset, role.start_offset)

    # Requests

    def _send(self, outgoing: OutgoingRequest) -> None:
        voter_id = outgoing.voter.node_id
        if self._sent.get(voter_id) == outgoing:
            return
        self._sent[voter_id] = outgoing
        self._checkers.on_request_sent(self, outgoing.request)

        def on_response(response: Any) -> None:
            if isinstance(response, OSError):
                self._process.call_later(RETRY_MS, forget)
                return
            match outgoing:
                case SendVote():
                    self._raft.election.on_vote_response(voter_id, response, self._loop.now_ms)
                case SendBeginEpoch():
                    self._raft.election.on_begin_epoch_response(
                        voter_id, response, self._loop.now_ms
                    )
                case SendEndEpoch():
                    self._raft.election.on_end_epoch_response(voter_id, response, self._loop.now_ms)
            forget()

        def forget() -> None:
            if self._sent.get(voter_id) == outgoing:
                del self._sent[voter_id]
            self._perform_effects()

        self._send_request(voter_id, outgoing.request, on_response)

    def _send_request(self, node_id: int, request: Any, on_response: ResponseCallback) -> None:
        """Sends a request. The callback is a step of the process that sent it."""
        on_arrival = partial(self._process.submit, on_response)
        self._network.send(self.id, node_id, request, REQUEST_TIMEOUT_MS, on_arrival)

    def _fetch(self) -> None:
        source = self._raft.fetch_source()
        if source == ANY_NODE:
            source = self._random.choice(self._raft.voters.ids())
        if source is None or source == self.id:
            return
        self._is_fetching = True
        epoch, log = self._raft.epoch, self.disk.log
        request: Fetch | FetchSnapshot = FetchSnapshot(self.key, epoch)
        if not self._needs_snapshot:
            high_watermark = self._raft.high_watermark
            request = Fetch(self.key, epoch, log.end_offset, log.last_epoch, high_watermark)
        truncations = log.truncations

        def on_response(response: Any) -> None:
            if isinstance(response, OSError):
                self._on_fetch_failed(response, source)
                return
            if log.truncations == truncations:
                self._on_fetched(response)
            continue_fetching()

        def continue_fetching() -> None:
            self._is_fetching = False
            self._perform_effects()

        self._send_request(source, request, on_response)
        self._retry_fetch = continue_fetching

    def _on_fetch_failed(self, failure: OSError, source: int) -> None:
        role = self._raft.role
        if (
            isinstance(failure, ConnectionRefusedError)
            and isinstance(role, Follower)
            and role.leader_id == source
        ):
            self._raft.on_leader_lost(self._loop.now_ms)
        self._process.call_later(RETRY_MS, self._retry_fetch)
        self._set_timer()

    def _on_fetched(self, response: Fetched | FetchedSnapshot) -> None:
        raft, log, now_ms = self._raft, self.disk.log, self._loop.now_ms
        error = response.outcome.error if isinstance(response, Fetched) else response.error
        self._needs_snapshot = False
        if not raft.on_fetch_response(error, response.leader_id, response.epoch, now_ms):
            return
        if isinstance(response, FetchedSnapshot):
            assert response.snapshot is not None
            end_offset, epoch = response.snapshot.id
            if (epoch, end_offset) > (log.last_epoch, log.end_offset):
                self._install(response.snapshot)
        elif response.outcome.diverging is not None:
            end_offset = log.truncation_point(response.outcome.diverging)
            self._checkers.on_truncate(self, end_offset)
            log.truncate(end_offset)
            raft.on_truncated(end_offset)
            raft.on_voters_changed(*log.newest_voters(), now_ms)
        elif response.outcome.snapshot is not None:
            self._needs_snapshot = True
        else:
            for record in response.records:
                self._append(record)
            raft.on_leader_high_watermark(response.high_watermark)

    def _install(self, snapshot: Snapshot) -> None:
        now_ms = self._loop.now_ms
        self._checkers.on_snapshot_installed(self, snapshot)
        self.disk.log.replace(snapshot)
        self._raft.on_truncated(snapshot.id.end_offset)
        self._raft.on_flushed(snapshot.id.end_offset, now_ms)
        self._raft.on_voters_changed(snapshot.voters, snapshot.voters_offset, now_ms)
        self._raft.on_leader_high_watermark(snapshot.id.end_offset)

    # Responses

    def on_request(self, request: Any, respond: ResponseCallback) -> None:
        self._process.submit(self._handle, request, respond)

    def _handle(self, request: Any, respond: ResponseCallback) -> None:
        raft, now_ms = self._raft, self._loop.now_ms
        response: Any
        match request:
            case RaftVoteRequest():
                response = raft.election.on_vote_request(request, now_ms)
                self._perform_effects()
                self._checkers.on_vote_response(self, request, response)
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
                self._poll(request, respond)
                return
        self._perform_effects()
        self._checkers.on_response_sent(self)
        respond(response)

    def _poll(self, fetch: Fetch, respond: ResponseCallback) -> None:
        outcome = self._check_fetch(fetch)
        self._perform_effects()
        if not outcome.has_records or not self._raft.is_leader or self._has_news(fetch):
            respond(self._fetched(fetch, outcome))
            return
        self._polls.append((fetch, respond))

        def on_timeout() -> None:
            if (fetch, respond) in self._polls:
                self._polls.remove((fetch, respond))
                respond(self._fetched(fetch, self._check_fetch(fetch)))
                self._perform_effects()

        self._process.call_later(LONG_POLL_MS, on_timeout)

    def _check_fetch(self, fetch: Fetch) -> FetchOutcome:
        return self._raft.leadership.on_fetch_request(
            fetch.replica, fetch.epoch, fetch.offset, fetch.last_epoch, self._loop.now_ms
        )

    def _has_news(self, fetch: Fetch) -> bool:
        role = self._raft.role
        high_watermark = role.high_watermark if isinstance(role, Leader) else -1
        return self.disk.log.end_offset > fetch.offset or high_watermark > fetch.high_watermark

    def _complete_ready_polls(self) -> None:
        ready = [(fetch, respond) for fetch, respond in self._polls if self._has_news(fetch)]
        if ready and self._raft.is_leader:
            self._polls = [item for item in self._polls if item not in ready]
            for fetch, respond in ready:
                respond(self._fetched(fetch, self._check_fetch(fetch)))

    def _complete_polls(self) -> None:
        polls, self._polls = self._polls, []
        for fetch, respond in polls:
            respond(self._fetched(fetch, self._check_fetch(fetch)))

    def _fetched(self, fetch: Fetch, outcome: FetchOutcome) -> Fetched:
        raft, log = self._raft, self.disk.log
        high_watermark = raft.role.high_watermark if isinstance(raft.role, Leader) else -1
        may_read = outcome.has_records and raft.is_leader
        records = log.read(fetch.offset, self.max_fetch_records) if may_read else []
        return Fetched(outcome, raft.leader_id, raft.epoch, high_watermark, records)
