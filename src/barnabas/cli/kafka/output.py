"""Output of Kafka's commands: tables with tabs, metrics, JSON events, and errors in Java's words.

An expected error exits with status 1. The message of a broker comes before Java's text. Only errors
that these commands can meet are here.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from barnabas.cli.operations.errors import describe_error, kafka_error_of
from barnabas.client.errors import KafkaError


@contextmanager
def exit_on_error(print_error: Callable[[str], None]) -> Iterator[None]:
    """Prints an expected error and exits with status 1."""
    try:
        yield
    except Exception as error:
        message = describe_java_error(error)
        if message is None:
            raise
        print_error(message)
        sys.exit(1)


def exit_on_error_to_stderr() -> AbstractContextManager[None]:
    return exit_on_error(lambda message: print(message, file=sys.stderr))


def describe_java_error(error: Exception) -> str | None:
    """Returns the message of an expected error, in Java's words if the broker has none."""
    if (kafka_error := kafka_error_of(error)) is None:
        return describe_error(error)
    return java_message(kafka_error)


_JAVA_ERRORS = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    KafkaError.LEADER_NOT_AVAILABLE: (
        "LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a leadership "
        "election.",
    ),
    KafkaError.OFFSET_OUT_OF_RANGE: (
        "OffsetOutOfRangeException",
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    KafkaError.INVALID_GROUP_ID: ("InvalidGroupIdException", "The configured groupId is invalid."),
    KafkaError.TOPIC_ALREADY_EXISTS: (
        "TopicExistsException",
        "Topic with this name already exists.",
    ),
    KafkaError.POLICY_VIOLATION: (
        "PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    KafkaError.LOG_DIR_NOT_FOUND: (
        "LogDirNotFoundException",
        "The user-specified log directory is not found in the broker config.",
    ),
    KafkaError.REASSIGNMENT_IN_PROGRESS: (
        "ReassignmentInProgressException",
        "A partition reassignment is in progress.",
    ),
    KafkaError.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    KafkaError.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    KafkaError.PREFERRED_LEADER_NOT_AVAILABLE: (
        "PreferredLeaderNotAvailableException",
        "The preferred leader was not available.",
    ),
    KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "EligibleLeadersNotAvailableException",
        "Eligible topic partition leaders are not available.",
    ),
    KafkaError.ELECTION_NOT_NEEDED: (
        "ElectionNotNeededException",
        "Leader election not needed for topic partition.",
    ),
    KafkaError.NO_REASSIGNMENT_IN_PROGRESS: (
        "NoReassignmentInProgressException",
        "No partition reassignment is in progress.",
    ),
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed "
        "to it.",
    ),
    KafkaError.BROKER_ID_NOT_REGISTERED: (
        "BrokerIdNotRegisteredException",
        "The given broker ID was not registered.",
    ),
    KafkaError.DELEGATION_TOKEN_AUTH_DISABLED: (
        "DelegationTokenDisabledException",
        "Delegation Token feature is not enabled.",
    ),
    KafkaError.DELEGATION_TOKEN_NOT_FOUND: (
        "DelegationTokenNotFoundException",
        "Delegation Token is not found on server.",
    ),
    KafkaError.DELEGATION_TOKEN_OWNER_MISMATCH: (
        "DelegationTokenOwnerMismatchException",
        "Specified Principal is not valid Owner/Renewer.",
    ),
    KafkaError.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "UnsupportedByAuthenticationException",
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels.",
    ),
    KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED: (
        "DelegationTokenAuthorizationException",
        "Delegation Token authorization failed.",
    ),
    KafkaError.DELEGATION_TOKEN_EXPIRED: (
        "DelegationTokenExpiredException",
        "Delegation Token is expired.",
    ),
    KafkaError.SECURITY_DISABLED: (
        "SecurityDisabledException",
        "Security features are disabled.",
    ),
    KafkaError.TRANSACTIONAL_ID_NOT_FOUND: (
        "TransactionalIdNotFoundException",
        "The transactionalId could not be found.",
    ),
}


def java_message(error: KafkaError) -> str:
    """Returns the message of the Java exception."""
    has_message = error.str() != KafkaError(error.code()).str()
    return (
        error.str()
        if has_message or error.code() not in _JAVA_ERRORS
        else _JAVA_ERRORS[error.code()][1]
    )


def java_text(error: KafkaError) -> str:
    """Returns the Java exception with its class, as Java prints it."""
    name = _JAVA_ERRORS.get(error.code(), ("KafkaException", ""))[0]
    return f"org.apache.kafka.common.errors.{name}: {java_message(error)}"


def print_tabbed(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[*head], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print("".join(f"{cell.ljust(width)}\t" for cell, width in zip(row, widths, strict=True)))


def emit(name: str, **fields: Any) -> None:
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    print(json.dumps(event, separators=(",", ":")), flush=True)


def print_metrics(metrics: Mapping[str, float | str]) -> None:
    """Prints a line per metric, in columns."""
    width = max(len("Metric Name"), *map(len, metrics))
    print(f"\n{'Metric Name':<{width}}   {'Value'}")
    for name, value in sorted(metrics.items()):
        text = value if isinstance(value, str) else f"{value:.3f}"
        print(f"{name:<{width}} : {'NaN' if text == 'nan' else text}")
