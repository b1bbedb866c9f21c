"""DescribeTransactions and ListTransactions: what administrators see."""

from barnabas.coordinator.regex import search
from barnabas.coordinator.transactions.metadata import TransactionMetadata, TransactionState
from barnabas.coordinator.transactions.records import by_topic
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import describe_transactions, list_transactions
from barnabas.wire.messages.list_transactions import ListTransactionsRequest

_TITLES = {state: state.title for state in TransactionState}
_STATES = {title: state for state, title in _TITLES.items()}


def describe(
    transactions: TransactionCoordinatorState, transactional_id: str
) -> describe_transactions.TransactionState:
    current = transactions.by_id.get(transactional_id)
    if current is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"There is no {transactional_id} here."
        )
    ending = transactions.endings.get(transactional_id)
    partitions = current.partitions if ending is None else ending.remaining
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=current.state.title,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.started_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
    )


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """The names asked for that no state has."""
    return [name for name in request.state_filters if name not in _STATES]


def select(
    transactions: TransactionCoordinatorState, request: ListTransactionsRequest
) -> list[list_transactions.TransactionState]:
    """Those that the filters by state, producer and duration let through."""
    now_ms = transactions.now_ms()
    states = {_STATES[name] for name in request.state_filters if name in _STATES}
    producer_ids = frozenset(request.producer_id_filters)

    def is_meant(current: TransactionMetadata) -> bool:
        return (
            (not request.state_filters or current.state in states)
            and (not producer_ids or current.producer_id in producer_ids)
            and (
                request.duration_filter < 0 or now_ms - current.started_ms > request.duration_filter
            )
        )

    return [
        list_transactions.TransactionState(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            transaction_state=_TITLES[each.state],
        )
        for each in transactions.by_id.values()
        if is_meant(each)
    ]


def matching(
    listed: list[list_transactions.TransactionState], pattern: str | None
) -> list[list_transactions.TransactionState]:
    """Those whose id matches as a whole (KIP-1152); KafkaError if the pattern is none."""
    if not pattern:
        return listed
    by_id = {each.transactional_id: each for each in listed}
    return [by_id[found] for some in search(pattern, by_id) for found in some]
