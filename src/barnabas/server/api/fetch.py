"""Fetch (key 1): record batches, for consumers and for the brokers that follow this one.

v4 isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs; v10 zstd;
v11 rack and preferred read replica; v12 flexible, diverging epochs; v13 topics by id;
v15 the replica's state instead of its id; v16 the current leader's address; v17 the replica's
directory; v18 its high watermark.
"""

from barnabas.server.cluster_view import add_current_leaders
from barnabas.server.fetching.fetch_reader import create_fetch_reader
from barnabas.server.request_context import RequestContext
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


async def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    broker = context.broker
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no isolation level {request.isolation_level}."
        )
    fetch = broker.fetch_sessions.context(request, context.api_version, context.now_ms)
    if fetch.error:
        return fetch.response((), context.now_ms)
    reading = create_fetch_reader(request, fetch, context)
    reading.read_all()
    if not reading.is_complete and request.max_wait_ms > 0:
        watched = reading.watched_keys()
        if watched:
            await broker.purgatory.delay(watched, request.max_wait_ms, reading.on_change, "Fetch")
            reading.read_dirty()
    response = fetch.response(reading.results(), broker.clock())
    if reading.has_errors and context.api_version >= FIRST_VERSION_WITH_LEADERS:
        _name_leaders(response, context)
    return response


def _name_leaders(response: FetchResponse, context: RequestContext) -> None:
    """Tell who leads the partitions that this broker does not."""
    refused = (
        (topic.topic_id, answer.partition_index, answer)
        for topic in response.responses
        for answer in topic.partitions
        if answer.error_code in _LED_ELSEWHERE
    )
    response.node_endpoints = add_current_leaders(refused, context, LeaderIdAndEpoch, NodeEndpoint)
