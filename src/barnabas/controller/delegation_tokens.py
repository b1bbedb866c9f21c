"""CreateDelegationToken (key 38), RenewDelegationToken (39) and ExpireDelegationToken (40).

The handlers have checked that the client may use these APIs, and may create tokens of the owner.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from barnabas.config.resolver import ConfigResolver
from barnabas.config.setting import Secret
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.features import DELEGATION_TOKENS_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import token_record
from barnabas.metadata.states import DelegationToken
from barnabas.security.delegation_tokens import (
    end_of_period,
    find_token,
    is_expired,
    may_renew,
    token_hmac,
)
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.messages.metadata_records import RemoveDelegationTokenRecord
from barnabas.wire.schema import Message
from barnabas.wire.uuid import to_text

MAX_REMOVALS_PER_RUN: Final = 1000
"""The remaining expired tokens follow in the next run."""


class _TokenSettings(NamedTuple):
    secret_key: Secret
    max_lifetime_ms: int
    expiry_time_ms: int


def decide_create(
    request: CreateDelegationTokenRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    settings = _require_settings(image, context)
    for renewer in request.renewers:
        if renewer.principal_type != USER:
            raise KafkaError(
                ErrorCode.INVALID_PRINCIPAL_TYPE,
                f"Renewer {renewer.principal_type}:{renewer.principal_name} is not a User.",
            )
    requester, now_ms = context.requester.principal, context.wall_clock_ms
    owner = owner_of(request, requester)
    max_timestamp_ms = end_of_period(now_ms, request.max_lifetime_ms, settings.max_lifetime_ms)
    token = DelegationToken(
        token_id=to_text(context.random_uuid()),
        owner=str(owner),
        requester=str(requester),
        renewers=tuple(f"{r.principal_type}:{r.principal_name}" for r in request.renewers),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=max_timestamp_ms,
        expiration_timestamp_ms=min(max_timestamp_ms, now_ms + settings.expiry_time_ms),
    )
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issue_timestamp_ms,
        expiry_timestamp_ms=token.expiration_timestamp_ms,
        max_timestamp_ms=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(token.token_id, settings.secret_key),
    )
    return Decision([token_record(token)], response)


def decide_renew(
    request: RenewDelegationTokenRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    settings = _require_settings(image, context)
    now_ms = context.wall_clock_ms
    token = _require_token(image, request.hmac, settings)
    _require_not_expired(token, now_ms)
    _require_may_renew(token, context)
    expiry_ms = min(
        token.max_timestamp_ms,
        end_of_period(now_ms, request.renew_period_ms, settings.expiry_time_ms),
    )
    return Decision(
        [token_record(replace(token, expiration_timestamp_ms=expiry_ms))],
        RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
    )


def decide_expire(
    request: ExpireDelegationTokenRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    settings = _require_settings(image, context)
    now_ms = context.wall_clock_ms
    token = _require_token(image, request.hmac, settings)
    _require_may_renew(token, context)
    _require_not_expired(token, now_ms)
    if request.expiry_time_period_ms < 0:
        return Decision(
            [RemoveDelegationTokenRecord(token_id=token.token_id)],
            ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms),
        )
    expiry_ms = min(token.max_timestamp_ms, now_ms + request.expiry_time_period_ms)
    return Decision(
        [token_record(replace(token, expiration_timestamp_ms=expiry_ms))],
        ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
    )


class ExpiredTokenRemover:
    """Decides when expired tokens are removed from the metadata."""

    __slots__ = ("_due_ms", "_interval_ms")

    def __init__(self, resolver: ConfigResolver, now_ms: int) -> None:
        self._interval_ms: int = resolver.broker("delegation.token.expiry.check.interval.ms")
        self._due_ms = now_ms + self._interval_ms

    def due_removals(self, image: MetadataImage, context: ControllerContext) -> list[Message]:
        if context.now_ms < self._due_ms:
            return []
        records: list[Message] = []
        for token in image.tokens.values():
            if is_expired(token, context.wall_clock_ms):
                records.append(RemoveDelegationTokenRecord(token_id=token.token_id))
                if len(records) == MAX_REMOVALS_PER_RUN:
                    return records
        self._due_ms = context.now_ms + self._interval_ms
        return records


def owner_of(request: CreateDelegationTokenRequest, requester: KafkaPrincipal) -> KafkaPrincipal:
    """Returns the owner of the new token: the requester, unless the request names another."""
    if not request.owner_principal_name:
        return KafkaPrincipal(requester.type, requester.name)
    return KafkaPrincipal(request.owner_principal_type or USER, request.owner_principal_name)


def _require_settings(image: MetadataImage, context: ControllerContext) -> _TokenSettings:
    """Raises KafkaError if the cluster has no delegation tokens."""
    resolver = context.resolver
    secret_key: Secret | None = resolver.broker("delegation.token.secret.key")
    if secret_key is None:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "Delegation tokens are disabled: set delegation.token.secret.key on all nodes.",
        )
    if image.metadata_level < DELEGATION_TOKENS_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Delegation tokens need metadata.version 3.6-IV2 or later: upgrade the feature first.",
        )
    return _TokenSettings(
        secret_key,
        resolver.broker("delegation.token.max.lifetime.ms"),
        resolver.broker("delegation.token.expiry.time.ms"),
    )


def _require_token(
    image: MetadataImage, presented_hmac: bytes, settings: _TokenSettings
) -> DelegationToken:
    token = find_token(image.tokens.values(), presented_hmac, settings.secret_key)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "No token has this HMAC.")
    return token


def _require_not_expired(token: DelegationToken, now_ms: int) -> None:
    if is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, f"Token {token.token_id} has expired.")


def _require_may_renew(token: DelegationToken, context: ControllerContext) -> None:
    if not may_renew(token, context.requester.principal):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
            f"{context.requester.principal} is neither the owner nor a renewer of token "
            f"{token.token_id}.",
        )
