"""The ACLs that the options of commands describe."""

import pytest

from barnabas.cli.operations.acls import (
    AclOptions,
    find_invalid_operation,
    operation_of,
    require_principal,
)
from barnabas.cli.operations.errors import CommandError
from barnabas.client.admin.model import AclOperation, ResourcePatternType, ResourceType


def rules_of(options: AclOptions) -> dict[str, list[str]]:
    return {
        f"{resource.type.name} {resource.name} {resource.pattern_type.name}": [
            f"{rule.permission.name} {rule.principal} {rule.operation.name} {rule.host}"
            for rule in rules
        ]
        for resource, rules in options.rules().items()
    }


def test_every_principal_gets_every_operation_from_every_host() -> None:
    options = AclOptions(
        resources={ResourceType.TOPIC: ["t"]},
        pattern_type=ResourcePatternType.PREFIXED,
        allowed_principals=["User:a", "User:b"],
        allowed_hosts=["10.0.0.1", "10.0.0.2"],
        denied_principals=["User:c"],
        operations=[AclOperation.READ],
    )
    assert rules_of(options) == {
        "TOPIC t PREFIXED": [
            "ALLOW User:a READ 10.0.0.1",
            "ALLOW User:a READ 10.0.0.2",
            "ALLOW User:b READ 10.0.0.1",
            "ALLOW User:b READ 10.0.0.2",
            "DENY User:c READ *",
        ]
    }


def test_producers_and_consumers_get_what_they_need() -> None:
    options = AclOptions(
        resources={
            ResourceType.TOPIC: ["t"],
            ResourceType.GROUP: ["g"],
            ResourceType.TRANSACTIONAL_ID: ["x"],
        },
        allowed_principals=["User:a"],
        roles=["producer", "consumer"],
        idempotent=True,
    )
    assert rules_of(options) == {
        "TOPIC t LITERAL": [
            f"ALLOW User:a {operation} *" for operation in ("WRITE", "DESCRIBE", "CREATE", "READ")
        ],
        "GROUP g LITERAL": ["ALLOW User:a READ *"],
        "TRANSACTIONAL_ID x LITERAL": ["ALLOW User:a WRITE *", "ALLOW User:a DESCRIBE *"],
        "BROKER kafka-cluster LITERAL": ["ALLOW User:a IDEMPOTENT_WRITE *"],
    }


def test_without_principals_there_are_resources_and_no_rules() -> None:
    assert rules_of(AclOptions({ResourceType.TOPIC: ["t"]})) == {"TOPIC t LITERAL": []}


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("Read", AclOperation.READ),
        ("DescribeConfigs", AclOperation.DESCRIBE_CONFIGS),
        ("describe_configs", AclOperation.DESCRIBE_CONFIGS),
        ("ALL", AclOperation.ALL),
        ("Fly", AclOperation.UNKNOWN),
    ],
)
def test_operations_have_names(text: str, operation: AclOperation) -> None:
    assert operation_of(text) is operation


def test_an_operation_must_exist_on_the_resource() -> None:
    def check(kind: ResourceType, operation: AclOperation) -> str | None:
        return find_invalid_operation(
            AclOptions({kind: ["n"]}, allowed_principals=["User:a"], operations=[operation]).rules()
        )

    assert check(ResourceType.GROUP, AclOperation.READ) is None
    assert check(ResourceType.USER, AclOperation.ALL) is None
    assert check(ResourceType.CLUSTER, AclOperation.READ) == (
        "ResourceType CLUSTER only supports operations [ALL, CREATE, ALTER, DESCRIBE, "
        "CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE]"
    )


@pytest.mark.parametrize("text", ["alice", ":alice", "User:", ""])
def test_a_principal_has_a_type_and_a_name(text: str) -> None:
    with pytest.raises(CommandError, match="principalType:principalName"):
        require_principal(text)
