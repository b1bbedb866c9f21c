"""The state of a transactional producer. No I/O: `transactions.py` speaks to the coordinators.

    call or event     from                              to
    init              NEW, PREPARED                     READY
    begin             READY                             OPEN
    commit            OPEN, COMMITTING                  COMMITTING, then READY
    abort             OPEN, BROKEN, ABORTING            ABORTING, then READY
    prepare           OPEN, PREPARING                   PREPARING, then PREPARED
    complete          PREPARED                          READY
    a batch fails     OPEN, COMMITTING, PREPARING       BROKEN: only aborting helps
    fenced            any                               DEAD

There are two flows. In the old one a partition joins the transaction by a request of its own
before the first batch is sent; in the new one (transaction.version 2, KIP-890) by that batch,
and every end of a transaction brings another epoch.

A prepared transaction (KIP-939's word) has all its records written and is still open: it is ended
by `complete`, or by somebody else who was told of it. `init` leaves it to them, and aborts it if
they have not ended it.
"""

from enum import Enum, auto

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ErrorCode


class Phase(Enum):
    NEW = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()
    PREPARING = auto()
    PREPARED = auto()
    BROKEN = auto()
    DEAD = auto()


_ALLOWED: dict[str, frozenset[Phase]] = {
    "init_transactions": frozenset({Phase.NEW, Phase.PREPARED}),
    "begin_transaction": frozenset({Phase.READY}),
    "send_offsets_to_transaction": frozenset({Phase.OPEN}),
    "commit_transaction": frozenset({Phase.OPEN, Phase.COMMITTING}),
    "abort_transaction": frozenset({Phase.OPEN, Phase.BROKEN, Phase.ABORTING}),
    "prepare_transaction": frozenset({Phase.OPEN, Phase.PREPARING}),
    "complete_transaction": frozenset({Phase.PREPARED}),
    "produce": frozenset({Phase.OPEN}),
}

_SENDING = frozenset({Phase.OPEN, Phase.COMMITTING, Phase.PREPARING})

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FATAL = FENCED | {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.UNSUPPORTED_VERSION,
}


class Transaction:
    """What is sent by a `sender.Sender` passes through here: it is its gate."""

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.is_joined_by_writing = False  # the new flow
        self.error: KafkaError | None = None  # why it is BROKEN or DEAD
        self.joined: set[TopicPartitionTuple] = set()
        self.to_join: set[TopicPartitionTuple] = set()
        self.has_offsets = False

    @property
    def is_empty(self) -> bool:
        """Whether no coordinator has heard of it."""
        return not self.joined and not self.has_offsets

    def require(self, call: str) -> None:
        """KafkaException unless the call may be made now."""
        if self.phase in _ALLOWED[call]:
            return
        if self.error is not None:
            raise KafkaException(self.error)
        raise KafkaException(
            KafkaError(
                KafkaError._STATE,
                f"{call} is not allowed now: the transaction is {self.phase.name}",
            )
        )

    def refusal(self) -> KafkaException | None:
        """What `produce` raises now."""
        try:
            self.require("produce")
        except KafkaException as refusal:
            return refusal
        return None

    def begin(self) -> None:
        self.require("begin_transaction")
        self.phase = Phase.OPEN

    def end(self) -> None:
        """Committed or aborted, or none of this producer's any more."""
        self.phase = Phase.READY
        self.error = None
        self.joined.clear()
        self.to_join.clear()
        self.has_offsets = False

    # The sender's gate

    def admits(self, place: TopicPartitionTuple) -> bool:
        if self.phase not in _SENDING:
            return False
        if place in self.joined:
            return True
        if self.is_joined_by_writing:
            self.joined.add(place)
            return True
        self.to_join.add(place)
        return False

    def refused(self, error: KafkaError) -> None:
        """A batch was given up: what is left of the transaction must not be committed."""
        if self.phase in _SENDING:
            self.fail(error.code(), error.str())

    # Errors

    def fail(self, code: int, reason: str | None = None) -> KafkaError:
        """The error as its call raises it: fatal, or one that aborting gets over."""
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
            self.phase = Phase.DEAD
        elif self.phase in _SENDING:
            self.phase = Phase.BROKEN
        self.error = error
        return error
