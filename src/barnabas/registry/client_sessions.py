"""Logins of the registry's clients, which the brokers verify.

The registry knows no passwords, tokens or ACLs. It logs in to a broker with the credentials of a
request, and asks the broker over that connection what the client may do. So users, token rules,
ACLs, super users and authorizers are the cluster's own. A login is kept for some seconds: that is
how long a user who was deleted, or lost an ACL, is still accepted.
"""

import asyncio
import hmac
import json
import logging
import math
import os
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from barnabas.client.cluster import ClusterClient
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.settings import admin_settings
from barnabas.net.client_credentials import claims_of
from barnabas.net.failure_log import FailureLog
from barnabas.net.http_authorization import BasicCredentials, HttpCredentials
from barnabas.registry import errors
from barnabas.registry.listener_settings import RegistryConfigError, RegistryListener
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    MetadataRequest,
    MetadataRequestTopic,
)

_log = logging.getLogger(__name__)

MAX_SESSIONS: Final = 1000
MAX_LOGINS: Final = 64
"""Logins in progress. More requests with new credentials are rejected."""

MAX_LOGINS_OF_HOST: Final = 16
"""Logins in progress of one address, which limits guessing."""

REJECTED_S: Final = 5.0
"""How long rejected credentials are rejected without asking a broker again."""

_MAX_REJECTED = 1000
_TOPICS_OF_REQUEST = 1000
_MAX_TOPICS = 100_000
_MAX_TOPIC_CHARACTERS = 249
_PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class LoginRejectedError(Exception):
    """The brokers do not accept the credentials."""


