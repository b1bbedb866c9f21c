"""Fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

A full fetch (epoch 0) may open a session; incremental fetches carry the next epoch, the
partitions whose position moved and those to forget, and are answered with the partitions that
have something new. A pure cache: no clock, no partition and no socket of its own.

    context = sessions.context(request, version, now_ms)
    for wanted in context.unread(): ...
    return context.answer(answers, now_ms)
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from random import Random

from barnabas.server.fetching.dirty_partitions import Stirred
from barnabas.server.fetching.fetch_session import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    INITIAL_EPOCH,
    MAX_INT,
    EvictionRank,
    FetchSession,
    PartitionKey,
    SessionPartition,
    next_epoch,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FINAL_EPOCH = -1
NO_SESSION = 0
FIRST_VERSION_WITH_REPLICA_STATE = 15
EVICTION_MS = 120_000


class FetchSessions:
    """The sessions a broker keeps, at most `slots` of them.

    When full, a session unused for `eviction_ms` makes room first. Otherwise a larger fetch may
    push out a smaller session that has lived that long; a follower's fetch may push out any
    consumer's session, and a consumer's fetch never a young one.
    """

    __slots__ = (
        "_by_id",
        "_evictable_by_all",
        "_evictable_by_followers",
        "_eviction_ms",
        "_random",
        "evictions",
        "partition_count",
        "slots",
    )

    def __init__(
        self, slots: int, *, eviction_ms: int = EVICTION_MS, random: Random | None = None
    ) -> None:
        self.slots = slots
        self.partition_count = 0
        self.evictions = 0
        self._eviction_ms = eviction_ms
        self._random = random or Random()
        self._by_id: dict[int, FetchSession] = {}  # least recently used first
        self._evictable_by_followers: list[EvictionRank] = []  # sorted
        self._evictable_by_all: list[EvictionRank] = []  # sorted

    def __len__(self) -> int:
        return len(self._by_id)

    def context(self, request: FetchRequest, version: int, now_ms: int) -> "FetchContext":
        """What this fetch is about, after the session (if any) took in its changes."""
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._remove(request.session_id)
            kind = ContextKind.FULL if epoch == INITIAL_EPOCH else ContextKind.SESSIONLESS
            return FetchContext(kind, self, _wanted(request, version), request, version)
        session = self._by_id.get(request.session_id)
        if session is None:
            return FetchContext.refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext.refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= FIRST_VERSION_WITH_TOPIC_IDS):
            return FetchContext.refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request, version)
        if not session.partitions:
            self._remove(session.session_id)
            return FetchContext(ContextKind.SESSIONLESS, self, {}, request, version)
        session.epoch = next_epoch(epoch)
        self._touch(session, now_ms)
        return FetchContext(
            ContextKind.INCREMENTAL, self, session.partitions, request, version, session
        )

    def open(
        self,
        partitions: dict[PartitionKey, SessionPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        """A new session's id, or NO_SESSION where there is no room for one."""
        if not partitions or not self._make_room(privileged, len(partitions), now_ms):
            return NO_SESSION
        session_id = self._random.randint(1, MAX_INT)
        while session_id in self._by_id:
            session_id = self._random.randint(1, MAX_INT)
        session = FetchSession(session_id, partitions, privileged, uses_topic_ids, now_ms)
        self._by_id[session_id] = session
        self.partition_count += session.counted_size
        self._rank(session, now_ms)
        return session_id

    def _make_room(self, privileged: bool, size: int, now_ms: int) -> bool:
        if len(self._by_id) < self.slots:
            return True
        oldest = next(iter(self._by_id.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self._evict(oldest.session_id)
            return True
        ranks = self._evictable_by_followers if privileged else self._evictable_by_all
        # Equal in size is not enough: two clients would push each other out for ever.
        if not ranks or (privileged, size, NO_SESSION) < ranks[0]:
            return False
        self._evict(ranks[0][2])
        return True

    def _evict(self, session_id: int) -> None:
        self.evictions += 1
        self._remove(session_id)

    def _remove(self, session_id: int) -> None:
        session = self._by_id.pop(session_id, None)
        if session is not None:
            session.stirred.close()
            self.partition_count -= session.counted_size
            self._unrank(session)

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        by_id = self._by_id
        by_id[session.session_id] = by_id.pop(session.session_id)
        size = len(session.partitions)
        if size != session.counted_size:
            self._unrank(session)
            self.partition_count += size - session.counted_size
            session.counted_size = size
            self._rank(session, now_ms)
        elif not session.matured and now_ms - session.created_ms > self._eviction_ms:
            self._unrank(session)
            self._rank(session, now_ms)

    def _rank(self, session: FetchSession, now_ms: int) -> None:
        session.matured = now_ms - session.created_ms > self._eviction_ms
        if session.matured or not session.privileged:
            insort(self._evictable_by_followers, session.rank)
        if session.matured:
            insort(self._evictable_by_all, session.rank)

    def _unrank(self, session: FetchSession) -> None:
        for ranks in (self._evictable_by_followers, self._evictable_by_all):
            at = bisect_left(ranks, session.rank)
            if at < len(ranks) and ranks[at] == session.rank:
                del ranks[at]


class ContextKind(Enum):
    SESSIONLESS = "sessionless"
    FULL = "full"
    INCREMENTAL = "incremental"
    REFUSED = "refused"


class FetchContext:
    """One fetch: the partitions it is about, and how its answer is put together."""

    __slots__ = (
        "_expected_epoch",
        "_partitions",
        "_request",
        "_session",
        "_sessions",
        "_version",
        "error",
        "kind",
    )

    def __init__(
        self,
        kind: ContextKind,
        sessions: FetchSessions | None,
        partitions: dict[PartitionKey, SessionPartition],
        request: FetchRequest | None,
        version: int,
        session: FetchSession | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.kind = kind
        self.error = error
        """Set when the session is not as the client believes: read nothing, `answer([])`."""
        self._sessions = sessions
        self._partitions = partitions
        self._request = request
        self._version = version
        self._session = session
        self._expected_epoch = session.epoch if session is not None else FINAL_EPOCH

    @classmethod
    def refused(cls, error: ErrorCode) -> "FetchContext":
        return cls(ContextKind.REFUSED, None, {}, None, 0, None, error)

    def partitions(self) -> Collection[SessionPartition]:
        """Every partition of the fetch."""
        return self._partitions.values()

    @property
    def stirred(self) -> Stirred | None:
        """What moves among the partitions of the session that this fetch goes on with."""
        return self._session.stirred if self._session is not None else None

    def unread(self) -> Collection[SessionPartition]:
        """The partitions that this fetch must read now: of a session those that may have news."""
        return self._session.stirred.take() if self._session is not None else self.partitions()

    def answer(
        self, answers: Iterable[tuple[SessionPartition, PartitionData]], now_ms: int
    ) -> FetchResponse:
        """The response, and the session's memory of what was answered.

        `answers` may leave out partitions that have no news.
        """
        match self.kind:
            case ContextKind.REFUSED:
                return FetchResponse(error_code=self.error)
            case ContextKind.SESSIONLESS:
                return FetchResponse(responses=_by_topic(answers))
            case ContextKind.FULL:
                return self._open_session(list(answers), now_ms)
            case ContextKind.INCREMENTAL:
                return self._answer_changes(answers)

    def _open_session(
        self, answers: list[tuple[SessionPartition, PartitionData]], now_ms: int
    ) -> FetchResponse:
        assert self._sessions is not None
        assert self._request is not None
        for wanted, answered in answers:
            wanted.remember(answered)
        session_id = self._sessions.open(
            self._partitions,
            privileged=_is_follower(self._request, self._version),
            uses_topic_ids=self._version >= FIRST_VERSION_WITH_TOPIC_IDS,
            now_ms=now_ms,
        )
        return FetchResponse(session_id=session_id, responses=_by_topic(answers))

    def _answer_changes(
        self, answers: Iterable[tuple[SessionPartition, PartitionData]]
    ) -> FetchResponse:
        session = self._session
        assert session is not None
        if session.epoch != self._expected_epoch:
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        changed, with_records = [], []
        for wanted, answered in answers:
            has_records = bool(answered.records)
            if has_records or wanted.must_hear(answered):
                wanted.remember(answered)
                changed.append((wanted, answered))
            if has_records:
                with_records.append(wanted)
            elif not wanted.is_at_rest:
                session.stirred.stir(wanted)
        # Next time those that got nothing come first: one busy partition cannot keep the others
        # out of a full response.
        for wanted in with_records:
            session.stirred.stir(wanted)
        return FetchResponse(session_id=session.session_id, responses=_by_topic(changed))


def _wanted(request: FetchRequest, version: int) -> dict[PartitionKey, SessionPartition]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    wanted: dict[PartitionKey, SessionPartition] = {}
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for partition in topic.partitions:
            key = (name, partition.partition)
            wanted[key] = SessionPartition(key, topic, partition)
    return wanted


def _by_topic(
    answers: Iterable[tuple[SessionPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Neighbours of one topic share its entry; the order of the partitions stays."""
    responses: list[FetchableTopicResponse] = []
    name: str | bytes | None = None
    append: Callable[[PartitionData], None]
    for wanted, answered in answers:
        if wanted.key[0] != name:
            name = wanted.key[0]
            response = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id)
            responses.append(response)
            append = response.partitions.append
        append(answered)
    return responses


def _is_follower(request: FetchRequest, version: int) -> bool:
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        return request.replica_state.replica_id >= 0
    return request.replica_id >= 0
