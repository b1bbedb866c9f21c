"""A controller's listener checks what its clients may do."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.controller_api.fake_controller import FakeControllerListener
from tests.server.controller_api.test_envelope import CREATE, inside, sealed
from tests.server.harness import on_a_loop

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import AclEntry
from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    AclPermission,
    PatternType,
    Resource,
    topic_resource,
)
from barnabas.security.authorizer.standard_authorizer import StandardAuthorizer
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.controller_api import HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_counter
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.client_quotas import AlterClientQuotasRequest, RequestEntryData
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.schema import Message

CAF = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TAF = ErrorCode.TOPIC_AUTHORIZATION_FAILED

ON_THE_CLUSTER = {
    ApiKey.FETCH: AclOperation.CLUSTER_ACTION,
    ApiKey.DESCRIBE_ACLS: AclOperation.DESCRIBE,
    ApiKey.ELECT_LEADERS: AclOperation.ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AclOperation.ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: AclOperation.DESCRIBE,
    ApiKey.ALTER_CLIENT_QUOTAS: AclOperation.ALTER_CONFIGS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AclOperation.ALTER,
    ApiKey.VOTE: AclOperation.CLUSTER_ACTION,
    ApiKey.BEGIN_QUORUM_EPOCH: AclOperation.CLUSTER_ACTION,
    ApiKey.END_QUORUM_EPOCH: AclOperation.CLUSTER_ACTION,
    ApiKey.DESCRIBE_QUORUM: AclOperation.DESCRIBE,
    ApiKey.ALTER_PARTITION: AclOperation.CLUSTER_ACTION,
    ApiKey.UPDATE_FEATURES: AclOperation.ALTER,
    ApiKey.ENVELOPE: AclOperation.CLUSTER_ACTION,
    ApiKey.FETCH_SNAPSHOT: AclOperation.CLUSTER_ACTION,
    ApiKey.DESCRIBE_CLUSTER: AclOperation.ALTER,
    ApiKey.BROKER_REGISTRATION: AclOperation.CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: AclOperation.CLUSTER_ACTION,
    ApiKey.UNREGISTER_BROKER: AclOperation.ALTER,
    ApiKey.ALLOCATE_PRODUCER_IDS: AclOperation.CLUSTER_ACTION,
    ApiKey.CONTROLLER_REGISTRATION: AclOperation.CLUSTER_ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: AclOperation.CLUSTER_ACTION,
    ApiKey.ADD_RAFT_VOTER: AclOperation.ALTER,
    ApiKey.REMOVE_RAFT_VOTER: AclOperation.ALTER,
    ApiKey.UPDATE_RAFT_VOTER: AclOperation.CLUSTER_ACTION,
}
"""The operation that a client must be allowed to perform, or gets CLUSTER_AUTHORIZATION_FAILED."""

IMPLY_DESCRIBE = {
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DELETE,
    AclOperation.ALTER,
}

BY_RESOURCE = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
"""APIs that check every resource; brokers forward them, so the cases of brokers test them."""

BY_CLIENT = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
"""APIs for every client, and those of tokens, which depend on how the client has logged in."""


class SecuredListener(FakeControllerListener):
    """A controller's listener with ACLs for everyone who is not authenticated."""

    def __init__(self, *allowed: tuple[AclOperation, Resource], super_users: str = "") -> None:
        super().__init__()
        self._authorizer = StandardAuthorizer()
        self._authorizer.configure({"super.users": super_users})
        self._authorizer.complete_initial_load()
        self.node.authorizer = RequestAuthorizer(self._authorizer, lambda: 0)
        self.allow("User:ANONYMOUS", *allowed)

    def allow(self, principal: str, *allowed: tuple[AclOperation, Resource]) -> None:
        acls = self.node.image.acls
        for operation, resource in allowed:
            acls[len(acls).to_bytes(16, "big")] = AclEntry(
                resource.type,
                resource.name,
                PatternType.LITERAL,
                principal,
                "*",
                operation,
                AclPermission.ALLOW,
            )
        self._authorizer.apply_delta(MetadataDelta(acls_changed=set(acls)), self.node.image)


def test_every_api_has_a_case() -> None:
    assert {*ON_THE_CLUSTER, *BY_RESOURCE, *BY_CLIENT} == set(HANDLERS)


