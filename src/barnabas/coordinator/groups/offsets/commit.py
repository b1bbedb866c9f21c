"""OffsetCommit (key 8) and TxnOffsetCommit (key 28): store how far a group has read.

A partition that does not exist, or whose metadata is too long, is an error of that partition. A
sender that may not commit in this group is an error of the whole request. As in Kafka, the sender
is not checked if no partition of the request exists.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.coordinator.decision import (
    CoordinatorDecision,
    ProducerStamp,
    StartTimer,
)
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.rebalance import session_timer
from barnabas.coordinator.groups.context import GroupRequestContext, GroupSettings
from barnabas.coordinator.groups.group import FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
from barnabas.coordinator.groups.offsets.plain_commit import PlainCommit
from barnabas.coordinator.groups.offsets.record import (
    NO_EXPIRY,
    NO_LEADER_EPOCH,
    VERSION,
    VERSION_WITH_EXPIRY,
    CommittedOffset,
    OffsetKey,
)
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.wire.uuid import ZERO

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

T = TypeVar("T")

MIN_RECORD_BYTES = 50
MAX_INT64 = (1 << 63) - 1
BROKER_RETENTION = -1

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_TXN_VERSION_WITH_TOPIC_IDS = 6
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_STATES_WITH_SESSIONS = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)


def commit(
    request: OffsetCommitRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[OffsetCommitResponse]:
    api_version = context.client.api_version
    by_id = api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    retention_ms = request.retention_time_ms
    draft = _plain_draft(request, by_id, context) if retention_ms == BROKER_RETENTION else None
    if draft is None:
        draft = _draft(request.group_id, request.topics, by_id, retention_ms, context)
    effects: list[StartTimer] = []
    if draft.names_any_partition:
        has_epochs = api_version >= FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
        no_group = ErrorCode.GROUP_ID_NOT_FOUND if has_epochs else ErrorCode.ILLEGAL_GENERATION
        _check_sender(request, draft.records, no_group, groups, context)
        effects = _session_timer(request.group_id, request.member_id, groups)
    topics = _topics(
        request.topics, draft, OffsetCommitResponseTopic, OffsetCommitResponsePartition
    )
    response = OffsetCommitResponse(topics=topics)
    return CoordinatorDecision(draft.records, response, effects)


def may_commit(
    commit: PlainCommit,
    epoch: int,
    member_id: str,
    instance_id: str | None,
    api_version: int,
    groups: "GroupCoordinatorState",
    settings: GroupSettings,
) -> bool:
    """Returns whether the sender may commit all of this; if not, `commit` finds the error."""
    group = groups.by_id.get(commit.group_id)
    try:
        _check_size(len(commit), commit.group_id, settings)
        if group is None:
            return epoch < 0
        check = group.check_commit(
            member_id, instance_id, epoch, transactional=False, api_version=api_version
        )
    except KafkaError:
        return False
    return check is None


def restart_session(group_id: str, member_id: str, groups: "GroupCoordinatorState") -> None:
    """Restarts the session that a commit restarts, once the commit is written."""
    for timer in _session_timer(group_id, member_id, groups):
        groups.timers.start(timer)


def txn_commit(
    request: TxnOffsetCommitRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[TxnOffsetCommitResponse]:
    """The offsets are pending until the producer's transaction ends."""
    by_id = context.client.api_version >= FIRST_TXN_VERSION_WITH_TOPIC_IDS
    draft = _draft(request.group_id, request.topics, by_id, BROKER_RETENTION, context)
    if draft.names_any_partition:
        _check_txn_sender(request, draft.records, groups, context)
    topics = _topics(
        request.topics, draft, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition
    )
    response = TxnOffsetCommitResponse(topics=topics)
    producer = ProducerStamp(request.producer_id, request.producer_epoch)
    return CoordinatorDecision(_without_ids(draft.records), response, producer=producer)


class _Draft(NamedTuple):
    """What a commit writes and returns, if its sender may commit."""

    records: Sequence[CoordinatorRecord]
    codes: list[list[ErrorCode]]
    """Of each partition of each topic of the request."""

    @property
    def names_any_partition(self) -> bool:
        """Whether at least one of the partitions exists."""
        return bool(self.records) or any(
            code not in _UNKNOWN for codes in self.codes for code in codes
        )


def _topics(
    requested: Sequence[Any],
    draft: _Draft,
    topic_type: Callable[..., T],
    partition_type: Callable[..., Any],
) -> list[T]:
    """Returns the topics of a response, which have the same fields in both APIs."""
    return [
        topic_type(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                partition_type(partition_index=partition.partition_index, error_code=code)
                for partition, code in zip(topic.partitions, codes, strict=True)
            ],
        )
        for topic, codes in zip(requested, draft.codes, strict=True)
    ]


