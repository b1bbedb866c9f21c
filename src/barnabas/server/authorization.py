"""Checks what the client of a request may do, and writes the audit log."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.security.authorizer.audit_log import AccessCheck, AuditLog
from barnabas.security.authorizer.authorizer import Authorizer, FailedAuthorizer
from barnabas.security.authorizer.model import (
    AclOperation,
    Resource,
    ResourceType,
    topic_resource,
)
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.apis import api
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

_NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
}


class RequestAuthorizer:
    """Asks the authorizer of this node about the clients of requests."""

    __slots__ = ("_audit_log", "_authorizer")

    def __init__(self, authorizer: Authorizer, clock: Callable[[], int]) -> None:
        self._authorizer = authorizer
        self._audit_log = AuditLog(clock)

    def on_failure(self) -> None:
        """Allows nothing from now on: the authorizer could not apply new ACLs."""
        self._authorizer = FailedAuthorizer()

    @property
    def uses_acls(self) -> bool:
        return self._authorizer.uses_acls

    @property
    def generation(self) -> int | None:
        """See `Authorizer.generation`."""
        return self._authorizer.generation

    def is_allowed(
        self,
        context: "RequestContext",
        operation: AclOperation,
        resource: Resource,
        *,
        is_audited: bool = True,
    ) -> bool:
        principal, host = context.principal, context.host
        try:
            is_allowed = self._authorizer.is_allowed(principal, host, operation, resource)
        except KafkaError as error:
            reason = error.message
            check = AccessCheck(principal, host, operation, resource, api(context.api_key).name)
            self._audit_log.on_denied(check, lambda: reason)
            raise
        if is_audited and (not is_allowed or self._audit_log.logs_allowed):
            self._audit(context, operation, resource, is_allowed)
        return is_allowed

    def permits(self, check: AccessCheck) -> bool:
        """Decides on what is not a request of Kafka's protocol, and audits it."""
        principal, host, operation, resource, _ = check
        is_allowed = self._authorizer.is_allowed(principal, host, operation, resource)

        def rule() -> str:
            return self._authorizer.explain(principal, host, operation, resource)

        if not is_allowed:
            self._audit_log.on_denied(check, rule)
        elif self._audit_log.logs_allowed:
            self._audit_log.on_allowed(check, rule)
        return is_allowed

    def is_known_to_be_allowed(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource: Resource
    ) -> bool:
        """Returns whether an operation is allowed, and the audit log need not have it.

        It writes nothing. If it returns False, `is_allowed` decides.
        """
        if self._audit_log.logs_allowed:
            return False
        try:
            return self._authorizer.is_allowed(principal, host, operation, resource)
        except KafkaError:
            return False

    def is_allowed_on_any(
        self, context: "RequestContext", operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Returns whether there may be a resource of the type on which it is allowed."""
        return self._authorizer.is_allowed_on_any(
            context.principal, context.host, operation, resource_type
        )

    def _audit(
        self,
        context: "RequestContext",
        operation: AclOperation,
        resource: Resource,
        is_allowed: bool,
    ) -> None:
        principal, host = context.principal, context.host
        check = AccessCheck(principal, host, operation, resource, api(context.api_key).name)

        def rule() -> str:
            return self._authorizer.explain(principal, host, operation, resource)

        if is_allowed:
            self._audit_log.on_allowed(check, rule)
        else:
            self._audit_log.on_denied(check, rule)


def is_describable(topic: str, context: "RequestContext", *, is_audited: bool = True) -> bool:
    """Returns whether a client may know of a topic."""
    return context.broker.authorizer is None or context.is_allowed(
        AclOperation.DESCRIBE, topic_resource(topic), is_audited=is_audited
    )


def denied(resource_type: ResourceType) -> KafkaError:
    """Returns the error for a client that may not use a resource."""
    return KafkaError(
        _ERRORS[resource_type],
        f"The client's principal has no permission for this on the {_NAMES[resource_type]}.",
    )
