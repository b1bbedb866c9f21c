"""Decides by the ACLs of the cluster, as Kafka's StandardAuthorizer does.

Decisions are cached by principal, host, operation and resource. A change of the ACLs discards them.
"""

from collections.abc import Mapping
from typing import ClassVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import AclEntry
from barnabas.security.authorizer.acl_index import EVERYONE, AclIndex, IndexedAcl
from barnabas.security.authorizer.authorizer import Authorizer
from barnabas.security.authorizer.model import (
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
    Resource,
    ResourceType,
)
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.errors import ErrorCode, KafkaError

SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"

MAX_CACHED_NAME = 249
"""The length of the longest topic name. Decisions on longer names of groups are not cached."""

CACHE_SIZE = 8192
"""Two generations of so many decisions are kept."""

_BOOLEANS = {"true": True, "false": False}
_ANY_NAME = "hardcode"
"""A name that stands for any, as in Kafka: only super users and defaults allow it."""

Decision = tuple[bool, str | AclEntry]
"""Whether it is allowed, and the ACL or the name of the rule that decides."""

CacheKey = tuple[KafkaPrincipal, str, AclOperation, Resource | ResourceType]


class StandardAuthorizer(Authorizer):
    """An operation is allowed if an ACL allows it and none denies it.

    Before the ACLs of the cluster are loaded, super users may do everything and others get an
    error.
    """

    uses_acls: ClassVar[bool] = True

    def __init__(self) -> None:
        self._super_users: frozenset[str] = frozenset()
        self._allows_unprotected = False
        self._acls = AclIndex()
        self._is_loaded = False
        self._generation = 0
        self._recent: dict[CacheKey, bool] = {}
        self._older: dict[CacheKey, bool] = {}

    def configure(self, settings: Mapping[str, str]) -> None:
        self._super_users = _parse_super_users(settings.get(SUPER_USERS, ""))
        text = settings.get(ALLOW_EVERYONE, "false").strip().lower()
        if text not in _BOOLEANS:
            raise ValueError(f"{ALLOW_EVERYONE} is {text}; it must be true or false.")
        self._allows_unprotected = _BOOLEANS[text]

    def is_allowed(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> bool:
        cached = self._recent.get((principal, host, operation, resource))
        if cached is not None:
            return cached
        return self._cached(principal, host, operation, resource)

    def is_allowed_on_any(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        cached = self._recent.get((principal, host, operation, resource_type))
        if cached is not None:
            return cached
        return self._cached(principal, host, operation, resource_type)

    def explain(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> str:
        _, rule = self._decide(str(principal), host, operation, resource)
        return rule if isinstance(rule, str) else f"MatchingAcl(acl={_describe(rule)})"

    @property
    def generation(self) -> int:
        return self._generation

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if not delta.acls_changed:
            return
        for acl_id in delta.acls_changed:
            entry = image.acls.get(acl_id)
            if entry is None:
                self._acls.remove(acl_id)
            else:
                self._acls.put(acl_id, entry)
        self._generation += 1
        self._recent, self._older = {}, {}

    def complete_initial_load(self) -> None:
        self._is_loaded = True

    def _cached(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource: Resource | ResourceType,
    ) -> bool:
        """Decides, unless the older generation of cached decisions has it."""
        key = (principal, host, operation, resource)
        is_allowed = self._older.get(key)
        if is_allowed is None:
            if isinstance(resource, ResourceType):
                is_allowed = self._decide_on_any(str(principal), host, operation, resource)
            else:
                is_allowed, _ = self._decide(str(principal), host, operation, resource)
                if len(resource.name) > MAX_CACHED_NAME:
                    return is_allowed
        if len(self._recent) >= CACHE_SIZE:
            self._older, self._recent = self._recent, {}
        self._recent[key] = is_allowed
        return is_allowed

    def _decide(
        self, principal: str, host: str, operation: AclOperation, resource: Resource
    ) -> Decision:
        if principal in self._super_users:
            return True, "SuperUser"
        self._require_loaded()
        is_covered = False
        allowing: AclEntry | None = None
        for by_principal in self._acls.covering(resource.type, resource.name):
            is_covered = True
            for name in (principal, EVERYONE):
                for acl in by_principal.get(name, {}).values():
                    if acl.matches_operation(operation) and acl.matches_host(host):
                        if acl.is_denial:
                            return False, acl.entry
                        allowing = allowing or acl.entry
        if allowing is not None:
            return True, allowing
        if not is_covered and self._allows_unprotected:
            return True, "DefaultAllow"
        return False, "DefaultDeny"

    def _decide_on_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        if self._decide(principal, host, operation, Resource(resource_type, _ANY_NAME))[0]:
            return True
        return _allows_some(
            [
                acl
                for acl in self._acls.of_principal(resource_type, principal)
                if acl.names_operation(operation) and acl.matches_host(host)
            ]
        )

    def _require_loaded(self) -> None:
        if not self._is_loaded:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "The ACLs of the cluster are not loaded yet, and only super.users are allowed.",
            )


def _parse_super_users(text: str) -> frozenset[str]:
    names = [name.strip() for name in text.split(";") if name.strip()]
    for name in names:
        try:
            KafkaPrincipal.parse(name)
        except ValueError as error:
            raise ValueError(f"{SUPER_USERS} has an entry that is not valid: {error}.") from None
    return frozenset(names)


def _allows_some(acls: list[IndexedAcl]) -> bool:
    """Returns whether the ACLs, which match the client and operation, leave any resource."""
    denied = {_pattern(acl.entry) for acl in acls if acl.is_denial}
    allowed = {_pattern(acl.entry) for acl in acls if not acl.is_denial}
    everything = (PatternType.LITERAL, WILDCARD)
    if everything in denied:
        return False
    if everything in allowed:
        return True
    denied_prefixes = tuple(name for kind, name in denied if kind == PatternType.PREFIXED)
    return any(
        not name.startswith(denied_prefixes)
        and (kind != PatternType.LITERAL or (kind, name) not in denied)
        for kind, name in allowed
    )


def _pattern(entry: AclEntry) -> tuple[int, str]:
    return entry.pattern_type, entry.resource_name


def _describe(acl: AclEntry) -> str:
    return (
        f"StandardAcl(resourceType={ResourceType(acl.resource_type).name}, "
        f"resourceName={acl.resource_name}, patternType={PatternType(acl.pattern_type).name}, "
        f"principal={acl.principal}, host={acl.host}, "
        f"operation={AclOperation(acl.operation).name}, "
        f"permissionType={'ALLOW' if acl.permission_type == AclPermission.ALLOW else 'DENY'})"
    )
