"""DescribeDelegationToken (key 41): the delegation tokens of owners.

v2 flexible; v3 who requested a token.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DescribeDelegationTokenRequest(
    Message, api_key=41, versions="1-3", flexible="2+", listeners="broker controller"
):
    owners: list[DescribeDelegationTokenOwner] | None = field()


class DescribeDelegationTokenOwner(Struct):
    principal_type: string = field()
    principal_name: string = field()


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    error_code: int16 = field()
    tokens: list[DescribedDelegationToken] = field()
    throttle_time_ms: int32 = field()


class DescribedDelegationToken(Struct):
    principal_type: string = field()
    principal_name: string = field()
    token_requester_principal_type: string = field("3+")
    token_requester_principal_name: string = field("3+")
    issue_timestamp: int64 = field()
    expiry_timestamp: int64 = field()
    max_timestamp: int64 = field()
    token_id: string = field()
    hmac: bytes = field()
    renewers: list[DescribedDelegationTokenRenewer] = field()


class DescribedDelegationTokenRenewer(Struct):
    principal_type: string = field()
    principal_name: string = field()
