"""CreateAcls (key 30): add ACLs. One that exists already is not added again, and is no error.

v1 prefixed patterns; v2 flexible; v3 user resources.
"""

from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    parse_network,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import AclEntry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.wire.messages.metadata_records import AccessControlEntryRecord
from barnabas.wire.schema import Message

_NOT_ONE = (0, 1)
"""The codes UNKNOWN and ANY of resource types and operations."""

_RESOURCE_TYPES = frozenset(ResourceType) - set(_NOT_ONE)
_OPERATIONS = frozenset(AclOperation) - set(_NOT_ONE)


def decide(
    request: CreateAclsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    names = {creation.resource_name for creation in request.creations}
    existing = {acl for acl in image.acls.values() if acl.resource_name in names}
    records: list[Message] = []
    results = []
    for creation in request.creations:
        try:
            acl = _validated(creation)
        except KafkaError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.message))
            continue
        results.append(AclCreationResult(error_message=None))
        if acl not in existing:
            existing.add(acl)
            records.append(_record(acl, context.random_uuid()))
    require_record_limit(records)
    return Decision(records, CreateAclsResponse(results=results))


def _validated(creation: AclCreation) -> AclEntry:
    """Returns the ACL. Raises INVALID_REQUEST if it could not protect anything."""
    if creation.resource_type not in _RESOURCE_TYPES:
        raise _invalid(f"Invalid resourceType {creation.resource_type}")
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid pattern type {creation.resource_pattern_type}")
    if creation.operation not in _OPERATIONS:
        raise _invalid(f"Invalid operation {creation.operation}")
    if creation.permission_type not in (AclPermission.DENY, AclPermission.ALLOW):
        raise _invalid(f"Invalid permission type {creation.permission_type}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    is_cluster = creation.resource_type == ResourceType.CLUSTER
    if is_cluster and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if ":" not in creation.principal:
        raise _invalid(f"Could not parse principal from `{creation.principal}`: it has no colon")
    if not creation.host:
        raise _invalid("Host should not be empty")
    if "/" in creation.host and parse_network(creation.host) is None:
        raise _invalid(f"Invalid CIDR range {creation.host}")
    return AclEntry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _record(acl: AclEntry, acl_id: bytes) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
