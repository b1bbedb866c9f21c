"""The interface of an authorizer. Subclass it to decide by other means than ACLs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.errors import ErrorCode, KafkaError


class Authorizer(ABC):
    """Decides what clients may do. It is called on the event loop and must not block.

    A node that cannot decide yet raises KafkaError.
    """

    uses_acls: ClassVar[bool] = False
    """Whether it decides by the ACLs of the cluster. The ACL APIs are disabled otherwise."""

    def configure(self, settings: Mapping[str, str]) -> None:  # noqa: B027 - optional
        """Reads the settings of the node, which are texts by their names, before it starts.

        Raises ValueError, with a message for the operator, if one is not valid.
        """

    @abstractmethod
    def is_allowed(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> bool:
        """Returns whether a principal may perform an operation on a resource."""

    @abstractmethod
    def is_allowed_on_any(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Returns whether there may be a resource of the type on which it is allowed."""

    def explain(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> str:
        """Returns the reason of a decision, for the audit log."""
        return type(self).__name__

    @property
    def generation(self) -> int | None:
        """Changes whenever decisions may have changed. None if they may change at any time."""
        return None

    def apply_delta(  # noqa: B027 - optional
        self, delta: MetadataDelta, image: MetadataImage
    ) -> None:
        """Called after each change of the metadata, before any request sees the new image."""

    def complete_initial_load(self) -> None:  # noqa: B027 - optional
        """Called once this node has all metadata that was committed before it started."""


class FailedAuthorizer(Authorizer):
    """Allows nothing, in place of an authorizer that could not apply new ACLs."""

    def is_allowed(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> bool:
        raise _failed()

    def is_allowed_on_any(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        raise _failed()


def _failed() -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR, "The authorizer has failed, and this node is stopping."
    )
