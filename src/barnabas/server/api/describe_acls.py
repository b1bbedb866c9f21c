"""DescribeAcls (key 29): the ACLs that match a filter, by resource pattern.

v1 prefixed patterns; v2 flexible; v3 user resources.
"""

from barnabas.metadata.acls import AclFilter
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    context.require_allowed(AclOperation.DESCRIBE, CLUSTER)
    require_acls(context)
    acl_filter = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if acl_filter.problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, acl_filter.problem)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in context.broker.image.acls.values():
        if not acl_filter.matches(acl):
            continue
        pattern = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if pattern not in resources:
            resources[pattern] = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
            )
        resources[pattern].acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def require_acls(context: RequestContext) -> None:
    """Raises SECURITY_DISABLED if ACLs would have no effect on this node."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED,
            "No authorizer is configured: set authorizer.class.name=acl on every node.",
        )
    if not authorizer.uses_acls:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED, "The authorizer of this cluster does not use ACLs."
        )
