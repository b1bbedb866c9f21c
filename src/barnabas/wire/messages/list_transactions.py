"""ListTransactions (key 66): the transactions a broker coordinates.

v1 filter by duration; v2 filter by a pattern of the id (KIP-1152).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class ListTransactionsRequest(
    Message, api_key=66, versions="0-2", flexible="0+", listeners="broker"
):
    state_filters: list[string] = field()
    producer_id_filters: list[int64] = field()
    duration_filter: int64 = field("1+", default=-1)
    transactional_id_pattern: string | None = field("2+", default=None)


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    unknown_state_filters: list[string] = field()
    transaction_states: list[TransactionState] = field()


class TransactionState(Struct):
    transactional_id: string = field()
    producer_id: int64 = field()
    transaction_state: string = field()
