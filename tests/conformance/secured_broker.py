"""A broker in this process with TLS, every mechanism of SASL but GSSAPI, and ACLs."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from tests.conformance.tls_clients import Connection, Login
from tests.tls_certificates import castle_authority

from barnabas.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.testing import Broker
from barnabas.testing.ports import free_port

PASSWORD = "wonder land"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
READ_AND_WRITE = (AclOperation.READ, AclOperation.WRITE)
GROUP, ALLOWED_TOPIC = "unused", "allowed"
"""What every user may read and write."""

ISSUER, AUDIENCE = "https://issuer.castle", "kafka"


@dataclass(frozen=True)
class SecuredBroker:
    """A broker with SASL_SSL and SSL for clients, and ACLs."""

    broker: Broker
    connection: Connection  # without a login
    tls: Connection  # with a client certificate
    issuer_key: ec.EllipticCurvePrivateKey
    admin: AdminClient

    def login(self, mechanism: str, user: str = "alice", password: str = PASSWORD) -> Connection:
        """Returns the connection of a client that logs in."""
        token = self.token(user) if mechanism == "OAUTHBEARER" else ""
        return self.connection.with_changes(login=Login(mechanism, user, password, token))

    def token(self, user: str, lifetime_s: int = 3600) -> str:
        now_s = int(time.time())
        claims = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s - 7200}
        return jwt.encode(
            claims | {"exp": now_s + lifetime_s},
            self.issuer_key,
            algorithm="ES256",
            headers={"kid": "castle"},
        )

    def create_topic(self, name: str, *users: str) -> str:
        """Creates a topic, and lets users produce and consume."""
        self.broker.create_topic(name, 1)
        for user in users:
            self.allow(name, user, *READ_AND_WRITE)
        return name

    def allow(
        self,
        name: str,
        user: str,
        *operations: AclOperation,
        resource_type: ResourceType = ResourceType.TOPIC,
        pattern_type: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        acls = [
            AclBinding(
                resource_type,
                name,
                pattern_type,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in operations
        ]
        for future in self.admin.create_acls(acls).values():
            future.result(30)

    def revoke(self, topic: str, user: str) -> None:
        acls = AclBindingFilter(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for future in self.admin.delete_acls([acls]).values():
            future.result(30)

    def alter_scram_user(self, user: str, *, is_removed: bool = False) -> None:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change: Any = UserScramCredentialDeletion(user, mechanism)
            if not is_removed:
                info = ScramCredentialInfo(mechanism, 4096)
                change = UserScramCredentialUpsertion(user, info, PASSWORD.encode())
            for future in self.admin.alter_user_scram_credentials([change]).values():
                future.result(30)

    def end_offset(self, topic: str) -> int:
        partition = self.broker._node.broker.partitions.get_by_name(topic, 0)
        return int(partition.log.log_end_offset)

    def successful_logins(self) -> float:
        name = "kafka_server_socket_server_metrics_successful_authentication_total"
        gauges = self.broker._node._metrics.gauges()
        return sum(gauge.value for gauge in gauges if gauge.name == name)


def listener_settings(folder: Path, protocol: str) -> dict[str, object]:
    """Returns the settings of a broker with TLS on the listener PLAINTEXT and with ACLs."""
    authority, port, controller = castle_authority(), free_port(), free_port()
    clients = f"PLAINTEXT://localhost:{port},TLS://localhost:{free_port()}"
    return {
        "listeners": f"{clients},CONTROLLER://localhost:{controller}",
        "advertised.listeners": clients,
        "controller.quorum.bootstrap.servers": f"localhost:{controller}",
        "listener.security.protocol.map": f"PLAINTEXT:{protocol},TLS:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("CN=broker", ("localhost",)).write_pem(
            folder, "broker"
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(folder),
        "listener.name.tls.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "authorizer.class.name": "acl",
        "super.users": "User:admin;User:node;User:ANONYMOUS",
    }


def write_jwks(folder: Path, key: ec.EllipticCurvePrivateKey) -> str:
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
    path = folder / "jwks.json"
    path.write_text(json.dumps({"keys": [public | {"kid": "castle"}]}))
    return path.as_uri()


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    key = ec.generate_private_key(ec.SECP256R1())
    users = f"node:{PASSWORD},admin:{PASSWORD},alice:{PASSWORD},bob:{PASSWORD}"
    settings = listener_settings(folder, "SASL_SSL") | {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "barnabas.sasl.users": users,
        "barnabas.sasl.username": "node",
        "barnabas.sasl.password": PASSWORD,
        "sasl.oauthbearer.jwks.endpoint.url": write_jwks(folder, key),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "delegation.token.secret.key": "of all nodes",
    }
    with Broker(settings) as broker:
        addresses = [listener.port for listener in broker._node.listeners]
        connection = Connection(f"localhost:{addresses[0]}", castle_authority().write_pem(folder))
        tls = Connection(
            f"localhost:{addresses[1]}",
            connection.ca,
            castle_authority().issue("CN=alice", ()).write_pem(folder, "alice"),
        )
        login = Login("PLAIN", "admin", PASSWORD)
        admin = AdminClient(connection.with_changes(login=login).librdkafka_settings)
        running = SecuredBroker(broker, connection, tls, key, admin)
        running.alter_scram_user("alice")
        running.alter_scram_user("bob")
        running.create_topic(ALLOWED_TOPIC, "*")  # with WRITE on any topic, producers get an id
        running.allow(GROUP, "*", AclOperation.READ, resource_type=ResourceType.GROUP)
        yield running
