"""The security of a test cluster: SASL_SSL on all listeners, users, and ACLs.

Nodes log in to brokers with SCRAM and to controllers with PLAIN. Clients log in with either.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tests.tls_certificates import HOSTS, Authority

from barnabas.net.sasl import SaslClient
from barnabas.testing.network import node_name
from barnabas.testing.ports import LOOPBACK
from barnabas.testing.requests import Connect, exchange, send_request
from barnabas.wire.messages.acls import DescribeAclsRequest
from barnabas.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

NODE, ADMIN = "node", "admin"
"""The principals of the nodes and of the administrator, which may do everything."""

NODE_HOSTS = (*HOSTS, *(node_name(node_id) for node_id in (*range(1, 10), *range(101, 110))))
"""The names in the certificate of the nodes."""

CLIENT_MECHANISM = "SCRAM-SHA-512"
BROKER_MECHANISM = "SCRAM-SHA-256"
CONTROLLER_MECHANISM = "PLAIN"

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_AUTHENTICATE_VERSION = 2
_HANDSHAKE_VERSION = 1
_DESCRIBE_ACLS_VERSION = 3

LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


class ClusterSecurity:
    """Certificates in `folder`, and users: those of `users`, the nodes and the administrator."""

    def __init__(
        self, folder: Path, users: Iterable[str] = (), *, authority: Authority | None = None
    ) -> None:
        self.folder = folder
        self.users = (NODE, ADMIN, *users)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = authority or Authority()
        self.authority_file = self.authority.write_pem(folder)
        self.key_store = self.authority.issue("CN=node", NODE_HOSTS).write_pem(folder, "node")

    def settings(self) -> dict[str, str]:
        """Returns the settings of nodes, Barnabas and Kafka alike."""
        plain_users = " ".join(f'user_{user}="{password_of(user)}"' for user in self.users)
        return {
            "listener.security.protocol.map": "CLIENT:SASL_SSL,BROKER:SASL_SSL,CONTROLLER:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.key_store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority_file,
            "listener.name.client.sasl.enabled.mechanisms": f"PLAIN,{CLIENT_MECHANISM}",
            "listener.name.client.plain.sasl.jaas.config": jaas("PLAIN", more=plain_users),
            f"listener.name.client.{CLIENT_MECHANISM.lower()}.sasl.jaas.config": jaas(
                CLIENT_MECHANISM
            ),
            "sasl.mechanism.inter.broker.protocol": BROKER_MECHANISM,
            "listener.name.broker.sasl.enabled.mechanisms": BROKER_MECHANISM,
            f"listener.name.broker.{BROKER_MECHANISM.lower()}.sasl.jaas.config": jaas(
                BROKER_MECHANISM, NODE
            ),
            "sasl.mechanism.controller.protocol": CONTROLLER_MECHANISM,
            "listener.name.controller.sasl.enabled.mechanisms": CONTROLLER_MECHANISM,
            f"listener.name.controller.{CONTROLLER_MECHANISM.lower()}.sasl.jaas.config": jaas(
                CONTROLLER_MECHANISM, NODE, plain_users
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{NODE};User:{ADMIN}",
        }

    def format_flags(self) -> list[str]:
        """Returns the flags of the format command that add the users of SCRAM."""
        return [
            flag
            for user in self.users
            for mechanism in (CLIENT_MECHANISM, BROKER_MECHANISM)
            for flag in ("--add-scram", f"{mechanism}=[name={user},password={password_of(user)}]")
        ]

    def client_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Returns the settings with which librdkafka and our clients connect."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.authority_file,
            "sasl.mechanism": CLIENT_MECHANISM,
            "sasl.username": user,
            "sasl.password": password_of(user),
        }

    def command_config(self, user: str = ADMIN) -> Path:
        """Returns the file with which the commands of Kafka and ours connect."""
        file = self.folder / f"{user}.properties"
        write_properties(
            file,
            {
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.authority_file,
                "sasl.mechanism": CLIENT_MECHANISM,
                "sasl.jaas.config": jaas(CLIENT_MECHANISM, user),
            },
        )
        return file

    def connect_as(self, user: str = ADMIN) -> Connect:
        """Returns what connects to a node over TLS and logs in, with PLAIN."""
        return connect_over_tls(self.authority_file, login_of(user, "PLAIN"))


def login_of(user: str, mechanism: str) -> SaslClient:
    return SaslClient(mechanism, user, password_of(user))


def connect_over_tls(authority_file: str, login: SaslClient) -> Connect:
    """Returns what connects to a node over TLS and logs in."""
    context = ssl.create_default_context(cafile=authority_file)

    def connect(port: int, timeout_s: float) -> socket.socket:
        plain = socket.create_connection((LOOPBACK, port), timeout=timeout_s)
        connection = context.wrap_socket(plain, server_hostname=LOOPBACK)
        try:
            _log_in(connection, login)
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _log_in(connection: socket.socket, login: SaslClient) -> None:
    exchange(connection, SaslHandshakeRequest(mechanism=login.mechanism), _HANDSHAKE_VERSION)
    steps = asyncio.run(login.exchange(LOOPBACK))
    token = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            request = SaslAuthenticateRequest(auth_bytes=token)
            response = exchange(connection, request, _AUTHENTICATE_VERSION)
            if response.error_code:
                raise PermissionError(f"the login failed: {response.error_message}")
            token = steps.send(response.auth_bytes)


def password_of(user: str) -> str:
    return f"{user}-secret"


def jaas(mechanism: str, user: str | None = None, more: str = "") -> str:
    """Returns the JAAS entry of a mechanism; with `user` also for connections to others."""
    login = f'username="{user}" password="{password_of(user)}"' if user else ""
    return f"{' '.join(filter(None, (_MODULES[mechanism], 'required', login, more)))};"


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


# ACLs


def allow(
    user: str,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    pattern: ResourcePatternType = LITERAL,
    *,
    host: str = "*",
) -> AclBinding:
    return AclBinding(
        resource_type, name, pattern, f"User:{user}", host, operation, AclPermissionType.ALLOW
    )


def deny(user: str, operation: AclOperation, resource_type: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        resource_type, name, LITERAL, f"User:{user}", "*", operation, AclPermissionType.DENY
    )


def deny_everything(user: str) -> list[AclBinding]:
    """Returns ACLs that deny a user everything that can be denied."""
    resources = [
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.BROKER, "kafka-cluster"),
    ]
    return [deny(user, AclOperation.ALL, resource_type, name) for resource_type, name in resources]


def count_acls(port: int, connect: Connect) -> int:
    """Returns by how many ACLs the node at the port decides."""
    response = send_request(port, describe_all_acls(), _DESCRIBE_ACLS_VERSION, connect=connect)
    return sum(len(resource.acls) for resource in response.resources)


def describe_all_acls() -> DescribeAclsRequest:
    any_value = 1
    return DescribeAclsRequest(
        resource_type_filter=any_value,
        resource_name_filter=None,
        pattern_type_filter=any_value,
        principal_filter=None,
        host_filter=None,
        operation=any_value,
        permission_type=any_value,
    )
