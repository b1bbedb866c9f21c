"""The ACLs of a cluster, indexed by what they protect and by principal.

An ACL is found by the type of its resource, then by its literal name or by its prefix, then by its
principal. A lookup takes as many steps as there are different lengths of prefixes, however many
ACLs there are.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeVar

from barnabas.metadata.acls import parse_network
from barnabas.metadata.states import AclEntry
from barnabas.security.authorizer.model import (
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
)

K = TypeVar("K")

EVERYONE = "User:*"
"""The principal of ACLs for everyone, whatever the type of their own principal is."""

_IMPLIED_BY: dict[int, frozenset[int]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""A principal that may perform one of these operations may also perform that of the key."""

_NONE_IMPLY: frozenset[int] = frozenset()


class IndexedAcl:
    """One ACL, with its host in the form in which it is compared."""

    __slots__ = ("_host", "_network", "entry", "is_denial", "operation")

    def __init__(self, entry: AclEntry) -> None:
        self.entry = entry
        self.operation = entry.operation
        self.is_denial = entry.permission_type != AclPermission.ALLOW
        self._host = entry.host
        self._network: IPv4Network | IPv6Network | None = None
        if "/" in entry.host:
            self._network = parse_network(entry.host)
        elif (address := _address(entry.host)) is not None:
            self._host = str(address)

    def names_operation(self, operation: AclOperation) -> bool:
        return self.operation in (operation, AclOperation.ALL)

    def matches_operation(self, operation: AclOperation) -> bool:
        """Returns whether it allows or denies the operation: only what is allowed is implied."""
        if self.names_operation(operation):
            return True
        return not self.is_denial and self.operation in _IMPLIED_BY.get(operation, _NONE_IMPLY)

    def matches_host(self, host: str) -> bool:
        if self._host in (WILDCARD, host):
            return True
        if self._network is None:
            return False
        address = _address(host)
        # A damaged address must not escape a denial.
        return self.is_denial if address is None else address in self._network


AclsById = dict[bytes, IndexedAcl]
AclsByPrincipal = dict[str, AclsById]


class AclIndex:
    """All ACLs of a cluster."""

    __slots__ = ("_by_id", "_by_pattern", "_by_principal", "_prefix_lengths")

    def __init__(self) -> None:
        self._by_id: AclsById = {}
        self._by_pattern: dict[tuple[int, int, str], AclsByPrincipal] = {}
        self._by_principal: dict[tuple[int, str], AclsById] = {}
        self._prefix_lengths: dict[int, Counter[int]] = {}  # by the type of the resource

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, acl_id: bytes, entry: AclEntry) -> None:
        self.remove(acl_id)
        acl = self._by_id[acl_id] = IndexedAcl(entry)
        pattern = self._by_pattern.setdefault(_pattern_of(entry), {})
        if not pattern and entry.pattern_type == PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(entry.resource_type, Counter())
            lengths[len(entry.resource_name)] += 1
        pattern.setdefault(entry.principal, {})[acl_id] = acl
        self._by_principal.setdefault(_principal_of(entry), {})[acl_id] = acl

    def remove(self, acl_id: bytes) -> None:
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        entry = acl.entry
        pattern = self._by_pattern[_pattern_of(entry)]
        _remove(pattern, entry.principal, acl_id)
        _remove(self._by_principal, _principal_of(entry), acl_id)
        if pattern:
            return
        del self._by_pattern[_pattern_of(entry)]
        if entry.pattern_type == PatternType.PREFIXED:
            lengths = self._prefix_lengths[entry.resource_type]
            lengths[len(entry.resource_name)] -= 1
            lengths += Counter()  # removes lengths that no prefix has
            self._prefix_lengths[entry.resource_type] = lengths

    def covering(self, resource_type: int, name: str) -> Iterator[AclsByPrincipal]:
        """Yields the ACLs of every pattern that covers the resource."""
        by_pattern = self._by_pattern
        literal = by_pattern.get((resource_type, PatternType.LITERAL, name))
        if literal is not None:
            yield literal
        if name != WILDCARD:
            wildcard = by_pattern.get((resource_type, PatternType.LITERAL, WILDCARD))
            if wildcard is not None:
                yield wildcard
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                prefixed = by_pattern.get((resource_type, PatternType.PREFIXED, name[:length]))
                if prefixed is not None:
                    yield prefixed

    def of_principal(self, resource_type: int, principal: str) -> Iterator[IndexedAcl]:
        """Yields the ACLs for resources of the type that name the principal, or everyone."""
        for name in {principal, EVERYONE}:
            yield from self._by_principal.get((resource_type, name), {}).values()


@lru_cache(maxsize=4096)
def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _pattern_of(entry: AclEntry) -> tuple[int, int, str]:
    return entry.resource_type, entry.pattern_type, entry.resource_name


def _principal_of(entry: AclEntry) -> tuple[int, str]:
    return entry.resource_type, entry.principal


def _remove(acls: dict[K, AclsById], key: K, acl_id: bytes) -> None:
    of_key = acls[key]
    del of_key[acl_id]
    if not of_key:
        del acls[key]
