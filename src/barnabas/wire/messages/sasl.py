"""The APIs of SASL authentication.

SaslHandshake (key 17): choose a SASL mechanism.
v0 is followed by bare tokens, v1 by SaslAuthenticate.

SaslAuthenticate (key 36): carry the tokens of a SASL mechanism.
v1 the session's lifetime (KIP-368); v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int64, string


class SaslHandshakeRequest(
    Message, api_key=17, versions="0-1", flexible="none", listeners="broker controller"
):
    mechanism: string = field()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible="none"):
    error_code: int16 = field()
    mechanisms: list[string] = field()


class SaslAuthenticateRequest(
    Message, api_key=36, versions="0-2", flexible="2+", listeners="broker controller"
):
    auth_bytes: bytes = field()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    error_code: int16 = field()
    error_message: string | None = field()
    auth_bytes: bytes = field()
    session_lifetime_ms: int64 = field("1+", ignorable=True)