def _plain_draft(
    request: OffsetCommitRequest, by_id: bool, context: GroupRequestContext
) -> _Draft | None:
    """Returns the draft of a commit without metadata, which most have; None for others."""
    existing = context.image.topics
    commit = PlainCommit(request.group_id, context.now_ms)
    draft = _Draft(commit, [])
    for requested in request.topics:
        topic = existing.by_id(requested.topic_id) if by_id else existing.by_name(requested.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            draft.codes.append([code] * len(requested.partitions))
            continue
        codes = commit.add(topic.name, topic.topic_id, topic.partitions, requested.partitions)
        if codes is None:
            return None
        draft.codes.append(codes)
        _check_size(len(commit), request.group_id, context.settings)
    return draft


def _draft(
    group_id: str,
    topics: Sequence[OffsetCommitRequestTopic] | Sequence[TxnOffsetCommitRequestTopic],
    by_id: bool,
    retention_ms: int,
    context: GroupRequestContext,
) -> _Draft:
    now_ms = context.now_ms
    max_metadata = context.settings.broker("offset.metadata.max.bytes")
    existing = context.image.topics
    records: list[CoordinatorRecord] = []
    draft = _Draft(records, [])
    for requested in topics:
        topic = existing.by_id(requested.topic_id) if by_id else existing.by_name(requested.name)
        codes: list[ErrorCode] = []
        draft.codes.append(codes)
        for partition in requested.partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if topic is None and by_id:
                codes.append(ErrorCode.UNKNOWN_TOPIC_ID)
            elif topic is None or index not in topic.partitions:
                codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif _is_longer(metadata, max_metadata):
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                codes.append(ErrorCode.NONE)
                key = OffsetKey(group_id, topic.name, index)
                committed = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    now_ms,
                    NO_EXPIRY,
                    topic.topic_id,
                )
                records.append(_record(key, committed, retention_ms))
        _check_size(len(records), group_id, context.settings)
    return draft


def _check_size(count: int, group_id: str, settings: GroupSettings) -> None:
    """Raises KafkaError if the records cannot fit into one batch, before they are encoded.

    Each of them has the group's id, which may have 32 KB.
    """
    max_bytes = settings.broker("message.max.bytes")
    record_bytes = MIN_RECORD_BYTES + len(group_id)
    if count * record_bytes > max_bytes:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"More than {max_bytes // record_bytes} offsets do not fit into one batch of "
            f"{max_bytes} bytes (message.max.bytes): commit fewer at a time.",
        )


def _record(key: OffsetKey, committed: CommittedOffset, retention_ms: int) -> CoordinatorRecord:
    if retention_ms == BROKER_RETENTION:
        return CoordinatorRecord(key, committed, VERSION)
    # This version has no field for an epoch or an id, and only what is written may be replayed.
    expiring = committed._replace(
        leader_epoch=NO_LEADER_EPOCH,
        expire_timestamp=min(committed.commit_timestamp + retention_ms, MAX_INT64),
        topic_id=ZERO,
    )
    return CoordinatorRecord(key, expiring, VERSION_WITH_EXPIRY)


def _without_ids(records: Sequence[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """Kafka does not write topic ids in transactions."""
    return [record._replace(value=record.value._replace(topic_id=ZERO)) for record in records]


def _is_longer(metadata: str, max_length: int) -> bool:
    """Kafka counts UTF-16 units: one or two per character."""
    if len(metadata) * 2 <= max_length:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) > max_length * 2


def _check_sender(
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    records: Sequence[CoordinatorRecord],
    no_group: ErrorCode,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> None:
    """Raises KafkaError if the sender may not commit in the group.

    A sender without a generation is an administrator, or a consumer that assigns its partitions
    itself: its commit creates the group.
    """
    group = groups.by_id.get(request.group_id)
    epoch = request.generation_id_or_member_epoch
    if group is None:
        if epoch >= 0:
            raise KafkaError(no_group, f"There is no group {request.group_id}: join it first.")
        return
    check = group.check_commit(
        request.member_id,
        request.group_instance_id,
        epoch,
        transactional=isinstance(request, TxnOffsetCommitRequest),
        api_version=context.client.api_version,
    )
    if check is not None:
        for (_, topic, partition), committed, _ in records:
            check(topic, committed.topic_id, partition)


def _check_txn_sender(
    request: TxnOffsetCommitRequest,
    records: Sequence[CoordinatorRecord],
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> None:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets need the name of a group.")
    try:
        _check_sender(request, records, ErrorCode.ILLEGAL_GENERATION, groups, context)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # producers do not know that code
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


def _session_timer(
    group_id: str, member_id: str, groups: "GroupCoordinatorState"
) -> list[StartTimer]:
    """A commit restarts the session of a member of a classic group."""
    group = groups.by_id.get(group_id)
    if isinstance(group, ClassicGroup) and group.state in _STATES_WITH_SESSIONS:
        return [session_timer(group, group.members[member_id])]
    return []
