"""The APIs of delegation tokens.

CreateDelegationToken (key 38): issue a delegation token.
v2 flexible; v3 on behalf of another owner.

RenewDelegationToken (key 39): extend the life of a delegation token.
v2 flexible.

ExpireDelegationToken (key 40): end a delegation token, now or at a time.
v2 flexible.

DescribeDelegationToken (key 41): the delegation tokens of owners.
v2 flexible; v3 the requester of a token.
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


class RenewDelegationTokenRequest(
    Message, api_key=39, versions="1-2", flexible="2+", listeners="broker controller"
):
    hmac: bytes = field()
    renew_period_ms: int64 = field()


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    error_code: int16 = field()
    expiry_timestamp_ms: int64 = field()
    throttle_time_ms: int32 = field()


class ExpireDelegationTokenRequest(
    Message, api_key=40, versions="1-2", flexible="2+", listeners="broker controller"
):
    hmac: bytes = field()
    expiry_time_period_ms: int64 = field()


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    error_code: int16 = field()
    expiry_timestamp_ms: int64 = field()
    throttle_time_ms: int32 = field()


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
