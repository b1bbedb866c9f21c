"""With the same ACLs, the same requests have the same responses."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.authorization.cases import CASES, GUARDED, Case, Need, metadata
from tests.conformance.authorization.secured import SETTINGS, SecuredBroker
from tests.conformance.brokers import BrokerProcess, PeerBroker, is_peer_installed
from tests.conformance.side_by_side.requests import fetch
from tests.conformance.side_by_side.sides import Side, assert_same_responses

from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from barnabas.wire.messages.metadata import DescribeClusterRequest

pytestmark = pytest.mark.peer

VOLATILE = {
    "base_offset": "a position",
    "high_watermark": "a position",
    "last_stable_offset": "a position",
    "client_host": "an address",
    "records": "bytes",
    "node_endpoints": "only consumers read them",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SecuredBroker]]:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    brokers = [
        PeerBroker(tmp_path_factory.mktemp("secured-kafka"), settings=SETTINGS),
        BrokerProcess(tmp_path_factory.mktemp("secured-barnabas"), settings=SETTINGS),
    ]
    both: list[SecuredBroker] = []
    try:
        for name, broker in zip(("Kafka", "Barnabas"), brokers, strict=True):
            broker.start()
            both.append(SecuredBroker(name, broker))
            both[-1].prepare()
        yield both
    finally:
        for side in both:
            side.close()
        for broker in brokers:
            broker.stop()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key.name} {case.variant}")
def test_a_request_with_each_number_of_its_permissions(
    case: Case, secured: list[SecuredBroker]
) -> None:
    admins = {id(side.client): side.admin for side in secured}

    def build(side: Side, version: int) -> Any:
        return case.build(admins[id(side)], version)

    for count in range(len(case.needs) + 1):
        for side in secured:
            side.grant(*case.needs[:count])
        assert_same_responses([side.client for side in secured], build, ignoring=VOLATILE)


@pytest.mark.parametrize(
    "operations", [[], ["DESCRIBE"], ["ALTER"], ["ALTER_CONFIGS", "DESCRIBE"], ["ALL"]], ids=str
)
def test_the_operations_on_the_cluster(operations: list[str], secured: list[SecuredBroker]) -> None:
    for side in secured:
        side.grant(*(Need(AclOperation[name], CLUSTER, None) for name in operations))
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert_same_responses([side.client for side in secured], lambda *_: request)


@pytest.mark.parametrize("operation", ["READ", "WRITE", "ALTER_CONFIGS", "CREATE", "ALL"])
def test_the_operations_on_a_topic(operation: str, secured: list[SecuredBroker]) -> None:
    for side in secured:
        side.grant(Need(AclOperation[operation], topic_resource(GUARDED), None))
    assert_same_responses([side.client for side in secured], metadata(GUARDED))


def test_a_permission_that_is_revoked_during_a_fetch_session(secured: list[SecuredBroker]) -> None:
    need = Need(AclOperation.READ, topic_resource(GUARDED), None)
    codes = []
    for side in secured:
        side.grant(need)
        opened: Any = side.client.send(fetch(GUARDED, session_epoch=0), 11)
        codes.append([partition_codes(opened)])
        for epoch in (1, 2, 3):
            if epoch == 2:
                side.revoke()
            if epoch == 3:
                side.grant(need)
            request = fetch(GUARDED, session_id=opened.session_id, session_epoch=epoch, offset=99)
            if epoch > 1:
                request.topics = []
            codes[-1].append(partition_codes(side.client.send(request, 11)))
    kafka, barnabas = codes
    assert kafka == barnabas
    assert kafka[2] == [29]


def partition_codes(response: Any) -> list[int]:
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


def creation(**changes: Any) -> AclCreation:
    valid: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:somebody",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**{**valid, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_type": 4},
        {"resource_type": 4, "resource_name": "kafka-cluster"},
        {"resource_name": ""},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"resource_pattern_type": 4},
        {"principal": "somebody"},
        {"principal": ""},
        {"principal": ":"},
        {"host": "example.org"},
        {"operation": 1},
        {"operation": 9},
        {"permission_type": 1},
        {"permission_type": 2},
    ],
    ids=str,
)
def test_acls_that_are_created(changes: dict[str, Any], secured: list[SecuredBroker]) -> None:
    request = CreateAclsRequest(creations=[creation(**changes)])
    assert_same_responses([side.admin for side in secured], lambda *_: request)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"resource_type_filter": 2},
        {"resource_name_filter": "filtered-one"},
        {"resource_name_filter": "filtered-one", "pattern_type_filter": 2},
        {"resource_name_filter": "filtered-one-more", "pattern_type_filter": 2},
        {"resource_name_filter": "filtered-one-more", "pattern_type_filter": 1},
        {"pattern_type_filter": 3},
        {"pattern_type_filter": 4},
        {"host_filter": "10.0.0.1"},
        {"operation": 3},
        {"permission_type": 2},
        {"principal_filter": None, "host_filter": "10.0.0.1"},
    ],
    ids=str,
)
def test_filters_of_acls(changes: dict[str, Any], secured: list[SecuredBroker]) -> None:
    fields: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": "User:filtered",
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        **changes,
    }
    acls = [
        creation(principal="User:filtered", resource_name="filtered-one"),
        creation(principal="User:filtered", resource_name="filtered-one", permission_type=2),
        creation(principal="User:filtered", resource_name="filtered", resource_pattern_type=4),
        creation(principal="User:filtered", resource_name="*", host="10.0.0.1", operation=4),
        creation(principal="User:filtered", resource_name="*", resource_type=3),
    ]
    admins = [side.admin for side in secured]
    for side in secured:
        side.create(acls)
    assert_same_responses(admins, lambda *_: DescribeAclsRequest(**fields))
    delete = DeleteAclsRequest(filters=[DeleteAclsFilter(**fields)])
    assert_same_responses(admins, lambda _, version: delete if version in (-1, 3) else None)
    for side in secured:
        side.delete(principal="User:filtered")
