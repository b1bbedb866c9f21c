"""Fetch (key 1): record batches, for consumers and for the brokers that follow this one.

v4 isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs; v10 zstd;
v11 rack and preferred read replica; v12 flexible, diverging epochs; v13 topics by id;
v15 the replica's state instead of its id; v16 the current leader's address; v17 the replica's
directory; v18 its high watermark.
"""

from barnabas.server.cluster_view import name_leaders
from barnabas.server.fetching.fetch_reader import begin_reading
from barnabas.server.request_context import Call
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

FIRST_VERSION_WITH_LEADERS = 16

ISOLATION_LEVELS = (0, 1)

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


async def handle(request: FetchRequest, call: Call) -> FetchResponse:
    broker = call.broker
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no isolation level {request.isolation_level}."
        )
    context = broker.fetch_sessions.context(request, call.api_version, call.now_ms)
    if context.error:
        return context.answer((), call.now_ms)
    reading = begin_reading(request, context, call)
    reading.read_all()
    if not reading.is_done and request.max_wait_ms > 0:
        watched = reading.watched()
        if watched:
            await broker.purgatory.park(watched, request.max_wait_ms, reading.take_note, "Fetch")
            reading.read_stirred()
    response = context.answer(reading.answers(), broker.clock())
    if reading.has_failed and call.api_version >= FIRST_VERSION_WITH_LEADERS:
        _name_leaders(response, call)
    return response


def _name_leaders(response: FetchResponse, call: Call) -> None:
    """Tell who leads the partitions that this broker does not."""
    refused = (
        (topic.topic_id, answer.partition_index, answer)
        for topic in response.responses
        for answer in topic.partitions
        if answer.error_code in _LED_ELSEWHERE
    )
    response.node_endpoints = name_leaders(refused, call, LeaderIdAndEpoch, NodeEndpoint)
