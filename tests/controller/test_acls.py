"""CreateAcls and DeleteAcls."""

from typing import Any

import pytest
from tests.controller.conftest import World, error_response_to

from barnabas.controller import delete_acls
from barnabas.metadata.states import AclEntry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.wire.messages.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3


def acl(**changes: Any) -> AclCreation:
    valid: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**{**valid, **changes})


def a_filter(**changes: Any) -> DeleteAclsFilter:
    anything: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return DeleteAclsFilter(**{**anything, **changes})


def create(world: World, *creations: AclCreation) -> Any:
    return world.decide(CreateAclsRequest(creations=list(creations)))


def test_an_acl_is_created_once(one_broker: World) -> None:
    decision = create(one_broker, acl(), acl(), acl(operation=WRITE))
    assert [result.error_code for result in decision.response.results] == [0, 0, 0]
    assert [type(record) for record in decision.records] == [AccessControlEntryRecord] * 2
    assert AclEntry(TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW) in (
        one_broker.image.acls.values()
    )
    assert create(one_broker, acl()).records == []


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 8},
        {"resource_type": CLUSTER},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"resource_name": ""},
        {"operation": 0},
        {"operation": 1},
        {"operation": 16},
        {"permission_type": 1},
        {"permission_type": 4},
        {"principal": "alice"},
        {"host": ""},
        {"host": "10.0.0.0/33"},
        {"host": "10.0.0.0/x"},
        {"host": "somewhere/8"},
    ],
    ids=str,
)
def test_an_invalid_acl_is_an_error_of_its_own(changes: dict[str, Any], one_broker: World) -> None:
    decision = create(one_broker, acl(**changes), acl())
    codes = [result.error_code for result in decision.response.results]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(decision.records) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": CLUSTER, "resource_name": "kafka-cluster"},
        {"resource_pattern_type": PREFIXED},
        {"host": "10.0.0.0/8"},
        {"host": "2001:db8::/32"},
        {"host": "example.org"},
        {"principal": "Group:admins"},
        {"permission_type": DENY, "operation": 15, "resource_type": 5},
    ],
    ids=str,
)
def test_a_valid_acl_is_created(changes: dict[str, Any], one_broker: World) -> None:
    assert len(create(one_broker, acl(**changes)).records) == 1


def test_the_acls_that_match_are_removed_and_returned_by_filter(one_broker: World) -> None:
    create(one_broker, acl(), acl(operation=WRITE), acl(principal="User:bob"))
    request = DeleteAclsRequest(
        filters=[
            a_filter(principal_filter="User:alice"),
            a_filter(operation=READ),
            a_filter(resource_type_filter=GROUP),
        ]
    )
    decision = one_broker.decide(request)
    results: Any = decision.response
    assert [len(result.matching_acls) for result in results.filter_results] == [2, 2, 0]
    assert [type(each) for each in decision.records] == [RemoveAccessControlEntryRecord] * 3
    assert not one_broker.image.acls


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resource_name_filter": "orders"}, ["orders", "prefixed orders"]),
        ({"resource_name_filter": "orders", "pattern_type_filter": LITERAL}, ["orders"]),
        ({"pattern_type_filter": PREFIXED}, ["prefixed orders", "prefixed ord"]),
        (
            {"resource_name_filter": "orders", "pattern_type_filter": MATCH},
            ["orders", "prefixed orders", "prefixed ord", "*"],
        ),
        ({"resource_name_filter": "*", "pattern_type_filter": MATCH}, ["*"]),
        ({"resource_name_filter": "ord", "pattern_type_filter": MATCH}, ["prefixed ord", "*"]),
    ],
)
def test_filters_match_patterns(
    changes: dict[str, Any], expected: list[str], one_broker: World
) -> None:
    create(
        one_broker,
        acl(),
        acl(resource_name="*"),
        acl(resource_pattern_type=PREFIXED),
        acl(resource_pattern_type=PREFIXED, resource_name="ord"),
        acl(resource_name="parcels"),
    )
    response: Any = one_broker.decide(DeleteAclsRequest(filters=[a_filter(**changes)])).response
    (result,) = response.filter_results
    matching = {
        ("prefixed " if each.pattern_type == PREFIXED else "") + each.resource_name
        for each in result.matching_acls
    }
    assert matching == set(expected)


def test_a_filter_with_an_unknown_code_is_an_error_of_its_own(one_broker: World) -> None:
    create(one_broker, acl())
    request = DeleteAclsRequest(filters=[a_filter(operation=0), a_filter(operation=READ)])
    response: Any = one_broker.decide(request).response
    assert [each.error_code for each in response.filter_results] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]


def test_one_request_removes_a_limited_number(
    one_broker: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_acls, "MAX_RECORDS", 2)
    create(one_broker, *(acl(resource_name=str(number)) for number in range(3)))
    request = DeleteAclsRequest(filters=[a_filter(), a_filter(principal_filter="User:bob")])
    with pytest.raises(KafkaError) as error:
        one_broker.decide(request)
    response = error_response_to(request, error.value)
    assert [each.error_code for each in response.filter_results] == [42, 42]
    assert len(one_broker.image.acls) == 3
