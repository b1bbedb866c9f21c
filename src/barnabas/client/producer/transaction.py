"""The state of a transactional producer. No I/O: `transaction_manager.py` sends the requests.

    call or event     from                                      to
    init              UNINITIALIZED, PREPARED                   READY
    begin             READY                                     IN_TRANSACTION
    commit            IN_TRANSACTION, COMMITTING                COMMITTING, then READY
    abort             IN_TRANSACTION, ABORTABLE_ERROR, ABORTING ABORTING, then READY
    prepare           IN_TRANSACTION, PREPARING                 PREPARING, then PREPARED
    complete          PREPARED                                  READY
    a batch fails     IN_TRANSACTION, COMMITTING, PREPARING     ABORTABLE_ERROR
    fenced            any                                       FATAL_ERROR

Transactions have two protocol versions. In V1 a partition is added to the transaction by a request
before its first batch is sent; in V2 (transaction.version 2, KIP-890) by that batch, and every end
of a transaction starts another epoch.

A prepared transaction (KIP-939) has all its records written and is still open: it is ended by
`complete`, or by another process that knows its id and epoch. `init` leaves it to that process, and
aborts it if it has not been ended.
"""

from enum import Enum, auto

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode


class TxnState(Enum):
    UNINITIALIZED = auto()
    READY = auto()
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    ABORTING = auto()
    PREPARING = auto()
    PREPARED = auto()
    ABORTABLE_ERROR = auto()
    FATAL_ERROR = auto()


_ALLOWED: dict[str, frozenset[TxnState]] = {
    "init_transactions": frozenset({TxnState.UNINITIALIZED, TxnState.PREPARED}),
    "begin_transaction": frozenset({TxnState.READY}),
    "send_offsets_to_transaction": frozenset({TxnState.IN_TRANSACTION}),
    "commit_transaction": frozenset({TxnState.IN_TRANSACTION, TxnState.COMMITTING}),
    "abort_transaction": frozenset(
        {TxnState.IN_TRANSACTION, TxnState.ABORTABLE_ERROR, TxnState.ABORTING}
    ),
    "prepare_transaction": frozenset({TxnState.IN_TRANSACTION, TxnState.PREPARING}),
    "complete_transaction": frozenset({TxnState.PREPARED}),
    "produce": frozenset({TxnState.IN_TRANSACTION}),
}

_SENDING = frozenset({TxnState.IN_TRANSACTION, TxnState.COMMITTING, TxnState.PREPARING})

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FATAL = FENCED | {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.UNSUPPORTED_VERSION,
}


class ProducerTransaction:
    """The current transaction. It restricts where the `Sender` may send."""

    def __init__(self) -> None:
        self.state = TxnState.UNINITIALIZED
        self.is_v2 = False
        self.error: KafkaError | None = None  # of ABORTABLE_ERROR and FATAL_ERROR
        self.partitions: set[PartitionKey] = set()
        self.new_partitions: set[PartitionKey] = set()  # to be added by a request, in V1
        self.has_offsets = False

    @property
    def is_empty(self) -> bool:
        """Whether no coordinator has state of it."""
        return not self.partitions and not self.has_offsets

    @property
    def can_send(self) -> bool:
        return self.state in _SENDING

    def require(self, call: str) -> None:
        """Raises KafkaException unless the call is allowed now."""
        if self.state in _ALLOWED[call]:
            return
        if self.error is not None:
            raise KafkaException(self.error)
        raise KafkaException(
            KafkaError(
                KafkaError._STATE,
                f"{call} is not allowed now: the transaction is {self.state.name}",
            )
        )

    def produce_error(self) -> KafkaException | None:
        """Returns what `produce` raises now."""
        try:
            self.require("produce")
        except KafkaException as error:
            return error
        return None

    def begin(self) -> None:
        self.require("begin_transaction")
        self.state = TxnState.IN_TRANSACTION

    def end(self) -> None:
        """The transaction was committed or aborted, or belongs to another process."""
        self.state = TxnState.READY
        self.error = None
        self.partitions.clear()
        self.new_partitions.clear()
        self.has_offsets = False

    # For the sender

    def may_send_to(self, topic_partition: PartitionKey) -> bool:
        """Returns whether a batch may be sent to a partition now; adds it to the transaction."""
        if not self.can_send:
            return False
        if topic_partition in self.partitions:
            return True
        if self.is_v2:
            self.partitions.add(topic_partition)
            return True
        self.new_partitions.add(topic_partition)
        return False

    def on_batch_failed(self, error: KafkaError) -> None:
        """A batch failed: the rest of the transaction must not be committed."""
        if self.can_send:
            self.fail(error.code(), error.str())

    # Errors

    def fail(self, code: int, reason: str | None = None) -> KafkaError:
        """Changes the state for an error. Returns it as fatal, or as one that requires an abort."""
        if code in FENCED:
            error = KafkaError(
                KafkaError._FENCED,
                reason or "another producer with this transactional.id has taken over",
                fatal=True,
            )
        elif code in _FATAL:
            error = KafkaError(code, reason, fatal=True)
        else:
            error = KafkaError(code, reason, txn_requires_abort=True)
        if error.fatal():
            self.state = TxnState.FATAL_ERROR
        elif self.can_send:
            self.state = TxnState.ABORTABLE_ERROR
        self.error = error
        return error
