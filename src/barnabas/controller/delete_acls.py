"""DeleteAcls (key 31): remove the ACLs that match filters, and return them by filter.

v1 prefixed patterns; v2 flexible; v3 user resources.
"""

from barnabas.controller.context import MAX_RECORDS, ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.acls import AclFilter
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import AclEntry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.wire.messages.metadata_records import RemoveAccessControlEntryRecord
from barnabas.wire.schema import Message


def decide(
    request: DeleteAclsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    removed: dict[bytes, None] = {}
    results = []
    for requested in request.filters:
        acl_filter = _filter(requested)
        if acl_filter.problem is not None:
            results.append(
                DeleteAclsFilterResult(
                    error_code=ErrorCode.INVALID_REQUEST, error_message=acl_filter.problem
                )
            )
            continue
        matching = {key: acl for key, acl in image.acls.items() if acl_filter.matches(acl)}
        removed.update(dict.fromkeys(matching))
        if len(removed) > MAX_RECORDS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Cannot remove more than {MAX_RECORDS} ACLs in one request: use filters that "
                "match fewer.",
            )
        results.append(
            DeleteAclsFilterResult(
                error_message=None, matching_acls=[_result(acl) for acl in matching.values()]
            )
        )
    records: list[Message] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]
    return Decision(records, DeleteAclsResponse(filter_results=results))


def _filter(requested: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        requested.resource_type_filter,
        requested.resource_name_filter,
        requested.pattern_type_filter,
        requested.principal_filter,
        requested.host_filter,
        requested.operation,
        requested.permission_type,
    )


def _result(acl: AclEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
