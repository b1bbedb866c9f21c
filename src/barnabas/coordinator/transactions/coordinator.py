"""The coordinator of transactions as the server sees it: one method per API.

No method fails but by a fault of ours: what a client did wrong, or must try again, is in the
response, by the error code that its version knows.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.coordinator.ports import TimerService, PartitionLog, ResolvedSettings
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.coordinator.transactions.add_partitions import (
    FIRST_VERSION_FOR_BROKERS,
    add_partitions,
    asked,
    not_to_be_added,
    told,
    verify_partitions,
)
from barnabas.coordinator.transactions.describe import (
    describe,
    matching,
    select,
    unknown_states,
)
from barnabas.coordinator.transactions.end_txn import end, takes_last_epoch
from barnabas.coordinator.transactions.init_producer_id import init_producer_id, needs_new_id
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.ports import (
    PartitionErrorCodes,
    TransactionParticipants,
    ProducerIdBlocks,
)
from barnabas.coordinator.transactions.producer_ids import ProducerIdManager
from barnabas.coordinator.transactions.records import TRANSACTION_RECORDS
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.log import BUMPING_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import describe_transactions
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

R = TypeVar("R")


class TransactionCoordinator:
    """Coordinates the transactional ids whose partitions of `__transaction_state` are led here."""

    def __init__(
        self,
        settings: ResolvedSettings,
        image: Callable[[], MetadataImage],
        *,
        participants: TransactionParticipants,
        producer_id_blocks: ProducerIdBlocks,
        group_partition: Callable[[str], int],
        open_log: Callable[[int], PartitionLog],
        timer_service: TimerService,
        clock: Callable[[], int],
    ) -> None:
        self.producer_ids = ProducerIdManager(producer_id_blocks)
        self._settings = settings
        self._image = image
        self._group_partition = group_partition
        self.runtime: CoordinatorRuntime[TransactionCoordinatorState] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC,
            TRANSACTION_RECORDS,
            lambda shard: TransactionCoordinatorState(shard, settings, image, participants, self.producer_ids),
            open_log=open_log,
            timer_service=timer_service,
            clock=clock,
            partition_count=settings.broker("transaction.state.log.num.partitions"),
            write_timeout_ms=settings.broker("request.timeout.ms"),
        )

    # What producers ask

    def init_producer_id(
        self, request: InitProducerIdRequest, api_version: int
    ) -> PendingResponse[InitProducerIdResponse]:
        def refused(code: ErrorCode) -> InitProducerIdResponse:
            return InitProducerIdResponse(
                error_code=_told_at(code, api_version, fenced_from=4),
                producer_epoch=NO_PRODUCER_EPOCH,
            )

        code = self._refusal_of_init(request)
        if code is not None:
            return PendingResponse.completed(refused(code))
        transactional_id = request.transactional_id
        if transactional_id is None:
            # Kafka, too, gives an idempotent producer a new id whatever id and epoch it had.
            given = self.producer_ids.generate().map(
                lambda new_id: InitProducerIdResponse(producer_id=new_id, producer_epoch=0)
            )
            return _answered(given, refused)
        new_id = self._new_id_if(
            lambda state: needs_new_id(state, transactional_id), transactional_id
        )
        answer = new_id.chain(
            lambda new_id: self.runtime.write(
                transactional_id, lambda state: init_producer_id(state, request, new_id)
            )
        )
        return _answered(answer, refused)

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, api_version: int
    ) -> PendingResponse[AddPartitionsToTxnResponse]:
        transactions = asked(request, api_version)

        def response(outcomes: list[PartitionErrorCodes]) -> AddPartitionsToTxnResponse:
            if api_version < FIRST_VERSION_FOR_BROKERS:
                return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=told(outcomes[0]))
            results = [
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=told(outcome)
                )
                for each, outcome in zip(transactions, outcomes, strict=True)
            ]
            return AddPartitionsToTxnResponse(results_by_transaction=results)

        answers = [self._add_to_one(each, api_version) for each in transactions]
        return all_of(answers).map(response)

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, api_version: int
    ) -> PendingResponse[AddOffsetsToTxnResponse]:
        partition = (GROUPS_TOPIC, self._group_partition(request.group_id))
        outcomes = self._outcomes(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [partition],
            client_version=0,
        )
        return outcomes.map(
            lambda found: AddOffsetsToTxnResponse(
                error_code=_told_at(found[partition], api_version, fenced_from=2)
            )
        )

    def end(self, request: EndTxnRequest, api_version: int) -> PendingResponse[EndTxnResponse]:
        def refused(code: ErrorCode) -> EndTxnResponse:
            return EndTxnResponse(error_code=_told_at(code, api_version, fenced_from=2))

        transactional_id = request.transactional_id
        if not transactional_id:
            return PendingResponse.completed(refused(ErrorCode.INVALID_REQUEST))

        new_id = self._new_id_if(
            lambda state: takes_last_epoch(state, transactional_id, api_version), transactional_id
        )
        answer = new_id.chain(
            lambda new_id: self.runtime.write(
                transactional_id, lambda state: end(state, request, api_version, new_id)
            )
        )
        return _answered(answer, refused)

    # What this broker asks before it appends a transaction's records (KIP-890)

    def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> PendingResponse[PartitionErrorCodes]:
        """By partition, whether it is in the transaction; with `add`, it is put there."""
        return self._outcomes(
            transactional_id,
            producer_id,
            producer_epoch,
            partitions,
            client_version=BUMPING_VERSION if add else None,
        )

    # What administrators ask

    def describe(
        self, transactional_ids: Sequence[str]
    ) -> PendingResponse[list[describe_transactions.TransactionState]]:
        return all_of([self._describe_one(each) for each in transactional_ids])

    def list(self, request: ListTransactionsRequest) -> PendingResponse[ListTransactionsResponse]:
        if self.runtime.is_loading:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return PendingResponse.completed(ListTransactionsResponse(error_code=code))
        found = all_of(
            [shard.read(lambda state: select(state, request)) for shard in self.runtime.active_shards()]
        )
        answer = found.map(
            lambda shares: ListTransactionsResponse(
                unknown_state_filters=unknown_states(request),
                transaction_states=matching(
                    [each for share in shares for each in share],
                    request.transactional_id_pattern,
                ),
            )
        )
        return _answered(answer, lambda code: ListTransactionsResponse(error_code=code))

    # Steps

    def _refusal_of_init(self, request: InitProducerIdRequest) -> ErrorCode | None:
        has_id, has_epoch = (
            request.producer_id != NO_PRODUCER_ID,
            request.producer_epoch != NO_PRODUCER_EPOCH,
        )
        if has_id != has_epoch or request.transactional_id == "":
            return ErrorCode.INVALID_REQUEST
        longest_ms: int = self._settings.broker("transaction.max.timeout.ms")
        if request.transactional_id and not 0 < request.transaction_timeout_ms <= longest_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return None

    def _new_id_if(
        self, is_needed: Callable[[TransactionCoordinatorState], bool], transactional_id: str
    ) -> PendingResponse[int]:
        """A new producer id if one is needed to decide, else -1."""
        try:
            state = self.runtime.shard_of(transactional_id).state
        except KafkaError as error:
            return PendingResponse.failed(error)
        if is_needed(state):
            return self.producer_ids.generate()
        return PendingResponse.completed(NO_PRODUCER_ID)

    def _add_to_one(
        self, transaction: AddPartitionsToTxnTransaction, api_version: int
    ) -> PendingResponse[PartitionErrorCodes]:
        partitions = [
            (topic.name, index) for topic in transaction.topics for index in topic.partitions
        ]
        is_client = api_version < FIRST_VERSION_FOR_BROKERS
        refusals = not_to_be_added(self._image(), partitions, is_client=is_client)
        if refusals:
            # One that cannot be added keeps all others out.
            others: PartitionErrorCodes = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            return PendingResponse.completed(others | refusals)
        client_version = 0 if is_client else BUMPING_VERSION
        outcomes = self._outcomes(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            client_version=None if transaction.verify_only else client_version,
        )
        if api_version >= 2:
            return outcomes
        return outcomes.map(
            lambda found: {
                each: _told_at(code, api_version, fenced_from=2) for each, code in found.items()
            }
        )

    def _outcomes(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        client_version: int | None,
    ) -> PendingResponse[PartitionErrorCodes]:
        """Add the partitions for a client of that version, or verify them if there is none."""

        def refused(code: ErrorCode) -> PartitionErrorCodes:
            return dict.fromkeys(partitions, code)

        if not transactional_id:
            return PendingResponse.completed(refused(ErrorCode.INVALID_REQUEST))
        producer = (transactional_id, producer_id, producer_epoch)
        if client_version is None:
            answer = self.runtime.read(
                transactional_id, lambda state: verify_partitions(state, *producer, partitions)
            )
        else:
            answer = self.runtime.write(
                transactional_id,
                lambda state: add_partitions(state, *producer, partitions, client_version),
            )
        return _answered(answer, refused)

    def _describe_one(
        self, transactional_id: str
    ) -> PendingResponse[describe_transactions.TransactionState]:
        def refused(code: ErrorCode) -> describe_transactions.TransactionState:
            return describe_transactions.TransactionState(
                transactional_id=transactional_id, error_code=code
            )

        if not transactional_id:
            return PendingResponse.completed(refused(ErrorCode.INVALID_REQUEST))
        found = self.runtime.read(transactional_id, lambda state: describe(state, transactional_id))
        return _answered(found, refused)


def _answered(answer: PendingResponse[R], refused: Callable[[ErrorCode], R]) -> PendingResponse[R]:
    """The answer, with the protocol's own errors made part of a response."""
    return answer.recover(lambda error: refused(error.code))


def _told_at(code: ErrorCode, api_version: int, *, fenced_from: int) -> ErrorCode:
    """PRODUCER_FENCED came with some version of each request; before it was told otherwise."""
    if code is ErrorCode.PRODUCER_FENCED and api_version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
