"""Checks what the client of a request may do, and writes the audit log."""

from typing import TYPE_CHECKING

from barnabas.security.authorizer.authorizer import Authorizer
from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.server.request_context import RequestContext

_ERRORS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class RequestAuthorizer:
    """Asks the authorizer of this node about the clients of requests."""

    __slots__ = ("_authorizer",)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def is_allowed(
        self,
        context: "RequestContext",
        operation: AclOperation,
        resource: Resource,
        *,
        is_audited: bool = True,
    ) -> bool:
        return self._authorizer.is_allowed(context.principal, context.host, operation, resource)

    def is_allowed_on_any(
        self, context: "RequestContext", operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Returns whether there may be a resource of the type on which it is allowed."""
        return self._authorizer.is_allowed_on_any(
            context.principal, context.host, operation, resource_type
        )


def denied(resource_type: ResourceType) -> KafkaError:
    """Returns the error for a client that may not use a resource."""
    return KafkaError(_ERRORS[resource_type])
