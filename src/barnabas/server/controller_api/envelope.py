"""Envelope (key 58): a client's request that a broker forwards to the controller (KIP-590).

The sender must be allowed to perform CLUSTER_ACTION. What the request itself needs is checked with
the principal and the address of the client. The response contains the bytes of the response to the
client, or NOT_CONTROLLER.
"""

from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.security.principal import KafkaPrincipal
from barnabas.server.controller_api import FORWARDABLE, HANDLERS
from barnabas.server.envelopes import encode_response, read_client_host, read_principal
from barnabas.server.errors import error_of
from barnabas.server.handlers import served_versions
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_response, is_not_controller
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.headers import RequestHeader, read_request_header
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.schema import Message


async def handle(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
    context.require_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)
    principal = read_principal(request.request_principal)
    host = read_client_host(request.client_host_address)
    header, forwarded = _unwrap(request.request_data)
    response = await _handle_forwarded(
        forwarded, ForwardedRequestContext(context, header, principal, host)
    )
    if is_not_controller(response):
        # The broker that forwarded it, not the client, finds the active controller.
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
    return EnvelopeResponse(response_data=encode_response(response, header))


class ForwardedRequestContext(RequestContext):
    """The context of a forwarded request: its client is the client of the broker."""

    __slots__ = ("_host", "_principal")

    def __init__(
        self, context: RequestContext, header: RequestHeader, principal: KafkaPrincipal, host: str
    ) -> None:
        super().__init__(
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            context.connection,
            context.controller_node,
            context.now_ms,
            context.received_ns,
        )
        self._principal = principal
        self._host = host

    @property
    def host(self) -> str:
        return self._host

    @property
    def principal(self) -> KafkaPrincipal:
        return self._principal


def _unwrap(content: bytes) -> tuple[RequestHeader, Message]:
    """Returns the client's request. Raises UNSUPPORTED_VERSION, as Kafka, if it cannot be read."""
    try:
        header, body = read_request_header(content)
        if header.api_version not in served_versions(ApiKey(header.api_key)):
            raise ProtocolViolation(f"version {header.api_version} is not served here")
        if header.api_key not in FORWARDABLE:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{api(header.api_key).name} cannot be forwarded."
            )
        request = api(header.api_key).request.read_exactly(content, header.api_version, body)
    except (ProtocolViolation, ValueError) as violation:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(violation)) from violation
    return header, request


async def _handle_forwarded(request: Message, context: ForwardedRequestContext) -> Message:
    key = ApiKey(request.API_KEY)
    try:
        response: Message = await HANDLERS[key](request, context)
    except Exception as failure:
        code, message = error_of(failure, api(key).name, context)
        if code is ErrorCode.NOT_CONTROLLER:
            raise  # some versions of some responses cannot report it
        error = error_response(request, context.api_version, code, message)
        assert error is not None, "only Produce may expect no response"
        return error
    return response
