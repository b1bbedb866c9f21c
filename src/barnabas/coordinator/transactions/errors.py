"""The errors of requests about a transaction."""

from barnabas.coordinator.transactions.metadata import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError


def unknown_transactional_id(transactional_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"Transactional id {transactional_id} is not known, or has expired: initialize it again.",
    )


def other_producer_id(current: TransactionMetadata, producer_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"The producer of {current.transactional_id} is {current.producer_id}, not {producer_id}.",
    )


def fenced(current: TransactionMetadata, producer_id: int, producer_epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"Producer {producer_id} at epoch {producer_epoch} of {current.transactional_id} was "
        f"replaced: now it is {current.producer_id} at epoch {current.producer_epoch}.",
    )


def concurrent_transactions(current: TransactionMetadata) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"The transaction of {current.transactional_id} is still being ended: try again.",
    )


def invalid_state(current: TransactionMetadata, *, committed: bool) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{current.transactional_id} has no transaction to {'commit' if committed else 'abort'}: "
        f"it is {current.state.title}.",
    )
