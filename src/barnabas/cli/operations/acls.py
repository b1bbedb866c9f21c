"""ACLs: what the options of a command mean, and listing, adding and removing them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from barnabas.cli.operations.errors import CommandError
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.acls import AclBinding, AclBindingFilter
from barnabas.client.admin.model import (
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

B = TypeVar("B", bound=AclBinding)

CLUSTER_NAME: Final = "kafka-cluster"
ANY_HOST: Final = "*"

VALID_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations on a resource of each type, besides ALL."""

_ROLES: Final = {
    "producer": {
        ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
    },
    "consumer": {
        ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
        ResourceType.GROUP: (AclOperation.READ,),
    },
}


class AclResource(NamedTuple):
    """The resources of an ACL or of a filter; the name None means all of the type."""

    type: ResourceType
    name: str | None
    pattern_type: ResourcePatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={type_name(self.type)}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )


class AclRule(NamedTuple):
    """Who may, or may not, do what from where."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


ANYTHING: Final = AclResource(ResourceType.ANY, None, ResourcePatternType.ANY)

AclRules = dict[AclResource, list[AclRule]]


@dataclass(slots=True, frozen=True)
class AclOptions:
    """The ACLs that the options of a command describe."""

    resources: Mapping[ResourceType, Sequence[str]]
    pattern_type: ResourcePatternType = ResourcePatternType.LITERAL
    allowed_principals: Sequence[str] = ()
    denied_principals: Sequence[str] = ()
    allowed_hosts: Sequence[str] = ()
    denied_hosts: Sequence[str] = ()
    operations: Sequence[AclOperation] = (AclOperation.ALL,)
    roles: Sequence[str] = field(default=())
    """`producer` and `consumer` name operations instead of `operations`."""
    idempotent: bool = False

    def resource_list(self) -> list[AclResource]:
        return [
            AclResource(kind, name, self.pattern_type)
            for kind, names in self.resources.items()
            for name in names
        ]

    def rules(self) -> AclRules:
        """Returns the rules of each resource; none if no principal is named."""
        rules: dict[AclResource, dict[AclRule, None]] = {}
        for resource in self.resource_list():
            if not self.roles:
                rules.setdefault(resource, {}).update(self._rules_for(self.operations))
            for role in self.roles:
                if operations := _ROLES[role].get(resource.type):
                    rules.setdefault(resource, {}).update(self._rules_for(operations))
        if self.idempotent:
            cluster = AclResource(ResourceType.CLUSTER, CLUSTER_NAME, ResourcePatternType.LITERAL)
            rules.setdefault(cluster, {}).update(self._rules_for([AclOperation.IDEMPOTENT_WRITE]))
        return {resource: list(of_resource) for resource, of_resource in rules.items()}

    def _rules_for(self, operations: Sequence[AclOperation]) -> dict[AclRule, None]:
        sides = (
            (self.allowed_principals, self.allowed_hosts, AclPermissionType.ALLOW),
            (self.denied_principals, self.denied_hosts, AclPermissionType.DENY),
        )
        return {
            AclRule(principal, host, operation, permission): None
            for principals, hosts, permission in sides
            for principal in map(require_principal, principals)
            for host in hosts or (ANY_HOST,)
            for operation in operations
        }


def type_name(kind: ResourceType) -> str:
    """Returns the name of a type among ACLs, where the number of BROKER means the cluster."""
    return "CLUSTER" if kind is ResourceType.CLUSTER else kind.name


def operation_of(text: str) -> AclOperation:
    """Returns the operation of a name such as `DescribeConfigs`, in any case; else UNKNOWN."""
    name = text.strip().replace("_", "").replace("-", "").lower()
    for operation in AclOperation:
        if operation.name.replace("_", "").lower() == name:
            return operation
    return AclOperation.UNKNOWN


def require_principal(text: str) -> str:
    principal_type, colon, name = text.strip().partition(":")
    if not colon or not principal_type or not name:
        raise CommandError(
            f"expected a string in format principalType:principalName but got {text}"
        )
    return text.strip()


def find_invalid_operation(rules: AclRules) -> str | None:
    """Returns why a resource cannot have a rule, in Kafka's words; None if all can."""
    for resource, of_resource in rules.items():
        valid = (AclOperation.ALL, *VALID_OPERATIONS.get(resource.type, ()))
        if any(rule.operation not in valid for rule in of_resource):
            names = ", ".join(operation.name for operation in valid)
            return f"ResourceType {type_name(resource.type)} only supports operations [{names}]"
    return None


async def list_acls(
    admin: AioAdminClient, resources: Iterable[AclResource] = (ANYTHING,)
) -> AclRules:
    """Returns the ACLs of resources, sorted."""
    bindings: set[AclBinding] = set()
    for resource in resources:
        bindings.update(await admin.describe_acls(_filter(resource)))
    rules: AclRules = {}
    for binding in sorted(bindings):
        resource, rule = split(binding)
        rules.setdefault(resource, []).append(rule)
    return rules


async def add_acls(admin: AioAdminClient, resource: AclResource, rules: Sequence[AclRule]) -> None:
    if rules:
        (await admin.create_acls([_binding(AclBinding, resource, rule) for rule in rules])).all()


async def remove_acls(
    admin: AioAdminClient, resource: AclResource, rules: Sequence[AclRule]
) -> list[AclBinding]:
    """Removes rules of resources, or all rules if none is given. Returns what was removed."""
    filters = [_binding(AclBindingFilter, resource, rule) for rule in rules] or [_filter(resource)]
    removed = (await admin.delete_acls(filters)).all()
    return sorted({binding for bindings in removed.values() for binding in bindings})


def split(binding: AclBinding) -> tuple[AclResource, AclRule]:
    return (
        AclResource(binding.restype, binding.name, binding.resource_pattern_type),
        AclRule(
            binding.principal or "", binding.host or "", binding.operation, binding.permission_type
        ),
    )


def _binding(kind: type[B], resource: AclResource, rule: AclRule) -> B:
    return kind(*resource, rule.principal, rule.host, rule.operation, rule.permission)


def _filter(resource: AclResource) -> AclBindingFilter:
    return AclBindingFilter(*resource, None, None, AclOperation.ANY, AclPermissionType.ANY)
