"""Prepared transactions: ended by somebody else than the producer that has written them."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, outcome_of, require_list
from barnabas.client.admin.routes import one_by_one
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.cluster import Coordinator, Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.producer.transactions import FEATURE, JOINED_BY_WRITING, OLD_END
from barnabas.client.values import PreparedTransaction
from barnabas.net.greeting import ASK_VERSIONS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

_MOVED_ON = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The id has another epoch or producer by now, or is forgotten: the transaction has ended."""

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_ABORTED = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)


class PreparedCalls(Calls):
    def complete_transactions(
        self,
        prepared: list[PreparedTransaction],
        committed: bool,
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[PreparedTransaction, None]]:
        """Commit, or abort, transactions that were prepared; each may have been before.

        INVALID_TXN_STATE for those that were aborted, after their timeout or by others, and cannot
        be committed any more. TRANSACTIONAL_ID_NOT_FOUND where nobody can tell how one has ended,
        since its id was forgotten or used again.
        """
        require_list("prepared", prepared, PreparedTransaction)
        return self._complete(prepared, committed, self._deadline(request_timeout))

    def fence_transactions(
        self, transactions: list[PreparedTransaction], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[PreparedTransaction, None]]:
        """Abort what is open, and shut out its producer, which may still be writing.

        One that has ended meanwhile is left as it is, in the new flow; in the old one nobody can
        tell any more how it has ended.
        """
        require_list("transactions", transactions, PreparedTransaction)
        return self._fence(transactions, self._deadline(request_timeout))

    async def _complete(
        self, prepared: list[PreparedTransaction], committed: bool, deadline: Deadline
    ) -> Results[PreparedTransaction, None]:
        newest = None if await self._has_new_flow(deadline) else OLD_END

        async def end(node: int | None, it: PreparedTransaction) -> KafkaError | None:
            request = EndTxnRequest(
                transactional_id=it.transactional_id,
                producer_id=it.producer_id,
                producer_epoch=it.epoch,
                committed=committed,
            )
            told = await self._routes.ask(request, node, deadline=deadline, newest_version=newest)
            is_over = told.error_code in _MOVED_ON or told.error_code == ErrorCode.INVALID_TXN_STATE
            if is_over and not committed:
                return None  # there is nothing left to abort
            if told.error_code in _MOVED_ON:
                return await self._how_it_ended(node, it, deadline)
            if told.error_code == ErrorCode.INVALID_TXN_STATE:
                return _aborted(it)
            return outcome_of(told.error_code)

        return await self._each_by_coordinator(prepared, end, deadline)

    async def _fence(
        self, transactions: list[PreparedTransaction], deadline: Deadline
    ) -> Results[PreparedTransaction, None]:
        if await self._has_new_flow(deadline):
            return await self._complete(transactions, False, deadline)  # brings another epoch

        async def fence(node: int | None, it: PreparedTransaction) -> KafkaError | None:
            # In the name of its producer: so it is left aborted, and not as used again.
            request = InitProducerIdRequest(
                transactional_id=it.transactional_id,
                transaction_timeout_ms=self._routes.settings.request_timeout_ms,
                producer_id=it.producer_id,
                producer_epoch=it.epoch,
            )
            told = await self._routes.ask(request, node, deadline=deadline)
            is_done = told.error_code in {ErrorCode.CONCURRENT_TRANSACTIONS, *_MOVED_ON}
            return None if is_done else outcome_of(told.error_code)

        return await self._each_by_coordinator(transactions, fence, deadline)

    async def _how_it_ended(
        self, node: int | None, it: PreparedTransaction, deadline: Deadline
    ) -> KafkaError | None:
        """Of one that was to be committed and whose id has moved on: None if it was."""
        request = DescribeTransactionsRequest(transactional_ids=[it.transactional_id])
        (told,) = (await self._routes.ask(request, node, deadline=deadline)).transaction_states
        if told.error_code not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            return told_by_broker(told.error_code)
        state = TransactionState(told.transaction_state)
        epochs = told.producer_epoch - it.epoch if told.producer_id == it.producer_id else None
        if epochs == 1 and state in _COMMITTED:
            return None
        if epochs in (1, 2) and state in _ABORTED:  # in the new flow, who fences ends it as well
            return _aborted(it)
        if state is TransactionState.ONGOING:
            # Its abort may be under way, and come to nothing where a coordinator fails.
            return told_by_broker(ErrorCode.CONCURRENT_TRANSACTIONS)
        return KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"nobody can tell whether {_named(it)} was committed: its id was used again, or not "
            f"for longer than the brokers' transactional.id.expiration.ms",
        )

    async def _has_new_flow(self, deadline: Deadline) -> bool:
        told = await self._routes.ask(ASK_VERSIONS, deadline=deadline)
        levels = {each.name: each.max_version_level for each in told.finalized_features}
        return bool(levels.get(FEATURE, 0) >= JOINED_BY_WRITING)

    async def _each_by_coordinator(
        self,
        transactions: list[PreparedTransaction],
        ask: Callable[[int | None, PreparedTransaction], Awaitable[KafkaError | None]],
        deadline: Deadline,
    ) -> Results[PreparedTransaction, None]:
        by_id = {each.transactional_id: each for each in transactions}
        outcomes = await self._routes.by_coordinator(
            Coordinator.TRANSACTION,
            by_id,
            one_by_one(lambda node, name: ask(node, by_id[name])),
            deadline,
        )
        return Results({by_id[name]: outcome for name, outcome in outcomes.items()})


def _aborted(it: PreparedTransaction) -> KafkaError:
    reason = f"{_named(it)} was aborted, and cannot be committed"
    return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)


def _named(it: PreparedTransaction) -> str:
    return f"{it.transactional_id} (producer {it.producer_id}, epoch {it.epoch})"
