"""The resources whose ACLs protect settings."""

from barnabas.config import ConfigResourceType
from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    Resource,
    group_resource,
    topic_resource,
)
from barnabas.server.request_context import RequestContext


def require_config_access(
    operation: AclOperation, resource_type: int, name: str, context: RequestContext
) -> None:
    """Raises the AUTHORIZATION_FAILED error if the client may not use these settings."""
    if context.broker.authorizer is not None:
        context.require_allowed(operation, _protecting(resource_type, name))


def _protecting(resource_type: int, name: str) -> Resource:
    """Settings of brokers, their loggers and client metrics belong to the cluster."""
    match resource_type:
        case ConfigResourceType.TOPIC:
            return topic_resource(name)
        case ConfigResourceType.GROUP:
            return group_resource(name)
    return CLUSTER
