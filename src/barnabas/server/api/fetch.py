"""Fetch (key 1): record batches, for consumers and for the brokers that follow this one.

v4 isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs; v10 zstd;
v11 rack and preferred read replica; v12 flexible, diverging epochs; v13 topics by id;
v15 the replica's state instead of its id; v16 the current leader's address; v17 the replica's
directory; v18 its high watermark.
"""

from barnabas.security.quotas.client_quotas import RateQuota
from barnabas.server.cluster_view import add_current_leaders
from barnabas.server.fetching.fetch_reader import FetchReader, create_fetch_reader
from barnabas.server.fetching.session_cache import FetchContext, by_topic, is_follower
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from barnabas.wire.outgoing import Outgoing

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
    quota = broker.quotas.fetch if broker.quotas.fetch.is_enabled else None
    if quota is not None and is_follower(request, context.api_version):
        quota = None
    if quota is not None:
        _limit_bytes(reader, quota, context)
    reader.read_all()
    if reader.has_cold_reads:
        await reader.read_cold(broker.disk_reads)
    if not reader.is_complete and request.max_wait_ms > 0:
        keys = reader.watched_keys()
        if keys:
            await broker.purgatory.delay(keys, request.max_wait_ms, reader.on_change, "Fetch")
            reader.read_dirty()
            await finish_wait(reader, context)
    return respond(reader, fetch, quota, context)


async def finish_wait(reader: FetchReader, context: RequestContext) -> None:
    """Does what is left after the wait: reading from disk, and permissions that have changed."""
    if reader.has_cold_reads:
        await reader.read_cold(context.broker.disk_reads)
    reader.recheck_permissions()


def respond(
    reader: FetchReader, fetch: FetchContext, quota: RateQuota | None, context: RequestContext
) -> FetchResponse:
    """Returns the response with what was read; `quota` is that of a consumer."""
    if quota is not None:
        delay_ms = _record_bytes(reader, quota, context)
        if delay_ms:
            reader.discard()
            return fetch.throttled_response(reader.results(), delay_ms)
    response = fetch.response(reader.results(), context.broker.clock())
    if reader.has_errors and context.api_version >= FIRST_VERSION_WITH_LEADERS:
        _add_current_leaders(response, context)
    return response


def _limit_bytes(reader: FetchReader, quota: RateQuota, context: RequestContext) -> None:
    """Lets no response be larger than what the quota can ever allow."""
    limit = quota.burst_limit(context.principal.name, context.client_id or "")
    if limit is not None:
        reader.limit_bytes(limit)


def _record_bytes(reader: FetchReader, quota: RateQuota, context: RequestContext) -> int:
    """Records the size of the response; returns how long to wait instead of sending it, in ms."""
    out = Outgoing()
    response = FetchResponse(responses=by_topic(reader.results()))
    response.writer(context.api_version)(response, out)
    user, client_id = context.principal.name, context.client_id or ""
    now_ms = context.broker.quotas.now_ms()
    delay_ms = quota.record(user, client_id, out.size_bytes, now_ms)
    if delay_ms:
        quota.take_back(user, client_id, out.size_bytes, now_ms)
    return delay_ms


def _add_current_leaders(response: FetchResponse, context: RequestContext) -> None:
    """Sets the current leaders of partitions that this broker does not lead."""
    rejected = (
        (topic.topic_id, partition.partition_index, partition)
        for topic in response.responses
        for partition in topic.partitions
        if partition.error_code in _NOT_LED_HERE
    )
    response.node_endpoints = add_current_leaders(rejected, context, LeaderIdAndEpoch, NodeEndpoint)
