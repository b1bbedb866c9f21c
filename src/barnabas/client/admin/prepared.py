"""Prepared transactions: ended by somebody else than the producer that has written them."""

from collections.abc import Coroutine
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

_MOVED_ON = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""The id has another epoch by now: the transaction has ended, one way or the other."""


class PreparedCalls(Calls):
    def complete_transactions(
        self,
        prepared: list[PreparedTransaction],
        committed: bool,
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[PreparedTransaction, None]]:
        """Commit, or abort, transactions that were prepared; each may have been before.

        INVALID_TXN_STATE for those that have ended otherwise: to commit what was aborted, after
        its timeout or by a new producer of its id, is not possible any more.
        """
        require_list("prepared", prepared, PreparedTransaction)
        return self._complete(prepared, committed, self._deadline(request_timeout))

    async def _complete(
        self, prepared: list[PreparedTransaction], committed: bool, deadline: Deadline
    ) -> Results[PreparedTransaction, None]:
        told = await self._routes.ask(ASK_VERSIONS, deadline=deadline)
        levels = {each.name: each.max_version_level for each in told.finalized_features}
        newest = None if levels.get(FEATURE, 0) >= JOINED_BY_WRITING else OLD_END
        by_id = {each.transactional_id: each for each in prepared}

        async def end(node: int | None, transactional_id: str) -> KafkaError | None:
            it = by_id[transactional_id]
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=it.producer_id,
                producer_epoch=it.epoch,
                committed=committed,
            )
            told = await self._routes.ask(request, node, deadline=deadline, newest_version=newest)
            code = told.error_code
            if code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
                return _otherwise(it, committed, "its transactional id is forgotten")
            if code in _MOVED_ON:
                return await self._ended(node, it, committed, deadline)
            if code == ErrorCode.INVALID_TXN_STATE:
                return _otherwise(it, committed, "it has ended otherwise")
            return outcome_of(code)

        outcomes = await self._routes.by_coordinator(
            Coordinator.TRANSACTION, by_id, one_by_one(end), deadline
        )
        return Results({by_id[name]: outcome for name, outcome in outcomes.items()})

    async def _ended(
        self, node: int | None, it: PreparedTransaction, committed: bool, deadline: Deadline
    ) -> KafkaError | None:
        """What became of one whose id has moved on: the next epoch tells how this one ended."""
        request = DescribeTransactionsRequest(transactional_ids=[it.transactional_id])
        (told,) = (await self._routes.ask(request, node, deadline=deadline)).transaction_states
        if told.error_code:
            return told_by_broker(told.error_code)
        state = TransactionState(told.transaction_state)
        if committed and state in (
            TransactionState.PREPARE_COMMIT,
            TransactionState.COMPLETE_COMMIT,
        ):
            is_next = (told.producer_id, told.producer_epoch) == (it.producer_id, it.epoch + 1)
            return None if is_next else _otherwise(it, committed, "its producer has moved on")
        return _otherwise(it, committed, f"its producer has moved on ({state.value})")


def _otherwise(it: PreparedTransaction, committed: bool, reason: str) -> KafkaError | None:
    """An abort has nothing left to do where the transaction is over."""
    if not committed:
        return None
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{it.transactional_id} (producer {it.producer_id}, epoch {it.epoch}) "
        f"cannot be committed: {reason}",
    )
