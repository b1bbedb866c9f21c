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
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint

FIRST_VERSION_WITH_LEADERS = 16

ISOLATION_LEVELS = (0, 1)

_NOT_LED_HERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


async def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    broker = context.broker
    if request.isolation_level not in ISOLATION_LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Isolation level {request.isolation_level} does not exist."
        )
    fetch = broker.fetch_sessions.context(request, context.api_version, context.now_ms)
    if fetch.error:
        return fetch.response((), context.now_ms)
    if broker.authorizer is not None:
        fetch.check_permissions_of(context.principal, context.host, broker.authorizer.generation)
    reader = create_fetch_reader(request, fetch, context)
    reader.read_all()
    if reader.has_cold_reads:
        await reader.read_cold(broker.disk_reads)
    if not reader.is_complete and request.max_wait_ms > 0:
        keys = reader.watched_keys()
        if keys:
            await broker.purgatory.delay(keys, request.max_wait_ms, reader.on_change, "Fetch")
            reader.read_dirty()
            if reader.has_cold_reads:
                await reader.read_cold(broker.disk_reads)
    response = fetch.response(reader.results(), broker.clock())
    if reader.has_errors and context.api_version >= FIRST_VERSION_WITH_LEADERS:
        _add_current_leaders(response, context)
    return response


def _add_current_leaders(response: FetchResponse, context: RequestContext) -> None:
    """Sets the current leaders of partitions that this broker does not lead."""
    rejected = (
        (topic.topic_id, partition.partition_index, partition)
        for topic in response.responses
        for partition in topic.partitions
        if partition.error_code in _NOT_LED_HERE
    )
    response.node_endpoints = add_current_leaders(rejected, context, LeaderIdAndEpoch, NodeEndpoint)
