"""ACLs: create, describe, delete."""

import functools
from collections.abc import Coroutine, Mapping
from enum import Enum
from typing import Any, ClassVar

from barnabas.client.admin.model import (
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    as_enum,
)
from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.errors import KafkaError
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

_Key = tuple[
    ResourceType,
    str | None,
    ResourcePatternType,
    str | None,
    str | None,
    AclOperation,
    AclPermissionType,
]


@functools.total_ordering
class AclBinding:
    """An ACL: a principal may, or may not, do an operation on a resource from a host."""

    _FORBIDDEN: ClassVar[frozenset[Enum]] = frozenset(
        {
            ResourceType.ANY,
            ResourcePatternType.ANY,
            ResourcePatternType.MATCH,
            AclOperation.ANY,
            AclPermissionType.ANY,
        }
    )
    _REQUIRED: ClassVar[tuple[str, ...]] = ("name", "principal", "host")

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str | None,
        resource_pattern_type: ResourcePatternType | str | int,
        principal: str | None,
        host: str | None,
        operation: AclOperation | str | int,
        permission_type: AclPermissionType | str | int,
    ) -> None:
        if None in (restype, resource_pattern_type, operation, permission_type):
            raise ValueError("the types, the operation and the permission must not be None")
        self.restype = as_enum(restype, ResourceType)
        self.name = name
        self.resource_pattern_type = as_enum(resource_pattern_type, ResourcePatternType)
        self.principal = principal
        self.host = host
        self.operation = as_enum(operation, AclOperation)
        self.permission_type = as_enum(permission_type, AclPermissionType)
        self.restype_int = int(self.restype.value)
        self.resource_pattern_type_int = int(self.resource_pattern_type.value)
        self.operation_int = int(self.operation.value)
        self.permission_type_int = int(self.permission_type.value)
        self._check()

    def _check(self) -> None:
        for attribute in "name", "principal", "host":
            value = getattr(self, attribute)
            if value is None and attribute in self._REQUIRED:
                raise ValueError(f"{attribute} must not be None")
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{attribute} must be a string, not {value!r}")
        for part in self._key():
            if part in self._FORBIDDEN:
                raise ValueError(f"a {type(self).__name__} must not contain {part}")

    def _key(self) -> _Key:
        return (
            self.restype,
            self.name,
            self.resource_pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission_type,
        )

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, AclBinding) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, AclBinding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(map(str, self._key()))})"


class AclBindingFilter(AclBinding):
    """A filter of ACLs: None and ANY match every name, and MATCH every pattern."""

    _FORBIDDEN = frozenset(
        {
            ResourceType.UNKNOWN,
            ResourcePatternType.UNKNOWN,
            AclOperation.UNKNOWN,
            AclPermissionType.UNKNOWN,
        }
    )
    _REQUIRED = ()


def create_acls(
    admin: AdminRequests, acls: list[AclBinding], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[AclBinding, None]]:
    """Creates ACLs; results are by binding."""
    _require_different("acls", acls, AclBinding)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[AclBinding]
    ) -> Mapping[AclBinding, KafkaError | None]:
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=acl.restype_int,
                    resource_name=acl.name or "",
                    resource_pattern_type=acl.resource_pattern_type_int,
                    principal=acl.principal or "",
                    host=acl.host or "",
                    operation=acl.operation_int,
                    permission_type=acl.permission_type_int,
                )
                for acl in batch
            ]
        )
        response = await admin.send(request, node, deadline=deadline)
        return {acl: error_of(result) for acl, result in zip(batch, response.results, strict=True)}

    return admin.route_to_controller(acls, exchange, deadline)


def describe_acls(
    admin: AdminRequests, acl_binding_filter: AclBindingFilter, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, list[AclBinding]]:
    """Returns the ACLs that match a filter."""
    if not isinstance(acl_binding_filter, AclBindingFilter):
        raise TypeError(f"{acl_binding_filter!r} is not an AclBindingFilter")
    request = DescribeAclsRequest(**_filter_fields(acl_binding_filter))
    deadline = admin.deadline(request_timeout)

    async def describe() -> list[AclBinding]:
        response = await admin.send_to_controller(request, deadline)
        return [_binding(resource, acl) for resource in response.resources for acl in resource.acls]

    return describe()


def delete_acls(
    admin: AdminRequests,
    acl_binding_filters: list[AclBindingFilter],
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[AclBindingFilter, list[AclBinding]]]:
    """Deletes the ACLs that match filters, and returns the deleted ACLs by filter."""
    _require_different("acl_binding_filters", acl_binding_filters, AclBindingFilter)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[AclBindingFilter]
    ) -> Mapping[AclBindingFilter, list[AclBinding] | KafkaError]:
        filters = [DeleteAclsFilter(**_filter_fields(acl_filter)) for acl_filter in batch]
        response = await admin.send(DeleteAclsRequest(filters=filters), node, deadline=deadline)
        return {
            acl_filter: _deleted(result)
            for acl_filter, result in zip(batch, response.filter_results, strict=True)
        }

    return admin.route_to_controller(acl_binding_filters, exchange, deadline)


def _filter_fields(acl_filter: AclBindingFilter) -> dict[str, Any]:
    """Returns the fields of a filter in requests."""
    return {
        "resource_type_filter": acl_filter.restype_int,
        "resource_name_filter": acl_filter.name,
        "pattern_type_filter": acl_filter.resource_pattern_type_int,
        "principal_filter": acl_filter.principal,
        "host_filter": acl_filter.host,
        "operation": acl_filter.operation_int,
        "permission_type": acl_filter.permission_type_int,
    }


def _deleted(result: DeleteAclsFilterResult) -> list[AclBinding] | KafkaError:
    return error_of(result) or [
        _binding(acl, acl) for acl in result.matching_acls if not acl.error_code
    ]


def _binding(resource: Any, acl: Any) -> AclBinding:
    """Returns an ACL of a response, some of which keep the resource apart from its ACLs."""
    return AclBinding(
        resource.resource_type,
        resource.resource_name,
        resource.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _require_different(name: str, acls: list[Any], kind: type) -> None:
    require_list(name, acls, kind)
    if len(set(acls)) != len(acls):
        raise ValueError(f"{name} must not hold the same {kind.__name__} twice")