class ClientSession:
    """A client that is logged in, and what it may do."""

    def __init__(self, user: str, cluster: ClusterClient, timeout_ms: int) -> None:
        self.user = user
        self.requests = 0  # that use the session now
        self.is_ended = False
        self.cluster_operations = 0
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._operations: dict[str, int] = {}

    async def log_in(self) -> None:
        """Raises KafkaException. The first request to a broker makes the login."""
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        response = await self._cluster.send_request(request, timeout_ms=self._timeout_ms)
        self.cluster_operations = max(0, response.cluster_authorized_operations)

    async def operations(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Returns the operations on each topic, as bits. The topics need not exist.

        Names that no topic can have are left out: nothing is allowed on them.
        """
        if len(self._operations) > _MAX_TOPICS:
            self._operations = {}
        known = self._operations
        missing = [
            topic
            for topic in dict.fromkeys(topics)
            if topic not in known and len(topic) <= _MAX_TOPIC_CHARACTERS
        ]
        for start in range(0, len(missing), _TOPICS_OF_REQUEST):
            known |= await self._request_operations(missing[start : start + _TOPICS_OF_REQUEST])
        return known

    async def _request_operations(self, topics: list[str]) -> dict[str, int]:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        try:
            response = await self._cluster.send_request(request, timeout_ms=self._timeout_ms)
        except KafkaException as failure:
            raise _unavailable(failure) from None
        found = dict.fromkeys(topics, 0)
        for topic in response.topics:
            if topic.name in found and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                found[topic.name] = max(0, topic.topic_authorized_operations)
        return found

    async def close(self) -> None:
        await self._cluster.close()


class ClientSessions:
    """The sessions of all clients. `use` finds the one of a request, or logs in."""

    def __init__(
        self,
        listener: RegistryListener,
        client_config: Mapping[str, object],
        timeout_ms: int,
    ) -> None:
        """Raises RegistryConfigError if nobody could log in."""
        self._lifetime_s = listener.login_lifetime_ms / 1000
        self._timeout_ms = timeout_ms
        self._client_config = {
            name: value for name, value in client_config.items() if not _is_login(name)
        }
        self._mechanism = _mechanism(listener, client_config)
        self._key = os.urandom(32)
        self._sessions: OrderedDict[bytes, ClientSession] = OrderedDict()
        self._rejected: OrderedDict[bytes, float] = OrderedDict()  # until when
        self._logins: dict[bytes, asyncio.Task[ClientSession]] = {}
        self._of_hosts: Counter[str] = Counter()  # logins in progress
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = FailureLog(_log)

    @asynccontextmanager
    async def use(self, credentials: HttpCredentials, host: str) -> AsyncIterator[ClientSession]:
        """Yields the session. Raises LoginRejectedError, or RegistryError 503 without a broker."""
        session = await self._find(credentials, host)
        session.requests += 1
        try:
            yield session
        finally:
            session.requests -= 1
            if session.is_ended and not session.requests:
                self._close(session)

    async def close(self) -> None:
        for task in self._logins.values():
            task.cancel()
        for key in list(self._sessions):
            self._end(key, self._sessions[key])
        await asyncio.gather(*self._logins.values(), *self._closing, return_exceptions=True)

    async def _find(self, credentials: HttpCredentials, host: str) -> ClientSession:
        key = self._digest(credentials)
        session = self._sessions.get(key)
        if session is not None:
            return session
        loop = asyncio.get_running_loop()
        if self._rejected.get(key, 0.0) > loop.time():
            raise LoginRejectedError
        login = self._logins.get(key)
        if login is None:
            if len(self._logins) >= MAX_LOGINS or self._of_hosts[host] >= MAX_LOGINS_OF_HOST:
                raise errors.RegistryError(429, "Too many clients log in at the moment")
            login = asyncio.create_task(self._log_in(key, credentials, host))
            self._logins[key] = login
            self._of_hosts[host] += 1
            login.add_done_callback(lambda task: self._on_login(key, host, task))
        return await asyncio.shield(login)

    def _digest(self, credentials: HttpCredentials) -> bytes:
        """Returns a key by which credentials are found, and which does not contain them."""
        match credentials:
            case BasicCredentials(user, password):
                parts = ["basic", user, password]
            case bearer:
                parts = ["bearer", bearer.token]
        return hmac.digest(self._key, json.dumps(parts).encode(), "sha256")

    async def _log_in(self, key: bytes, credentials: HttpCredentials, host: str) -> ClientSession:
        user, login, lifetime_s = self._login(credentials)
        settings = admin_settings({**self._client_config, **login})
        session = ClientSession(user, ClusterClient(settings), self._timeout_ms)
        try:
            await session.log_in()
        except KafkaException as failure:
            await session.close()
            if error_in(failure).code() != KafkaError._AUTHENTICATION:
                raise _unavailable(failure) from None
            self._reject(key)
            self._failures.warn(
                "Authentication of %s at the schema registry failed: %s",
                host,
                error_in(failure).str(),
            )
            raise LoginRejectedError from None
        except BaseException:
            await session.close()
            raise
        self._sessions[key] = session
        loop = asyncio.get_running_loop()
        loop.call_later(lifetime_s, self._end, key, session)
        if len(self._sessions) > MAX_SESSIONS:
            self._end(*next(iter(self._sessions.items())))
        return session

    def _login(self, credentials: HttpCredentials) -> tuple[str, dict[str, object], float]:
        """Returns the user, the settings of the login, and how long it lasts."""
        if isinstance(credentials, BasicCredentials):
            user = credentials.user
            password_login: dict[str, object] = {
                "sasl.mechanism": self._mechanism,
                "sasl.username": user,
                "sasl.password": credentials.password,
            }
            return user, password_login, self._lifetime_s
        token = credentials.token
        try:
            claims = claims_of(token)
            expires_s = float(claims["exp"])
            if not math.isfinite(expires_s):
                raise LoginRejectedError
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
            raise LoginRejectedError from None
        login: dict[str, object] = {
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, expires_s),
        }
        remaining_s = max(0.0, expires_s - time.time())
        return str(claims.get("sub", "?")), login, min(self._lifetime_s, remaining_s)

    def _reject(self, key: bytes) -> None:
        self._rejected[key] = asyncio.get_running_loop().time() + REJECTED_S
        if len(self._rejected) > _MAX_REJECTED:
            self._rejected.popitem(last=False)

    def _on_login(self, key: bytes, host: str, login: "asyncio.Task[ClientSession]") -> None:
        del self._logins[key]
        self._of_hosts[host] -= 1
        self._of_hosts += Counter()  # removes addresses without logins
        if not login.cancelled():
            login.exception()  # it is raised to the requests that wait for it

    def _end(self, key: bytes, session: ClientSession) -> None:
        if self._sessions.get(key) is session:
            del self._sessions[key]
        if not session.is_ended:
            session.is_ended = True
            if not session.requests:
                self._close(session)

    def _close(self, session: ClientSession) -> None:
        task = asyncio.ensure_future(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _is_login(name: str) -> bool:
    """Returns whether a client's setting is part of the registry's own login."""
    return name.startswith("sasl.") or name in ("oauth_cb", "enable.sasl.oauthbearer.unsecure.jwt")


def _mechanism(listener: RegistryListener, client_config: Mapping[str, object]) -> str:
    """Returns the mechanism with which users of Basic log in to brokers."""
    protocol = str(client_config.get("security.protocol", "PLAINTEXT")).upper()
    if not protocol.startswith("SASL_"):
        raise RegistryConfigError(
            f"authentication.method is {','.join(listener.methods)}, and security.protocol of the "
            f"connections to brokers is {protocol}: the brokers verify logins, so they need a "
            "listener with SASL, which --command-config names"
        )
    own = client_config.get("sasl.mechanism", client_config.get("sasl.mechanisms", ""))
    mechanism = listener.basic_mechanism or str(own)
    if mechanism in _PASSWORD_MECHANISMS:
        return mechanism
    if listener.basic_mechanism is not None:
        raise RegistryConfigError(
            f"barnabas.sasl.mechanism is {mechanism}; it must be one of "
            f"{', '.join(_PASSWORD_MECHANISMS)}"
        )
    return "SCRAM-SHA-512"


def _unavailable(failure: KafkaException) -> errors.RegistryError:
    reason = error_in(failure).str()
    return errors.RegistryError(503, f"No broker can verify the request: {reason}")
