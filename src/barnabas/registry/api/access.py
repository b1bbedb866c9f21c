"""Who may do what: the login of a request, and the operation that it needs on a topic.

A subject is protected as a topic: `orders-value` and `orders-key` as the topic `orders`, whose
records they describe, and any other subject as the topic of its own name. Contexts do not matter.

    read, look up, compare      DESCRIBE of the topic, which READ and WRITE imply
    register                    WRITE
    delete                      DELETE
    config and mode             ALTER_CONFIGS of the topic; of a context or of all: ALTER of the
                                cluster

Lists leave out the subjects that a client may not describe.
"""

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.client.admin.model import AclOperation
from barnabas.net.http_authorization import challenges, is_accepted, parse_authorization
from barnabas.net.listening_sockets import plain_host
from barnabas.registry.api.request_parsing import instance_of, resolve_alias, state_of, subject_of
from barnabas.registry.api.responses import error_response
from barnabas.registry.client_sessions import ClientSession, ClientSessions, LoginRejectedError
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.listener_settings import RegistryListener
from barnabas.registry.subjects import QualifiedSubject, qualify_reference

__all__ = [
    "AclOperation",
    "AuthenticationMiddleware",
    "describable",
    "permitted_subject",
    "require",
    "require_cluster",
    "require_references",
    "require_scope",
    "topic_of",
]

_SUFFIXES = ("-key", "-value")
_SESSION = "client_session"


class AuthenticationMiddleware:
    """Middleware that passes on the requests of clients who are logged in."""

    def __init__(
        self, app: ASGIApp, sessions: ClientSessions | None, listener: RegistryListener
    ) -> None:
        """Without `sessions`, everybody may do everything."""
        self._app = app
        self._sessions = sessions
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sessions is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [value for name, value in scope["headers"] if name == b"authorization"]
        header = headers[0].decode("latin-1") if len(headers) == 1 else None
        credentials = parse_authorization(header)
        host = plain_host(scope["client"][0]) if scope.get("client") else ""
        try:
            if credentials is None or not is_accepted(credentials, self._listener.methods):
                raise LoginRejectedError
            async with self._sessions.use(credentials, host) as session:
                scope.setdefault("state", {})[_SESSION] = session
                await self._app(scope, receive, send)
        except LoginRejectedError:
            await self._reject(scope, receive, send)
        except RegistryError as error:
            response = error_response(error.status, error.error_code, error.message)
            await response(scope, receive, send)

    async def _reject(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = error_response(401, 40101, "Unauthorized")
        for challenge in challenges(self._listener.methods, self._listener.realm):
            response.headers.append("WWW-Authenticate", challenge)
        await response(scope, receive, send)


def topic_of(subject: str) -> str:
    """Returns the topic whose ACLs protect a subject."""
    name = QualifiedSubject.parse(subject).name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name


async def permitted_subject(request: Request, operation: AclOperation) -> str:
    """Returns the subject in the path. Raises RegistryError 40301 without the operation on it."""
    subject = subject_of(request)
    await require(request, operation, subject)
    return subject


async def require(request: Request, operation: AclOperation, *subjects: str) -> None:
    """Raises RegistryError 40301 if the client lacks the operation on one of the subjects."""
    session = _session(request)
    if session is None:
        return
    operations = await session.operations(map(topic_of, subjects))
    for subject in subjects:
        topic = topic_of(subject)
        if not _has(operations.get(topic, 0), operation):
            raise RegistryError(
                40301,
                f"User {session.user} needs {operation.name} of topic {topic} for subject "
                f"{subject}",
            )


async def require_cluster(request: Request) -> None:
    """Raises RegistryError 40301 if the client lacks ALTER on the cluster."""
    session = _session(request)
    if session is not None and not _has(session.cluster_operations, AclOperation.ALTER):
        raise RegistryError(40301, f"User {session.user} needs ALTER of the cluster")


async def require_scope(request: Request, scope: str | None) -> None:
    """Raises RegistryError 40301 if the client may not change the config or mode of a scope."""
    if scope is None or not QualifiedSubject.parse(scope).name:
        await require_cluster(request)
        return
    # An alias is the scope's own, and what it stands for is not changed with it.
    await require(request, AclOperation.ALTER_CONFIGS, scope)


async def require_references(request: Request, subject: str, definition: SchemaDefinition) -> None:
    """Raises RegistryError 40301 if a schema refers to one that the client may not read."""
    state = state_of(request)
    referenced = [
        resolve_alias(state, qualify_reference(subject, reference.subject))
        for reference in definition.references
    ]
    await require(request, AclOperation.DESCRIBE, *referenced)


async def describable(request: Request, subjects: Iterable[str]) -> list[str]:
    """Returns the subjects that the client may describe, in their order."""
    listed = list(subjects)
    session = _session(request)
    if session is None:
        return listed
    operations = await session.operations(map(topic_of, listed))
    return [
        subject
        for subject in listed
        if _has(operations.get(topic_of(subject), 0), AclOperation.DESCRIBE)
    ]


def _session(request: Request) -> ClientSession | None:
    session: ClientSession | None = request.scope.get("state", {}).get(_SESSION)
    if session is None and instance_of(request).settings.listener.methods:
        raise RegistryError(40101, "Unauthorized")  # the middleware is missing: never allow
    return session


def _has(operations: int, operation: AclOperation) -> bool:
    code: Any = operation.value
    return bool(operations >> code & 1)
