"""The APIs that create, renew and expire delegation tokens, at the controller."""

from typing import Any

from barnabas.controller.delegation_tokens import owner_of
from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.server.api.delegation_tokens import require_may_manage_tokens
from barnabas.server.controller_api import controller_requests
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)


async def create(request: CreateDelegationTokenRequest, context: RequestContext) -> Any:
    """CreateDelegationToken (key 38): a token of another owner needs CREATE_TOKENS on that user."""
    require_may_manage_tokens(context)
    owner, requester = str(owner_of(request, context.principal)), str(context.principal)
    resource = Resource(ResourceType.USER, owner)
    if owner != requester and not context.is_allowed(AclOperation.CREATE_TOKENS, resource):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            f"{requester} may not create tokens of {owner}.",
        )
    return await controller_requests.decide(request, context)


async def change(
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest, context: RequestContext
) -> Any:
    """RenewDelegationToken (key 39) and ExpireDelegationToken (key 40)."""
    require_may_manage_tokens(context)
    return await controller_requests.decide(request, context)
