"""CreateDelegationToken (key 38): issue a delegation token.

v2 flexible; v3 on behalf of another owner.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class CreateDelegationTokenRequest(
    Message, api_key=38, versions="1-3", flexible="2+", listeners="broker controller"
):
    owner_principal_type: string | None = field("3+")
    owner_principal_name: string | None = field("3+")
    renewers: list[CreatableRenewers] = field()
    max_lifetime_ms: int64 = field()


class CreatableRenewers(Struct):
    principal_type: string = field()
    principal_name: string = field()


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    error_code: int16 = field()
    principal_type: string = field()
    principal_name: string = field()
    token_requester_principal_type: string = field("3+")
    token_requester_principal_name: string = field("3+")
    issue_timestamp_ms: int64 = field()
    expiry_timestamp_ms: int64 = field()
    max_timestamp_ms: int64 = field()
    token_id: string = field()
    hmac: bytes = field()
    throttle_time_ms: int32 = field()
