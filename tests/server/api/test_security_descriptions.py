"""DescribeUserScramCredentials, DescribeClientQuotas and the APIs of delegation tokens."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.api.test_configs import result_of

from barnabas.config.setting import Secret
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import DelegationToken, ScramCredential
from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.security.delegation_tokens import token_hmac
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.server.api import client_quotas, delegation_tokens, scram_credentials
from barnabas.server.controller_api import delegation_tokens as controller_tokens
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.client_quotas import ComponentData, DescribeClientQuotasRequest
from barnabas.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.wire.messages.scram import DescribeUserScramCredentialsRequest, UserName

ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
SECRET = Secret("the key of all nodes")
EXACT, DEFAULT, SPECIFIED = range(3)


class FakeAuthorizer:
    """Allows a set of operations on resources."""

    def __init__(self, *allowed: tuple[AclOperation, Resource]) -> None:
        self._allowed = allowed

    def is_allowed(self, _: Any, operation: AclOperation, resource: Resource, **__: bool) -> bool:
        return (operation, resource) in self._allowed


class FakeController:
    """Counts what reaches it."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def forward(self, request: Any, _: Any) -> Any:
        return await self.handle(request)

    async def handle(self, request: Any, **_: Any) -> Any:
        self.requests.append(request)
        return CreateDelegationTokenResponse()


def context_of(
    principal: KafkaPrincipal = ALICE,
    authorizer: FakeAuthorizer | None = None,
    secret: Secret | None = SECRET,
) -> RequestContext:
    image = MetadataImage()
    image.scram = {
        ("bob", 2): ScramCredential(b"s", b"k", b"k", 8192),
        ("alice", 1): ScramCredential(b"s", b"k", b"k", 4096),
        ("bob", 1): ScramCredential(b"s", b"k", b"k", 4096),
    }
    image.quotas = {
        (("user", "alice"),): {"producer_byte_rate": 1.0},
        (("user", None),): {"producer_byte_rate": 2.0},
        (("client-id", "app"), ("user", "alice")): {"producer_byte_rate": 3.0},
        (("client-id", None),): {"producer_byte_rate": 4.0},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
    }
    for token_id, owner, requester in (
        ("1", "User:alice", "User:bob"),
        ("2", "User:bob", "User:bob"),
    ):
        image.tokens[token_id] = DelegationToken(token_id, owner, requester, ("User:r",), 1, 3, 2)
    broker: Any = SimpleNamespace(
        image=image,
        authorizer=authorizer,
        settings={"delegation.token.secret.key": secret},
        controller=FakeController(),
        quotas=RequestQuotas(),
    )
    connection: Any = SimpleNamespace(principal=principal, host="10.0.0.1")
    return RequestContext(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 1, "test", connection, broker, 0, 0)