@pytest.mark.parametrize("key", ON_THE_CLUSTER, ids=lambda key: key.name)
def test_an_api_needs_an_operation_on_the_cluster(key: ApiKey) -> None:
    sufficient = {ON_THE_CLUSTER[key], AclOperation.ALL}
    if ON_THE_CLUSTER[key] is AclOperation.DESCRIBE:
        sufficient |= IMPLY_DESCRIBE
    others = set(AclOperation) - sufficient

    @on_a_loop
    async def scenario() -> None:
        version = served_versions(key).max
        without = SecuredListener(*((operation, CLUSTER) for operation in others))
        response = await without.request(_request(key), version)
        assert CAF in codes(response), response
        assert not without.controller.requests
        assert not without.quorum.requests
        allowed = SecuredListener((ON_THE_CLUSTER[key], CLUSTER))
        assert CAF not in codes(await allowed.request(_request(key), version))

    scenario()


def _request(key: ApiKey) -> Message:
    """Returns a request with something in it, if only that can have an error."""
    match key:
        case ApiKey.ENVELOPE:
            return sealed(inside(CREATE, 7))
        case ApiKey.ALTER_CLIENT_QUOTAS:
            return AlterClientQuotasRequest(entries=[RequestEntryData()])
        case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            return AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="a")])
    return api(key).request()


def codes(response: Any) -> set[int]:
    counts: Any = _Counts()
    error_counter(type(response), counts)(response)
    return set(counts)


class _Counts(dict[int, int]):
    def __missing__(self, key: int) -> int:
        return 0


@on_a_loop
async def test_a_forwarded_request_is_checked_with_the_principal_of_its_client() -> None:
    listener = SecuredListener((AclOperation.CLUSTER_ACTION, CLUSTER))
    envelope = sealed(inside(CREATE, 7))
    response = await listener.request(envelope, 0)
    assert response.error_code == ErrorCode.NONE
    created = CreateTopicsResponse.read_exactly(response.response_data, 7, 5)
    assert [topic.error_code for topic in created.topics] == [TAF]
    listener.allow("User:alice", (AclOperation.CREATE, topic_resource("t")))
    response = await listener.request(envelope, 0)
    created = CreateTopicsResponse.read_exactly(response.response_data, 7, 5)
    assert created.topics == []
    assert [len(request.topics) for request, _ in sent(listener)] == [0, 1]


def sent(listener: FakeControllerListener) -> list[Any]:
    return listener.controller.requests


@on_a_loop
async def test_the_request_that_is_split_is_left_as_it_is() -> None:
    """The broker sends the same request again if another controller is active by then."""
    listener = SecuredListener((AclOperation.CREATE, topic_resource("mine")))
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="mine"), CreatableTopic(name="theirs")], timeout_ms=7
    )
    response = await listener.request(request, 7)
    assert [topic.name for topic in response.topics] == ["theirs"]
    ((decided, timeout_ms),) = sent(listener)
    assert [topic.name for topic in decided.topics] == ["mine"]
    assert timeout_ms == 7
    assert len(request.topics) == 2


@on_a_loop
async def test_a_topic_that_may_not_be_described_looks_the_same_whether_it_exists_or_not() -> None:
    listener = SecuredListener()
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState(name="b")])
    response = await listener.request(request, 6)
    assert {(topic.name, topic.error_code) for topic in response.responses} == {
        ("a", TAF),
        ("b", TAF),
    }


@on_a_loop
async def test_a_topic_that_is_being_created_is_deleted_only_with_permission() -> None:
    """The controller knows topics that the image does not have yet."""
    names = [topic_resource(name) for name in ("described", "mine")]
    listener = SecuredListener(
        *((AclOperation.DESCRIBE, name) for name in names), (AclOperation.DELETE, names[1])
    )
    by_id = DeleteTopicState(topic_id=bytes(15) + b"\7")
    request = DeleteTopicsRequest(
        topics=[*(DeleteTopicState(name=resource.name) for resource in names), by_id]
    )
    response = await listener.request(request, 6)
    assert {(topic.name, topic.error_code) for topic in response.responses} == {
        ("described", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    ((decided, _),) = sent(listener)
    assert [topic.name for topic in decided.topics] == ["mine"]


@pytest.mark.parametrize("with_authorizer", [True, False])
def test_acls_need_an_authorizer(with_authorizer: bool) -> None:
    @on_a_loop
    async def scenario() -> None:
        listener: Callable[[], FakeControllerListener] = FakeControllerListener
        if with_authorizer:
            listener = lambda: SecuredListener(super_users="User:ANONYMOUS")  # noqa: E731
        request = CreateAclsRequest(creations=[AclCreation(resource_name="x")])
        response = await listener().request(request, 3)
        expected = [] if with_authorizer else [ErrorCode.SECURITY_DISABLED]
        assert [result.error_code for result in response.results] == expected

    scenario()
