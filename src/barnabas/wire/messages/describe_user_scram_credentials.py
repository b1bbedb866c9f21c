"""DescribeUserScramCredentials (key 50): which SCRAM credentials users have."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(
    Message, api_key=50, versions="0", flexible="0+", listeners="broker controller"
):
    users: list[UserName] | None = field()


class UserName(Struct):
    name: string = field()


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    results: list[DescribeUserScramCredentialsResult] = field()


class DescribeUserScramCredentialsResult(Struct):
    user: string = field()
    error_code: int16 = field()
    error_message: string | None = field()
    credential_infos: list[CredentialInfo] = field()


class CredentialInfo(Struct):
    mechanism: int8 = field()
    iterations: int32 = field()
