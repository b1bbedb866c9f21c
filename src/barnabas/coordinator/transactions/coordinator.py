"""The transaction coordinator as the server calls it: one method per API.

A method fails only by a bug. The errors of the protocol are error codes in the response, as the
client's version knows them.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.coordinator.ports import PartitionLog, ResolvedSettings, TimerService
from barnabas.coordinator.records import GROUPS_TOPIC, INTERNAL_TOPICS, TRANSACTIONS_TOPIC
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.transactions import end_txn
from barnabas.coordinator.transactions import init_producer_id as init
from barnabas.coordinator.transactions.add_partitions import (
    FIRST_VERSION_FOR_BROKERS,
    TransactionPartitions,
    add_partitions,
    partition_errors,
    topic_results,
    transactions_of,
    verify_partitions,
)
from barnabas.coordinator.transactions.describe import (
    describe,
    filter_by_pattern,
    list_transactions_of_shard,
    unknown_states,
)
from barnabas.coordinator.transactions.markers import PartitionErrorCodes, TransactionParticipants
from barnabas.coordinator.transactions.metadata import TopicPartition, TransactionContext
from barnabas.coordinator.transactions.producer_ids import ProducerIdBlocks, ProducerIdManager
from barnabas.coordinator.transactions.records import TRANSACTION_RECORDS
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.log import EPOCH_BUMP_TRANSACTION_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.transaction_descriptions import (
    DescribedTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

R = TypeVar("R")


class TransactionCoordinator:
    """Coordinates the transactional ids whose partitions of `__transaction_state` it leads."""

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
        self._clock = clock
        self._group_partition = group_partition
        self.runtime: CoordinatorRuntime[TransactionCoordinatorState] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC,
            TRANSACTION_RECORDS,
            lambda shard: TransactionCoordinatorState(
                shard, settings, image, participants, self.producer_ids
            ),
            context=self._context,
            open_log=open_log,
            timer_service=timer_service,
            clock=clock,
            partition_count=settings.broker("transaction.state.log.num.partitions"),
            write_timeout_ms=settings.broker("request.timeout.ms"),
        )

    # Requests of producers

    def init_producer_id(
        self, request: InitProducerIdRequest, api_version: int
    ) -> PendingResponse[InitProducerIdResponse]:
        def error_response(code: ErrorCode) -> InitProducerIdResponse:
            return InitProducerIdResponse(
                error_code=_at_version(code, api_version, fenced_from=4),
                producer_epoch=NO_PRODUCER_EPOCH,
            )

        code = self._init_error(request)
        if code is not None:
            return PendingResponse.completed(error_response(code))
        transactional_id = request.transactional_id
        if transactional_id is None:
            # As in Kafka, an idempotent producer gets a new id whatever id and epoch it had.
            response = self.producer_ids.generate().map(
                lambda new_id: InitProducerIdResponse(producer_id=new_id, producer_epoch=0)
            )
            return _recover(response, error_response)
        new_id = self._new_id_if(
            lambda state: init.needs_new_producer_id(transactional_id, state), transactional_id
        )
        response = new_id.chain(
            lambda new_id: self.runtime.write(
                transactional_id,
                lambda state: init.init_producer_id(
                    request, state, self._context(api_version, new_id)
                ),
            )
        )
        return _recover(response, error_response)

    def add_partitions(
        self,
        request: AddPartitionsToTxnRequest,
        api_version: int,
        *,
        denied_topics: Collection[str] = (),
    ) -> PendingResponse[AddPartitionsToTxnResponse]:
        """`denied_topics` are those that the client may not write to."""
        transactions = transactions_of(request, api_version)

        def to_response(codes: list[PartitionErrorCodes]) -> AddPartitionsToTxnResponse:
            if api_version < FIRST_VERSION_FOR_BROKERS:
                return AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=topic_results(codes[0])
                )
            results = [
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=topic_results(partition_codes),
                )
                for transaction, partition_codes in zip(transactions, codes, strict=True)
            ]
            return AddPartitionsToTxnResponse(results_by_transaction=results)

        responses = [
            self._add_to_one(transaction, api_version, denied_topics)
            for transaction in transactions
        ]
        return all_of(responses).map(to_response)

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, api_version: int
    ) -> PendingResponse[AddOffsetsToTxnResponse]:
        partition = (GROUPS_TOPIC, self._group_partition(request.group_id))
        codes = self._add_or_verify(
            TransactionPartitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                [partition],
                client_version=0,
            )
        )
        return codes.map(
            lambda codes: AddOffsetsToTxnResponse(
                error_code=_at_version(codes[partition], api_version, fenced_from=2)
            )
        )

    def end(self, request: EndTxnRequest, api_version: int) -> PendingResponse[EndTxnResponse]:
        def error_response(code: ErrorCode) -> EndTxnResponse:
            return EndTxnResponse(error_code=_at_version(code, api_version, fenced_from=2))

        transactional_id = request.transactional_id
        if not transactional_id:
            return PendingResponse.completed(error_response(ErrorCode.INVALID_REQUEST))
        new_id = self._new_id_if(
            lambda state: end_txn.needs_new_producer_id(request, state, api_version),
            transactional_id,
        )
        response = new_id.chain(
            lambda new_id: self.runtime.write(
                transactional_id,
                lambda state: end_txn.end_transaction(
                    request, state, self._context(api_version, new_id)
                ),
            )
        )
        return _recover(response, error_response)

    # Requests of brokers, before they append the records of a transaction (KIP-890)

    def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> PendingResponse[PartitionErrorCodes]:
        """Returns by partition whether it is in the transaction; with `add`, it is added."""
        return self._add_or_verify(
            TransactionPartitions(
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                client_version=EPOCH_BUMP_TRANSACTION_VERSION if add else None,
            )
        )

    # Requests of administrators

    def describe(
        self, transactional_ids: Sequence[str]
    ) -> PendingResponse[list[DescribedTransactionState]]:
        return all_of([self._describe_one(each) for each in transactional_ids])

    def list(self, request: ListTransactionsRequest) -> PendingResponse[ListTransactionsResponse]:
        """Lists the transactional ids that this broker coordinates, once they are loaded."""
        context = self._context()
        by_shard = self.runtime.when_loaded().chain(
            lambda _: all_of(
                [
                    shard.read(lambda state: list_transactions_of_shard(request, state, context))
                    for shard in self.runtime.active_shards()
                ]
            )
        )
        response = by_shard.map(
            lambda lists: ListTransactionsResponse(
                unknown_state_filters=unknown_states(request),
                transaction_states=filter_by_pattern(
                    [transaction for listed in lists for transaction in listed],
                    request.transactional_id_pattern,
                ),
            )
        )
        return _recover(response, lambda code: ListTransactionsResponse(error_code=code))

    def _context(
        self, api_version: int = 0, new_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionContext:
        return TransactionContext(self._clock(), self._image(), api_version, new_producer_id)

    def _init_error(self, request: InitProducerIdRequest) -> ErrorCode | None:
        has_id, has_epoch = (
            request.producer_id != NO_PRODUCER_ID,
            request.producer_epoch != NO_PRODUCER_EPOCH,
        )
        if has_id != has_epoch or request.transactional_id == "":
            return ErrorCode.INVALID_REQUEST
        max_timeout_ms: int = self._settings.broker("transaction.max.timeout.ms")
        if request.transactional_id and not 0 < request.transaction_timeout_ms <= max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return None

    def _new_id_if(
        self, is_needed: Callable[[TransactionCoordinatorState], bool], transactional_id: str
    ) -> PendingResponse[int]:
        """Returns a new producer id if the decision may need one, else -1."""
        try:
            state = self.runtime.shard_of(transactional_id).state
        except KafkaError as error:
            return PendingResponse.failed(error)
        if is_needed(state):
            return self.producer_ids.generate()
        return PendingResponse.completed(NO_PRODUCER_ID)

    def _add_to_one(
        self,
        transaction: AddPartitionsToTxnTransaction,
        api_version: int,
        denied_topics: Collection[str],
    ) -> PendingResponse[PartitionErrorCodes]:
        partitions = [
            (topic.name, index) for topic in transaction.topics for index in topic.partitions
        ]
        is_client = api_version < FIRST_VERSION_FOR_BROKERS
        denied = {*denied_topics, *(INTERNAL_TOPICS if is_client else ())}
        errors = partition_errors(partitions, self._image(), denied_topics=denied)
        if errors:
            # One partition that cannot be added prevents all others.
            others = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            return PendingResponse.completed(others | errors)
        client_version = 0 if is_client else EPOCH_BUMP_TRANSACTION_VERSION
        codes = self._add_or_verify(
            TransactionPartitions(
                transaction.transactional_id,
                transaction.producer_id,
                transaction.producer_epoch,
                partitions,
                client_version=None if transaction.verify_only else client_version,
            )
        )
        if api_version >= 2:
            return codes
        return codes.map(
            lambda codes: {
                partition: _at_version(code, api_version, fenced_from=2)
                for partition, code in codes.items()
            }
        )

    def _add_or_verify(
        self, request: TransactionPartitions
    ) -> PendingResponse[PartitionErrorCodes]:
        def error_response(code: ErrorCode) -> PartitionErrorCodes:
            return dict.fromkeys(request.partitions, code)

        transactional_id = request.transactional_id
        if not transactional_id:
            return PendingResponse.completed(error_response(ErrorCode.INVALID_REQUEST))
        if request.client_version is None:
            response = self.runtime.read(
                transactional_id, lambda state: verify_partitions(request, state)
            )
        else:
            response = self.runtime.write(
                transactional_id, lambda state: add_partitions(request, state, self._context())
            )
        return _recover(response, error_response)

    def _describe_one(self, transactional_id: str) -> PendingResponse[DescribedTransactionState]:
        def error_response(code: ErrorCode) -> DescribedTransactionState:
            return DescribedTransactionState(transactional_id=transactional_id, error_code=code)

        if not transactional_id:
            return PendingResponse.completed(error_response(ErrorCode.INVALID_REQUEST))
        response = self.runtime.read(
            transactional_id, lambda state: describe(transactional_id, state)
        )
        return _recover(response, error_response)


def _recover(
    response: PendingResponse[R], error_response: Callable[[ErrorCode], R]
) -> PendingResponse[R]:
    """Turns the errors of the protocol into responses."""
    return response.recover(lambda error: error_response(error.code))


def _at_version(code: ErrorCode, api_version: int, *, fenced_from: int) -> ErrorCode:
    """Returns the code that the version knows: PRODUCER_FENCED came with `fenced_from`."""
    if code is ErrorCode.PRODUCER_FENCED and api_version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