def error_of(call: Callable[..., Any], *arguments: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call(*arguments).send(None)
    return raised.value.code


# SCRAM credentials


def described_users(*names: str) -> Any:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    response = result_of(scram_credentials.handle(request, context_of()))
    return {
        result.user: ErrorCode.of(result.error_code)
        if result.error_code
        else [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in response.results
    }


def test_users_are_described_by_mechanism_and_iterations() -> None:
    everybody = {"alice": [(1, 4096)], "bob": [(1, 4096), (2, 8192)]}
    assert described_users() == everybody
    assert described_users("bob", "alice") == everybody
    request = DescribeUserScramCredentialsRequest(users=None)
    assert len(result_of(scram_credentials.handle(request, context_of())).results) == 2


def test_unknown_and_repeated_users_are_errors() -> None:
    assert described_users("carol", "alice", "bob", "bob") == {
        "carol": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": [(1, 4096)],
        "bob": ErrorCode.DUPLICATE_RESOURCE,
    }


def test_users_and_quotas_are_hidden_without_an_acl() -> None:
    context = context_of(authorizer=FakeAuthorizer())
    for handle, request in (
        (scram_credentials.handle, DescribeUserScramCredentialsRequest()),
        (client_quotas.handle, DescribeClientQuotasRequest()),
    ):
        assert error_of(handle, request, context) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# Client quotas


def described_quotas(*components: tuple[str, int, str | None], strict: bool = False) -> list[float]:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=name)
            for kind, match_type, name in components
        ],
        strict=strict,
    )
    response = result_of(client_quotas.handle(request, context_of()))
    return [entry.values[0].value for entry in response.entries]


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, [1.0, 2.0, 3.0, 4.0, 5.0]),
        ([], True, []),
        ([("user", EXACT, "alice")], False, [1.0, 3.0]),
        ([("user", EXACT, "alice")], True, [1.0]),
        ([("user", EXACT, "")], False, []),
        ([("user", DEFAULT, None)], False, [2.0]),
        ([("user", SPECIFIED, None)], True, [1.0, 2.0]),
        ([("user", SPECIFIED, None), ("client-id", SPECIFIED, None)], False, [3.0]),
        ([("client-id", DEFAULT, None)], False, [4.0]),
        ([("ip", EXACT, "10.0.0.1")], False, [5.0]),
    ],
)
def test_quotas_are_filtered(
    components: list[tuple[str, int, str | None]], strict: bool, expected: list[float]
) -> None:
    assert described_quotas(*components, strict=strict) == expected


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("group", DEFAULT, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_invalid_filters_are_rejected(
    components: list[tuple[str, int, str | None]], error: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as raised:
        described_quotas(*components)
    assert raised.value.code is error


# Delegation tokens


def described_tokens(context: RequestContext, owners: list[str] | None = None) -> list[str]:
    named = (
        owners
        if owners is None
        else [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
            for name in owners
        ]
    )
    request = DescribeDelegationTokenRequest(owners=named)
    response = result_of(delegation_tokens.describe(request, context))
    assert all(token.hmac == token_hmac(token.token_id, SECRET) for token in response.tokens)
    assert all(token.renewers[0].principal_name == "r" for token in response.tokens)
    return [token.token_id for token in response.tokens]


def test_tokens_are_shown_to_owners_requesters_and_renewers() -> None:
    for principal, expected in (
        (ALICE, ["1"]),
        (BOB, ["1", "2"]),
        (KafkaPrincipal("User", "r"), ["1", "2"]),
        (CAROL, []),
    ):
        assert described_tokens(context_of(principal, FakeAuthorizer())) == expected


def test_acls_show_the_tokens_of_others() -> None:
    by_id = (AclOperation.DESCRIBE, Resource(ResourceType.DELEGATION_TOKEN, "1"))
    by_owner = (AclOperation.DESCRIBE_TOKENS, Resource(ResourceType.USER, "User:bob"))
    assert described_tokens(context_of(CAROL, FakeAuthorizer(by_id))) == ["1"]
    assert described_tokens(context_of(CAROL, FakeAuthorizer(by_owner))) == ["2"]


def test_tokens_are_filtered_by_owner() -> None:
    assert described_tokens(context_of(BOB), ["alice"]) == ["1"]
    assert described_tokens(context_of(BOB), []) == []


@pytest.mark.parametrize(
    "principal", [ANONYMOUS, KafkaPrincipal("User", "alice", token_authenticated=True)]
)
def test_anonymous_and_token_clients_may_not_manage_tokens(principal: KafkaPrincipal) -> None:
    context = context_of(principal)
    for handle, request in (
        (delegation_tokens.forward, CreateDelegationTokenRequest()),
        (delegation_tokens.forward, RenewDelegationTokenRequest()),
        (delegation_tokens.forward, ExpireDelegationTokenRequest()),
        (delegation_tokens.describe, DescribeDelegationTokenRequest()),
        (controller_tokens.create, CreateDelegationTokenRequest()),
        (controller_tokens.change, RenewDelegationTokenRequest()),
        (controller_tokens.change, ExpireDelegationTokenRequest()),
    ):
        error = error_of(handle, request, context)
        assert error is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_key_no_token_is_described() -> None:
    error = error_of(
        delegation_tokens.describe, DescribeDelegationTokenRequest(), context_of(secret=None)
    )
    assert error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_token_of_another_owner_needs_an_acl() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")
    own = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="alice")
    allowed = (AclOperation.CREATE_TOKENS, Resource(ResourceType.USER, "User:bob"))
    context = context_of(authorizer=FakeAuthorizer())
    error = error_of(controller_tokens.create, request, context)
    assert error is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    result_of(controller_tokens.create(own, context))
    result_of(controller_tokens.create(request, context_of(authorizer=FakeAuthorizer(allowed))))
