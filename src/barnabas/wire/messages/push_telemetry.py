"""PushTelemetry (key 72): a client's metrics (KIP-714)."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int8, int16, int32, uuid


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+", listeners="broker"):
    client_instance_id: uuid = field()
    subscription_id: int32 = field()
    terminating: bool = field()
    compression_type: int8 = field()
    metrics: bytes = field()


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
