"""DescribeTransactions (key 65) and ListTransactions (key 66), for administrators."""

from typing import TYPE_CHECKING

from barnabas.coordinator.regex import search
from barnabas.coordinator.transactions.metadata import (
    TransactionContext,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.records import by_topic
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transaction_descriptions import (
    DescribedTransactionState,
    ListedTransactionState,
    ListTransactionsRequest,
    TopicData,
)

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

_TITLES = {state: state.title for state in TransactionState}
_STATES = {title: state for state, title in _TITLES.items()}


def describe(
    transactional_id: str, state: "TransactionCoordinatorState"
) -> DescribedTransactionState:
    """Describes a transaction. The partitions of one that ends are those without a marker."""
    current = state.by_id.get(transactional_id)
    if current is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"There is no {transactional_id} here."
        )
    markers = state.markers.pending.get(transactional_id)
    partitions = current.partitions if markers is None else markers.remaining
    return DescribedTransactionState(
        transactional_id=transactional_id,
        transaction_state=current.state.title,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.started_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
    )


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """Returns the names in the filter that no state has."""
    return [name for name in request.state_filters if name not in _STATES]


def list_transactions_of_shard(
    request: ListTransactionsRequest,
    state: "TransactionCoordinatorState",
    context: TransactionContext,
) -> list[ListedTransactionState]:
    """Returns those that match the filters by state, producer and duration."""
    now_ms = context.now_ms
    states = {_STATES[name] for name in request.state_filters if name in _STATES}
    producer_ids = frozenset(request.producer_id_filters)

    def matches(current: TransactionMetadata) -> bool:
        return (
            (not request.state_filters or current.state in states)
            and (not producer_ids or current.producer_id in producer_ids)
            and (
                request.duration_filter < 0 or now_ms - current.started_ms > request.duration_filter
            )
        )

    return [
        ListedTransactionState(
            transactional_id=current.transactional_id,
            producer_id=current.producer_id,
            transaction_state=_TITLES[current.state],
        )
        for current in state.by_id.values()
        if matches(current)
    ]


def filter_by_pattern(
    listed: list[ListedTransactionState], pattern: str | None
) -> list[ListedTransactionState]:
    """Returns those whose whole id matches (KIP-1152). Raises KafkaError if the pattern is not
    valid."""
    if not pattern:
        return listed
    by_id = {transaction.transactional_id: transaction for transaction in listed}
    return [by_id[match] for matches in search(pattern, by_id) for match in matches]
