"""ACLs for the client of a broker without sockets."""

from tests.replication.world import CLIENT, World

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import AclEntry
from barnabas.security.authorizer.model import AclOperation, AclPermission, PatternType, Resource
from barnabas.security.authorizer.standard_authorizer import StandardAuthorizer
from barnabas.server.authorization import RequestAuthorizer


class ClientAcls:
    """Gives the broker of a world an authorizer, and its client permissions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._authorizer = StandardAuthorizer()
        self._authorizer.configure({})
        self._authorizer.complete_initial_load()
        world.broker.authorizer = RequestAuthorizer(self._authorizer, lambda: world.now_ms)

    def allow(self, operation: AclOperation, resource: Resource) -> None:
        entry = _entry(operation, resource, AclPermission.ALLOW)
        self._change({_id_of(operation, resource): entry})

    def deny(self, operation: AclOperation, resource: Resource) -> None:
        entry = _entry(operation, resource, AclPermission.DENY)
        self._change({b"deny " + _id_of(operation, resource): entry})

    def revoke(self, operation: AclOperation, resource: Resource) -> None:
        self._change({_id_of(operation, resource): None})

    def _change(self, changes: dict[bytes, AclEntry | None]) -> None:
        acls = self._world.image.acls
        for acl_id, entry in changes.items():
            if entry is None:
                del acls[acl_id]
            else:
                acls[acl_id] = entry
        self._authorizer.apply_delta(MetadataDelta(acls_changed=set(changes)), self._world.image)


def _entry(operation: AclOperation, resource: Resource, permission: AclPermission) -> AclEntry:
    return AclEntry(
        resource.type,
        resource.name,
        PatternType.LITERAL,
        str(CLIENT),
        "*",
        operation,
        permission,
    )


def _id_of(operation: AclOperation, resource: Resource) -> bytes:
    return f"{operation} {resource}".encode()
