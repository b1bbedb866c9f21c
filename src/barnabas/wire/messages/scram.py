"""The APIs of SCRAM credentials.

DescribeUserScramCredentials (key 50): which SCRAM credentials users have.

AlterUserScramCredentials (key 51): set or remove SCRAM credentials.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(
    Message, api_key=50, versions="0", listeners="broker controller"
):
    users: list[UserName] | None = field()


class UserName(Struct):
    name: string = field()


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0"):
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


class AlterUserScramCredentialsRequest(
    Message, api_key=51, versions="0", listeners="broker controller"
):
    deletions: list[ScramCredentialDeletion] = field()
    upsertions: list[ScramCredentialUpsertion] = field()


class ScramCredentialDeletion(Struct):
    name: string = field()
    mechanism: int8 = field()


class ScramCredentialUpsertion(Struct):
    name: string = field()
    mechanism: int8 = field()
    iterations: int32 = field()
    salt: bytes = field()
    salted_password: bytes = field()


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0"):
    throttle_time_ms: int32 = field()
    results: list[AlterUserScramCredentialsResult] = field()


class AlterUserScramCredentialsResult(Struct):
    user: string = field()
    error_code: int16 = field()
    error_message: string | None = field()
