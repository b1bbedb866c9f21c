"""The cache of fetch sessions (KIP-227): a client names its partitions once, then only changes.

A full fetch (epoch 0) may open a session. An incremental fetch has the next epoch, the partitions
whose position changed and those to forget; its response has the partitions with something new. The
cache takes the time as an argument and uses no partition and no socket.

    fetch = sessions.context(request, version, now_ms)
    for partition in fetch.partitions_to_read(): ...
    return fetch.response(results, now_ms)
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from random import Random

from barnabas.security.principal import KafkaPrincipal
from barnabas.server.fetching.dirty_partitions import DirtyPartitions
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


class FetchSessionCache:
    """The fetch sessions of a broker, at most `max_sessions`.

    If the cache is full, a session that was not used for `eviction_ms` is evicted first. Otherwise
    a larger fetch may evict a smaller session of at least that age; a follower's fetch may evict
    any session of a consumer, and a consumer's fetch never evicts a younger session.
    """

    __slots__ = (
        "_by_id",
        "_evictable_by_all",
        "_evictable_by_followers",
        "_eviction_ms",
        "_random",
        "evictions",
        "max_sessions",
        "partition_count",
    )

    def __init__(
        self, max_sessions: int, *, eviction_ms: int = EVICTION_MS, random: Random | None = None
    ) -> None:
        self.max_sessions = max_sessions
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
        """Returns the context of a fetch, after its session, if any, was updated."""
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._remove(request.session_id)
            kind = ContextKind.FULL if epoch == INITIAL_EPOCH else ContextKind.SESSIONLESS
            return FetchContext(kind, self, _session_partitions(request, version), request, version)
        session = self._by_id.get(request.session_id)
        if session is None:
            return FetchContext.error_context(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext.error_context(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= FIRST_VERSION_WITH_TOPIC_IDS):
            return FetchContext.error_context(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request, version)
        if not session.partitions:
            self._remove(session.session_id)
            return FetchContext(ContextKind.SESSIONLESS, self, {}, request, version)
        self.advance(session, now_ms)
        return FetchContext(
            ContextKind.INCREMENTAL, self, session.partitions, request, version, session
        )

    def find(self, session_id: int) -> FetchSession | None:
        return self._by_id.get(session_id)

    def advance(self, session: FetchSession, now_ms: int) -> None:
        """A fetch continues a session: the next one must have the next epoch."""
        session.epoch = next_epoch(session.epoch)
        self._touch(session, now_ms)

    def open(
        self,
        partitions: dict[PartitionKey, SessionPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        """Opens a session and returns its id, or NO_SESSION if the cache is full."""
        if not partitions or not self._ensure_capacity(privileged, len(partitions), now_ms):
            return NO_SESSION
        session_id = self._random.randint(1, MAX_INT)
        while session_id in self._by_id:
            session_id = self._random.randint(1, MAX_INT)
        session = FetchSession(session_id, partitions, privileged, uses_topic_ids, now_ms)
        self._by_id[session_id] = session
        self.partition_count += session.cached_size
        self._rank(session, now_ms)
        return session_id

    def _ensure_capacity(self, privileged: bool, size: int, now_ms: int) -> bool:
        if len(self._by_id) < self.max_sessions:
            return True
        oldest = next(iter(self._by_id.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self._evict(oldest.session_id)
            return True
        ranks = self._evictable_by_followers if privileged else self._evictable_by_all
        # A session of equal size is not evicted: two clients would evict each other for ever.
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
            session.dirty.close()
            self.partition_count -= session.cached_size
            self._unrank(session)

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        by_id = self._by_id
        by_id[session.session_id] = by_id.pop(session.session_id)
        size = len(session.partitions)
        if size != session.cached_size:
            self._unrank(session)
            self.partition_count += size - session.cached_size
            session.cached_size = size
            self._rank(session, now_ms)
        elif not session.is_mature and now_ms - session.created_ms > self._eviction_ms:
            self._unrank(session)
            self._rank(session, now_ms)

    def _rank(self, session: FetchSession, now_ms: int) -> None:
        session.is_mature = now_ms - session.created_ms > self._eviction_ms
        if session.is_mature or not session.privileged:
            insort(self._evictable_by_followers, session.rank)
        if session.is_mature:
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
    ERROR = "error"


class FetchContext:
    """One fetch: its partitions, and how its response is built."""

    __slots__ = (
        "_partitions",
        "_request",
        "_session",
        "_sessions",
        "_version",
        "error",
        "expected_epoch",
        "kind",
    )

    def __init__(
        self,
        kind: ContextKind,
        sessions: FetchSessionCache | None,
        partitions: dict[PartitionKey, SessionPartition],
        request: FetchRequest | None,
        version: int,
        session: FetchSession | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.kind = kind
        self.error = error
        """Set if the session is not what the client expects: read nothing, use `response(())`."""
        self._sessions = sessions
        self._partitions = partitions
        self._request = request
        self._version = version
        self._session = session
        self.expected_epoch = session.epoch if session is not None else FINAL_EPOCH
        """The epoch of the session, unless a later fetch continues it before this one responds."""

    @classmethod
    def error_context(cls, error: ErrorCode) -> "FetchContext":
        return cls(ContextKind.ERROR, None, {}, None, 0, None, error)

    def partitions(self) -> Collection[SessionPartition]:
        """Returns all partitions of the fetch."""
        return self._partitions.values()

    @property
    def dirty_partitions(self) -> DirtyPartitions | None:
        """The dirty partitions of the session, if this fetch continues one."""
        return self._session.dirty if self._session is not None else None

    def check_permissions_of(
        self, principal: KafkaPrincipal, host: str, generation: int | None
    ) -> None:
        """Has all partitions of a session read, unless the client's permissions are unchanged.

        `generation` is that of the authorizer's decisions.
        """
        session = self._session
        if session is None:
            return
        client = (principal, host, generation)
        if generation is None or session.checked_client != client:
            session.checked_client = client
            for partition in self._partitions.values():
                session.dirty.mark_dirty(partition)

    def partitions_to_read(self) -> Collection[SessionPartition]:
        """Returns the partitions to read now: of a session, the dirty ones."""
        return self._session.dirty.take_all() if self._session is not None else self.partitions()

    def response(
        self, results: Iterable[tuple[SessionPartition, PartitionData]], now_ms: int
    ) -> FetchResponse:
        """Returns the response, and records in the session what it returns.

        `results` may omit partitions without changes.
        """
        match self.kind:
            case ContextKind.ERROR:
                return FetchResponse(error_code=self.error)
            case ContextKind.SESSIONLESS:
                return FetchResponse(responses=by_topic(results))
            case ContextKind.FULL:
                return self._open_session(list(results), now_ms)
            case ContextKind.INCREMENTAL:
                return self._respond_with_changes(results)

    def throttled_response(
        self, results: Iterable[tuple[SessionPartition, PartitionData]], delay_ms: int
    ) -> FetchResponse:
        """Returns a response without `results`, which the next fetch reads again.

        A session stays as it is; a fetch that would open one opens none.
        """
        session = self._session
        if session is None:
            return FetchResponse(throttle_time_ms=delay_ms)
        for partition, _ in results:
            session.dirty.mark_dirty(partition)
        response = self._respond_with_changes(())
        response.throttle_time_ms = delay_ms
        return response

    def _open_session(
        self, results: list[tuple[SessionPartition, PartitionData]], now_ms: int
    ) -> FetchResponse:
        assert self._sessions is not None
        assert self._request is not None
        for partition, result in results:
            partition.record_returned(result)
        session_id = self._sessions.open(
            self._partitions,
            privileged=is_follower(self._request, self._version),
            uses_topic_ids=self._version >= FIRST_VERSION_WITH_TOPIC_IDS,
            now_ms=now_ms,
        )
        return FetchResponse(session_id=session_id, responses=by_topic(results))

    def _respond_with_changes(
        self, results: Iterable[tuple[SessionPartition, PartitionData]]
    ) -> FetchResponse:
        session = self._session
        assert session is not None
        if session.epoch != self.expected_epoch:
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        changed, with_records = [], []
        for partition, result in results:
            has_records = bool(result.records)
            if has_records or partition.must_return(result):
                partition.record_returned(result)
                changed.append((partition, result))
            if has_records:
                with_records.append(partition)
            elif not partition.is_caught_up:
                session.dirty.mark_dirty(partition)
        # Next time the partitions without records come first, so that one busy partition cannot
        # keep the others out of a full response.
        for partition in with_records:
            session.dirty.mark_dirty(partition)
        return FetchResponse(session_id=session.session_id, responses=by_topic(changed))


def _session_partitions(
    request: FetchRequest, version: int
) -> dict[PartitionKey, SessionPartition]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    partitions: dict[PartitionKey, SessionPartition] = {}
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for requested in topic.partitions:
            key = (name, requested.partition)
            partitions[key] = SessionPartition(key, topic, requested)
    return partitions


def by_topic(
    results: Iterable[tuple[SessionPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Groups adjacent partitions of a topic; keeps the order of the partitions."""
    responses: list[FetchableTopicResponse] = []
    name: str | bytes | None = None
    append: Callable[[PartitionData], None]
    for partition, result in results:
        if partition.key[0] != name:
            name = partition.key[0]
            response = FetchableTopicResponse(topic=partition.topic, topic_id=partition.topic_id)
            responses.append(response)
            append = response.partitions.append
        append(result)
    return responses


def is_follower(request: FetchRequest, version: int) -> bool:
    """Returns whether a broker sent the request, to replicate partitions."""
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        return request.replica_state.replica_id >= 0
    return request.replica_id >= 0
