"""OffsetCommit and TxnOffsetCommit: remember how far a group has read.

Partitions that do not exist and metadata that is too long are refused by themselves; whoever may
not commit in this group is refused altogether. As with Kafka, who names nothing that exists is
told so without being asked who it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coordinator.decision import Decision, ProducerStamp
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.group import FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
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
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.wire.uuid import ZERO

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

LEAST_RECORD_BYTES = 50
MAX_INT64 = (1 << 63) - 1
RETENTION_OF_THE_BROKER = -1

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_TXN_VERSION_WITH_TOPIC_IDS = 6
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_STATES_WITH_SESSIONS = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)


def commit(
    groups: "GroupCoordinatorState", request: OffsetCommitRequest, client: GroupClient
) -> Decision[OffsetCommitResponse]:
    by_id = client.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    draft = _draft(groups, request.group_id, request.topics, by_id, request.retention_time_ms)
    if draft.names_any_partition:
        has_epochs = client.api_version >= FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
        no_group = ErrorCode.GROUP_ID_NOT_FOUND if has_epochs else ErrorCode.ILLEGAL_GENERATION
        _check_sender(groups, request, client, draft.records, no_group)
        _restart_session(groups, request)
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition, code in zip(topic.partitions, codes, strict=True)
                ],
            )
            for topic, codes in zip(request.topics, draft.codes, strict=True)
        ]
    )
    return Decision(response, draft.records)


def txn_commit(
    groups: "GroupCoordinatorState", request: TxnOffsetCommitRequest, client: GroupClient
) -> Decision[TxnOffsetCommitResponse]:
    """The offsets are pending until the producer's transaction ends."""
    by_id = client.api_version >= FIRST_TXN_VERSION_WITH_TOPIC_IDS
    draft = _draft(groups, request.group_id, request.topics, by_id, RETENTION_OF_THE_BROKER)
    if draft.names_any_partition:
        _check_txn_sender(groups, request, client, draft.records)
    response = TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition, code in zip(topic.partitions, codes, strict=True)
                ],
            )
            for topic, codes in zip(request.topics, draft.codes, strict=True)
        ]
    )
    producer = ProducerStamp(request.producer_id, request.producer_epoch)
    return Decision(response, _without_ids(draft.records), producer=producer)


class _Draft(NamedTuple):
    """What a commit comes to, if its sender may commit."""

    records: list[CoordinatorRecord]
    codes: list[list[ErrorCode]]
    """For each partition of each topic of the request."""

    @property
    def names_any_partition(self) -> bool:
        """Whether at least one that exists is among them."""
        return bool(self.records) or any(
            code not in _UNKNOWN for codes in self.codes for code in codes
        )


def _draft(
    groups: "GroupCoordinatorState",
    group_id: str,
    topics: Sequence[OffsetCommitRequestTopic] | Sequence[TxnOffsetCommitRequestTopic],
    by_id: bool,
    retention_ms: int,
) -> _Draft:
    now_ms = groups.now_ms()
    longest = groups.settings.broker("offset.metadata.max.bytes")
    known = groups.image.topics
    draft = _Draft([], [])
    for each in topics:
        topic = known.by_id(each.topic_id) if by_id else known.by_name(each.name)
        codes: list[ErrorCode] = []
        draft.codes.append(codes)
        for partition in each.partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if topic is None and by_id:
                codes.append(ErrorCode.UNKNOWN_TOPIC_ID)
            elif topic is None or index not in topic.partitions:
                codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif _is_longer(metadata, longest):
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
                draft.records.append(_record(key, committed, retention_ms))
        _check_size(groups, draft.records)
    return draft


def _check_size(groups: "GroupCoordinatorState", records: Sequence[CoordinatorRecord]) -> None:
    """KafkaError if they cannot fit into a batch, however short: better told than tried."""
    largest_bytes = groups.settings.broker("message.max.bytes")
    if len(records) * LEAST_RECORD_BYTES > largest_bytes:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"More than {largest_bytes // LEAST_RECORD_BYTES} offsets do not fit into one batch of "
            f"{largest_bytes} bytes (message.max.bytes): commit fewer at a time.",
        )


def _record(key: OffsetKey, committed: CommittedOffset, retention_ms: int) -> CoordinatorRecord:
    if retention_ms == RETENTION_OF_THE_BROKER:
        return CoordinatorRecord(key, committed, VERSION)
    # This version has no place for an epoch or an id, and only what is written may be replayed.
    expiring = committed._replace(
        leader_epoch=NO_LEADER_EPOCH,
        expire_timestamp=min(committed.commit_timestamp + retention_ms, MAX_INT64),
        topic_id=ZERO,
    )
    return CoordinatorRecord(key, expiring, VERSION_WITH_EXPIRY)


def _without_ids(records: Sequence[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """Kafka does not write topic ids in transactions."""
    return [record._replace(value=record.value._replace(topic_id=ZERO)) for record in records]


def _is_longer(metadata: str, longest: int) -> bool:
    """Kafka counts units of UTF-16: one or two for a character."""
    if len(metadata) * 2 <= longest:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) > longest * 2


def _check_sender(
    groups: "GroupCoordinatorState",
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    client: GroupClient,
    records: Sequence[CoordinatorRecord],
    no_group: ErrorCode,
) -> None:
    """KafkaError unless the sender may commit in the group.

    One without a generation is an administrator, or a consumer that assigns itself its partitions:
    it makes the group by committing.
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
        api_version=client.api_version,
    )
    if check is not None:
        for (_, topic, partition), committed, _ in records:
            check(topic, committed.topic_id, partition)


def _check_txn_sender(
    groups: "GroupCoordinatorState",
    request: TxnOffsetCommitRequest,
    client: GroupClient,
    records: Sequence[CoordinatorRecord],
) -> None:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets need the name of a group.")
    try:
        _check_sender(groups, request, client, records, ErrorCode.ILLEGAL_GENERATION)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # which producers do not know
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


def _restart_session(groups: "GroupCoordinatorState", request: OffsetCommitRequest) -> None:
    """A member of a classic group is alive if it commits."""
    group = groups.by_id.get(request.group_id)
    if isinstance(group, ClassicGroup) and group.state in _STATES_WITH_SESSIONS:
        rebalance.restart_session(groups, group, group.members[request.member_id])
