"""UnregisterBroker (key 64): forget a broker that will not come back."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, string


class UnregisterBrokerRequest(
    Message, api_key=64, versions="0", flexible="0+", listeners="broker controller"
):
    broker_id: int32 = field()


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
