"""A node with an authorizer: it starts only with a valid one, and follows the ACLs."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.node.test_node import send_request
from tests.server.harness import on_a_loop

from barnabas.config import BrokerSettings
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import AclEntry
from barnabas.node import Node, NodeError
from barnabas.node.authorization import NodeAuthorization
from barnabas.node.format import format_new_directories, single_node_properties
from barnabas.security.authorizer.authorizer import Authorizer
from barnabas.security.authorizer.model import CLUSTER, AclOperation, ResourceType
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def settings_with(folder: Path, **changes: str) -> BrokerSettings:
    properties = single_node_properties("127.0.0.1", 0, folder)
    properties.update({name.replace("_", "."): text for name, text in changes.items()})
    settings = BrokerSettings.from_properties(properties)
    format_new_directories(settings)
    return settings


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"authorizer_class_name": "org.example.Mine"}, "Java classes cannot be loaded"),
        ({"authorizer_class_name": "acl", "super_users": "admin"}, "super.users"),
    ],
)
def test_a_node_does_not_start_without_its_authorizer(
    changes: dict[str, str], reason: str, tmp_path: Path
) -> None:
    @on_a_loop
    async def scenario() -> None:
        with pytest.raises(NodeError, match=reason):
            await Node.start(settings_with(tmp_path / "data", **changes))
        node = await Node.start(settings_with(tmp_path / "other"))
        await node.stop()

    scenario()


ANY_ACL = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def offsets_of(topic: str) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])


@on_a_loop
async def test_acls_are_in_force_after_a_restart_from_the_first_request_on(tmp_path: Path) -> None:
    settings = settings_with(
        tmp_path / "data",
        authorizer_class_name="acl",
        allow_everyone_if_no_acl_found="true",
    )
    node = await Node.start(settings)
    metadata: Any = await send_request(
        node, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12
    )
    assert metadata.topics[0].error_code != DENIED
    denial = AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=3,
        principal="User:*",
        host="127.0.0.0/8",
        operation=8,
        permission_type=2,
    )
    created: Any = await send_request(node, CreateAclsRequest(creations=[denial]), 3)
    assert [result.error_code for result in created.results] == [0]
    response: Any = await send_request(node, offsets_of("orders"), 7)
    assert response.topics[0].partitions[0].error_code == DENIED
    await node.stop()

    again = await Node.start(settings)
    response = await send_request(again, offsets_of("orders"), 7)
    acls: Any = await send_request(again, ANY_ACL, 3)
    await again.stop()
    assert response.topics[0].partitions[0].error_code == DENIED
    assert [resource.resource_name for resource in acls.resources] == ["orders"]


@on_a_loop
async def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    node = await Node.start(settings_with(tmp_path / "data"))
    response: Any = await send_request(node, ANY_ACL, 3)
    await node.stop()
    assert response.error_code == ErrorCode.SECURITY_DISABLED


class Failing(Authorizer):
    """An authorizer with a bug."""

    def is_allowed(self, *_: Any) -> bool:
        return True

    def is_allowed_on_any(self, *_: Any) -> bool:
        return True

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        raise ZeroDivisionError("a bug")


def test_an_authorizer_that_cannot_follow_the_metadata_stops_its_node() -> None:
    settings = {"authorizer.class.name": f"{__name__}:Failing"}
    authorization = NodeAuthorization(settings, lambda: 0)
    image = MetadataImage()
    image.acls[bytes(16)] = AclEntry(2, "t", 3, "User:a", "*", 3, 3)
    assert authorization.requests is not None
    context: Any = SimpleNamespace(
        principal=ANONYMOUS, host="10.0.0.1", api_key=ApiKey.PRODUCE, controller_node=None
    )
    check = partial(authorization.requests.is_allowed, context, AclOperation.WRITE, CLUSTER)
    assert check()
    with pytest.raises(NodeError, match="a bug"):
        authorization.on_metadata_change(MetadataDelta(acls_changed={bytes(16)}), image)
    # Until the node has stopped, nothing is allowed by the old ACLs.
    with pytest.raises(KafkaError, match="has failed"):
        check()
    with pytest.raises(KafkaError, match="has failed"):
        authorization.requests.is_allowed_on_any(context, AclOperation.WRITE, ResourceType.TOPIC)


def test_acls_are_complete_only_when_the_node_has_what_the_leader_has_committed() -> None:
    """A follower that catches up has a high watermark of its own, at the end of what it has."""
    metadata = SimpleNamespace(image=SimpleNamespace(offset=9), apply=lambda _: None)
    quorum = SimpleNamespace(high_watermark=10, is_caught_up=False)
    loaded: list[int] = []
    node: Any = SimpleNamespace(
        metadata=metadata,
        quorum=quorum,
        _authorization=SimpleNamespace(on_loaded=lambda: loaded.append(1)),
        _controller_role=None,
    )
    Node.on_committed(node, [])
    assert not loaded
    quorum.is_caught_up = True
    Node.on_committed(node, [])
    assert loaded
