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

from barnabas.client.errors import KafkaError, KafkaException, fail
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

_ADVICE: dict[TxnState, str] = {
    TxnState.UNINITIALIZED: "call init_transactions() first",
    TxnState.READY: "no transaction is open, call begin_transaction() first",
    TxnState.IN_TRANSACTION: (
        "a transaction is open, call commit_transaction() or abort_transaction() first"
    ),
    TxnState.COMMITTING: "the commit is not finished, call commit_transaction() again first",
    TxnState.ABORTING: "the abort is not finished, call abort_transaction() again first",
    TxnState.PREPARING: "the transaction is not prepared, call prepare_transaction() again first",
    TxnState.PREPARED: "a transaction is prepared, call complete_transaction() first",
}
"""What to do in a state where a call is not allowed."""

_ADVICE_FOR: dict[tuple[str, TxnState], str] = {
    ("init_transactions", TxnState.READY): (
        "it was called before, and once is enough; call begin_transaction()"
    ),
    ("complete_transaction", TxnState.READY): (
        "no transaction is prepared, call begin_transaction() and prepare_transaction() first"
    ),
    ("complete_transaction", TxnState.IN_TRANSACTION): (
        "the transaction is not prepared, call prepare_transaction() first"
    ),
    ("produce", TxnState.UNINITIALIZED): (
        "call init_transactions() and then begin_transaction() first"
    ),
}
"""The calls for which something else than `_ADVICE` is to be done."""

_SENDING = frozenset({TxnState.IN_TRANSACTION, TxnState.COMMITTING, TxnState.PREPARING})

_TO_ABORT = _ALLOWED["abort_transaction"]

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

    @property
    def is_to_abort(self) -> bool:
        """Whether it would stay open until it times out if the producer went away."""
        return self.state in _TO_ABORT and not self.is_empty

    def require(self, call: str) -> None:
        """Raises KafkaException unless the call is allowed now."""
        if self.state in _ALLOWED[call]:
            return
        if self.error is not None:
            raise KafkaException(self.error)
        advice = _ADVICE_FOR.get((call, self.state)) or _ADVICE[self.state]
        fail(KafkaError._STATE, f"{call}() is not allowed now: {advice}")

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
            code = KafkaError._FENCED
            cause = f" ({reason})" if reason else ""
            reason = f"another producer with this transactional.id has taken over{cause}"
        is_fatal = code == KafkaError._FENCED or code in _FATAL
        advice = "call abort_transaction()"
        if is_fatal:
            advice = "close this producer"
        elif self.state is TxnState.UNINITIALIZED:
            advice = "call init_transactions() again"
        error = KafkaError(
            code,
            _with_advice(reason or KafkaError(code).str(), advice),
            fatal=is_fatal,
            txn_requires_abort=not is_fatal,
        )
        if error.fatal():
            self.state = TxnState.FATAL_ERROR
        elif self.can_send:
            self.state = TxnState.ABORTABLE_ERROR
        self.error = error
        return error


def _with_advice(reason: str, advice: str) -> str:
    return reason if reason.endswith(advice) else f"{reason.removesuffix('.')}; {advice}"
