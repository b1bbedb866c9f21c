"""Client telemetry (KIP-714): clients ask what to push, and push it.

GetTelemetrySubscriptions (key 71): v0. PushTelemetry (key 72): v0.

Histograms are shown by their count and sum, exponential histograms and summaries are not shown.
"""

import asyncio

from barnabas.server.request_context import RequestContext
from barnabas.server.telemetry.instances import ACCEPTED_CODECS
from barnabas.server.telemetry.subscriptions import TelemetryClient
from barnabas.server.telemetry.telemetry import POINTS_OF_STEP, decode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from barnabas.wire.records.compression import Codec, CompressionError, decompress

_MAX_CHARACTERS = 256


async def get_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    telemetry = context.broker.telemetry
    telemetry.tick(context.now_ms)
    instance = telemetry.instances.get(
        bytes(request.client_instance_id), _client(context), context.now_ms
    )
    instance_id = instance.instance_id
    context.connection.call_when_closed(
        instance_id, lambda: telemetry.instances.remove(instance_id)
    )
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.request.id,
        accepted_compression_types=[codec.value for codec in ACCEPTED_CODECS],
        push_interval_ms=instance.request.interval_ms,
        telemetry_max_bytes=telemetry.instances.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.request.metrics),
    )


async def push(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    telemetry = context.broker.telemetry
    telemetry.tick(context.now_ms)
    instance = telemetry.instances.push(request, _client(context), context.now_ms)
    instance_id, name = instance.instance_id, instance.name
    context.connection.call_when_closed(
        instance_id, lambda: telemetry.instances.remove(instance_id)
    )
    if not instance.request.metrics:
        return PushTelemetryResponse()  # nothing is subscribed to, and nothing is shown
    content = _decompress(request, telemetry.instances.max_bytes)
    points = await decode(content, asyncio.get_running_loop())
    telemetry.pushed.pushes += 1
    for start in range(0, len(points), POINTS_OF_STEP):
        part = points[start : start + POINTS_OF_STEP]
        if instance_id in telemetry.instances:
            telemetry.pushed.add(instance_id, instance.client.client_id, name, part)
        await asyncio.sleep(0)  # other requests get their turn
    return PushTelemetryResponse()


def _decompress(request: PushTelemetryRequest, max_bytes: int) -> bytes:
    try:
        return bytes(decompress(Codec(request.compression_type), request.metrics, max_bytes))
    except CompressionError as error:
        code = (
            ErrorCode.TELEMETRY_TOO_LARGE
            if "expands beyond" in error.message
            else ErrorCode.INVALID_RECORD
        )
        raise KafkaError(code, error.message) from None


def _client(context: RequestContext) -> TelemetryClient:
    """Returns the client, with texts of bounded length: thousands of clients are remembered."""
    connection = context.connection
    name, version = connection.software
    return TelemetryClient(
        client_id=(context.client_id or "")[:_MAX_CHARACTERS],
        client_software_name=name[:_MAX_CHARACTERS],
        client_software_version=version[:_MAX_CHARACTERS],
        client_source_address=connection.host,
        client_source_port=str(connection.port),
    )
