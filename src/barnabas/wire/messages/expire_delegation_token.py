"""ExpireDelegationToken (key 40): end a delegation token, now or at a time.

v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64


class ExpireDelegationTokenRequest(
    Message, api_key=40, versions="1-2", flexible="2+", listeners="broker controller"
):
    hmac: bytes = field()
    expiry_time_period_ms: int64 = field()


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    error_code: int16 = field()
    expiry_timestamp_ms: int64 = field()
    throttle_time_ms: int32 = field()
