"""Delegation tokens: create, renew, expire, describe.

A client logs in with a token by SCRAM: the user is the token id, and the password is the HMAC in
base64.
"""

import base64
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.wire.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

SERVER_DEFAULT_MS = -1
"""The period that the settings of the cluster allow."""


@dataclass(slots=True, frozen=True)
class DelegationTokenDescription:
    """A token; principals have the form `User:alice`."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int

    @property
    def password(self) -> str:
        """The password to log in with; the user is `token_id`."""
        return base64.b64encode(self.hmac).decode()


def create_delegation_token(
    admin: AdminRequests,
    renewers: list[str] | None = None,
    *,
    owner: str | None = None,
    max_lifetime_ms: int = SERVER_DEFAULT_MS,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, DelegationTokenDescription]:
    """Creates a token of the client, or of another owner.

    `renewers` and `owner` are principals such as `User:alice`.
    """
    renewers = [] if renewers is None else renewers
    require_list("renewers", renewers, str, filled=False)
    owner_type, owner_name = (None, None) if owner is None else _principal(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in map(_principal, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    deadline = admin.deadline(request_timeout)

    async def create() -> DelegationTokenDescription:
        created = await admin.send_to_controller(request, deadline)
        return _created(created, renewers)

    return create()


def renew_delegation_token(
    admin: AdminRequests,
    hmac: bytes,
    *,
    renew_period_ms: int = SERVER_DEFAULT_MS,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, int]:
    """Extends the life of a token. Returns the timestamp in ms at which it expires."""
    request = RenewDelegationTokenRequest(
        hmac=_require_bytes(hmac), renew_period_ms=renew_period_ms
    )
    return _change(admin, request, request_timeout)


def expire_delegation_token(
    admin: AdminRequests,
    hmac: bytes,
    *,
    expiry_period_ms: int = -1,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, int]:
    """Ends a token after a period; a negative one removes it at once. Returns the timestamp."""
    request = ExpireDelegationTokenRequest(
        hmac=_require_bytes(hmac), expiry_time_period_ms=expiry_period_ms
    )
    return _change(admin, request, request_timeout)


def describe_delegation_token(
    admin: AdminRequests, owners: list[str] | None = None, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, list[DelegationTokenDescription]]:
    """Returns the tokens of owners, or all, that the client may see."""
    named = None
    if owners is not None:
        require_list("owners", owners, str, filled=False)
        named = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_principal, owners)
        ]
    request = DescribeDelegationTokenRequest(owners=named)
    deadline = admin.deadline(request_timeout)

    async def describe() -> list[DelegationTokenDescription]:
        response = await admin.send_to_controller(request, deadline)
        return [_described(token) for token in response.tokens]

    return describe()


def _change(
    admin: AdminRequests,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
    request_timeout: float,
) -> Coroutine[Any, Any, int]:
    deadline = admin.deadline(request_timeout)

    async def change() -> int:
        response = await admin.send_to_controller(request, deadline)
        return int(response.expiry_timestamp_ms)

    return change()


def _created(
    created: CreateDelegationTokenResponse, renewers: Sequence[str]
) -> DelegationTokenDescription:
    owner = f"{created.principal_type}:{created.principal_name}"
    # Brokers before version 3 of the API do not name the requester: it is the owner.
    requester = f"{created.token_requester_principal_type}:{created.token_requester_principal_name}"
    return DelegationTokenDescription(
        token_id=created.token_id,
        hmac=created.hmac,
        owner=owner,
        requester=requester if created.token_requester_principal_name else owner,
        renewers=tuple(renewers),
        issue_timestamp_ms=created.issue_timestamp_ms,
        expiry_timestamp_ms=created.expiry_timestamp_ms,
        max_timestamp_ms=created.max_timestamp_ms,
    )


def _described(token: DescribedDelegationToken) -> DelegationTokenDescription:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return DelegationTokenDescription(
        token_id=token.token_id,
        hmac=token.hmac,
        owner=owner,
        requester=requester if token.token_requester_principal_name else owner,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiry_timestamp,
        max_timestamp_ms=token.max_timestamp,
    )


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise ValueError(f"{text!r} is not a principal of the form User:alice")
    return kind, name


def _require_bytes(hmac: bytes) -> bytes:
    if not isinstance(hmac, bytes):
        raise TypeError("the HMAC of a token must be bytes")
    return hmac
