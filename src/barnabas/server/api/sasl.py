"""SaslHandshake (key 17) and SaslAuthenticate (key 36): a client proves who it is.

SaslHandshake v0 is followed by bare tokens, v1 by SaslAuthenticate. SaslAuthenticate v1 returns the
lifetime of the session (KIP-368).

The same handlers serve brokers and controllers. `barnabas.server.network.authentication` has the
states of a connection.
"""

from barnabas.server.network.authentication import ConnectionAuthentication
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


async def handshake(
    request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    return _authentication(context).handshake(request, context.api_version)


async def authenticate(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    return await _authentication(context).authenticate(request, context.api_version, context.now_ms)


def _authentication(context: RequestContext) -> ConnectionAuthentication:
    authentication = context.connection.authentication
    if authentication is None:
        raise KafkaError(
            ErrorCode.ILLEGAL_SASL_STATE,
            f"Listener {context.listener} has no SASL; set security.protocol to PLAINTEXT or SSL.",
        )
    return authentication
