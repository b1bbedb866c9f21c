"""What a broker's answer to a produced batch means for it."""

from enum import Enum, auto

from barnabas.wire.errors import ErrorCode


class Verdict(Enum):
    APPENDED = auto()
    RETRY = auto()  # as it is, after a pause
    UNSURE = auto()  # the same, but it may have been appended
    MOVED = auto()  # as it is, to whoever leads the partition now
    TOO_LARGE = auto()  # in smaller batches
    MISPLACED = auto()  # what comes before it is missing on the broker
    FENCED = auto()  # another producer has taken over: nothing of this one is accepted any more
    REFUSED = auto()


def verdict(code: int) -> Verdict:
    known = _VERDICTS.get(code)
    if known is not None:
        return known
    return Verdict.RETRY if ErrorCode.of(code).retriable else Verdict.REFUSED


_VERDICTS: dict[int, Verdict] = {
    ErrorCode.NONE: Verdict.APPENDED,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.APPENDED,
    ErrorCode.REQUEST_TIMED_OUT: Verdict.UNSURE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Verdict.UNSURE,
    ErrorCode.NETWORK_EXCEPTION: Verdict.UNSURE,
    ErrorCode.UNKNOWN_SERVER_ERROR: Verdict.REFUSED,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.MOVED,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.MOVED,
    ErrorCode.MESSAGE_TOO_LARGE: Verdict.TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: Verdict.TOO_LARGE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.MISPLACED,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.MISPLACED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.MISPLACED,
    ErrorCode.PRODUCER_FENCED: Verdict.FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FENCED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Verdict.FENCED,
}
