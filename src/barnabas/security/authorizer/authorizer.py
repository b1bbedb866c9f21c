"""The interface of an authorizer."""

from typing import Protocol

from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.security.principal import KafkaPrincipal


class Authorizer(Protocol):
    """Decides what clients may do. It is called on the event loop and must not block."""

    def is_allowed(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> bool:
        """Returns whether a principal may perform an operation on a resource."""

    def is_allowed_on_any(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Returns whether there may be a resource of the type on which it is allowed."""
