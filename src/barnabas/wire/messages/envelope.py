"""The API that forwards a request, and the principal inside it.

Envelope (key 58): a broker forwards a client's request to the controller.

DefaultPrincipalData: the principal of the forwarded request.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, string


class EnvelopeRequest(Message, api_key=58, versions="0", listeners="controller"):
    request_data: bytes = field()
    request_principal: bytes | None = field()
    client_host_address: bytes = field()


class EnvelopeResponse(Message, api_key=58, versions="0"):
    response_data: bytes | None = field(default=None)
    error_code: int16 = field()


class DefaultPrincipalData(Message, versions="0"):
    type: string = field()
    name: string = field()
    token_authenticated: bool = field()
