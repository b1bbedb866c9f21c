"""RenewDelegationToken (key 39): extend the life of a delegation token.

v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, int64


class RenewDelegationTokenRequest(
    Message, api_key=39, versions="1-2", flexible="2+", listeners="broker controller"
):
    hmac: bytes = field()
    renew_period_ms: int64 = field()


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    error_code: int16 = field()
    expiry_timestamp_ms: int64 = field()
    throttle_time_ms: int32 = field()
