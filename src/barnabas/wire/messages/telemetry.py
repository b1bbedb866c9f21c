"""The APIs of client telemetry (KIP-714).

GetTelemetrySubscriptions (key 71): the metrics that a client pushes (KIP-714).

PushTelemetry (key 72): a client's metrics (KIP-714).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", listeners="broker"):
    client_instance_id: uuid = field()


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    client_instance_id: uuid = field()
    subscription_id: int32 = field()
    accepted_compression_types: list[int8] = field()
    push_interval_ms: int32 = field()
    telemetry_max_bytes: int32 = field()
    delta_temporality: bool = field()
    requested_metrics: list[string] = field()


class PushTelemetryRequest(Message, api_key=72, versions="0", listeners="broker"):
    client_instance_id: uuid = field()
    subscription_id: int32 = field()
    terminating: bool = field()
    compression_type: int8 = field()
    metrics: bytes = field()


class PushTelemetryResponse(Message, api_key=72, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
