"""SaslHandshake (key 17): choose a SASL mechanism.

v0 is followed by bare tokens, v1 by SaslAuthenticate.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", listeners="broker controller"):
    mechanism: string = field()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    error_code: int16 = field()
    mechanisms: list[string] = field()
