"""The APIs of delegation tokens.

CreateDelegationToken (key 38)     v3 on behalf of another owner
RenewDelegationToken (key 39)
ExpireDelegationToken (key 40)     a negative period removes the token at once
DescribeDelegationToken (key 41)   v3 the requesters; null owners: all tokens, no owners: none

Clients that did not authenticate, or that logged in with a token, may not use them. A described
token is one that the client owns, requested or may renew, or that an ACL lets it see: the HMAC is
part of the description.
"""

from barnabas.config.setting import Secret
from barnabas.metadata.states import DelegationToken
from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.security.delegation_tokens import may_manage_tokens, may_see, token_hmac
from barnabas.security.principal import KafkaPrincipal
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.wire.schema import Message


async def forward(
    request: CreateDelegationTokenRequest
    | RenewDelegationTokenRequest
    | ExpireDelegationTokenRequest,
    context: RequestContext,
) -> Message:
    require_may_manage_tokens(context)
    response: Message = await context.broker.controller.forward(request, context)
    return response


async def describe(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    require_may_manage_tokens(context)
    secret_key: Secret | None = context.broker.settings["delegation.token.secret.key"]
    if secret_key is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    return DescribeDelegationTokenResponse(
        tokens=[
            _describe(token, secret_key)
            for token in context.broker.image.tokens.values()
            if (owners is None or token.owner in owners) and _is_visible(token, context)
        ]
    )


def require_may_manage_tokens(context: RequestContext) -> None:
    """Raises DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for clients that may not use these APIs."""
    if not may_manage_tokens(context.principal):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Log in with a certificate or SASL, but not with a token, to manage tokens.",
        )


def _is_visible(token: DelegationToken, context: RequestContext) -> bool:
    by_id = Resource(ResourceType.DELEGATION_TOKEN, token.token_id)
    by_owner = Resource(ResourceType.USER, token.owner)
    return (
        may_see(token, context.principal)
        or context.is_allowed(AclOperation.DESCRIBE, by_id, is_audited=False)
        or context.is_allowed(AclOperation.DESCRIBE_TOKENS, by_owner, is_audited=False)
    )


def _describe(token: DelegationToken, secret_key: Secret) -> DescribedDelegationToken:
    owner, requester = KafkaPrincipal.parse(token.owner), KafkaPrincipal.parse(token.requester)
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(token.token_id, secret_key),
        renewers=[
            DescribedDelegationTokenRenewer(
                principal_type=renewer.type, principal_name=renewer.name
            )
            for renewer in map(KafkaPrincipal.parse, token.renewers)
        ],
    )
