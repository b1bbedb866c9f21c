"""The codes of ACLs in the protocol and in the metadata log, and filters of ACLs."""

from enum import IntEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from barnabas.metadata.states import AclEntry

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

WILDCARD = "*"
"""As a literal resource name: every resource of the type. As a host: every host."""


class ResourceType(IntEnum):
    """What an ACL protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the resource name of an ACL, or of a filter of ACLs, is compared."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What a client does with a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclFilter(NamedTuple):
    """Selects ACLs. None and ANY match everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def problem(self) -> str | None:
        """Why it cannot match anything: a code that is not known. None if it is valid."""
        codes: tuple[tuple[int, type[IntEnum], str], ...] = (
            (self.resource_type, ResourceType, "resource type"),
            (self.pattern_type, PatternType, "pattern type"),
            (self.operation, AclOperation, "operation"),
            (self.permission_type, AclPermission, "permission type"),
        )
        for code, known, what in codes:
            if not code or code not in frozenset(known):
                return f"Unknown {what} {code} in a filter of ACLs."
        return None

    def matches(self, acl: AclEntry) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (AclPermission.ANY, acl.permission_type)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AclEntry) -> bool:
        """MATCH selects every ACL that affects the resource with the filter's name."""
        name, pattern_type = self.resource_name, self.pattern_type
        if pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            return acl.pattern_type == pattern_type and name in (None, acl.resource_name)
        if name is None or acl.resource_name == name:
            return True
        if pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == WILDCARD


def parse_network(text: str) -> IPv4Network | IPv6Network | None:
    """Returns the addresses of a CIDR range, or None if it is not one."""
    address, _, length = text.partition("/")
    if not length.isascii() or not length.isdigit():
        return None
    try:
        return ip_network(f"{address}/{length}", strict=False)
    except ValueError:
        return None
