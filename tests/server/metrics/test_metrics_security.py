"""The metrics endpoint of a real broker over TLS, with logins and ACLs."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jwt
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import ec
from tests.security.authentication.brokers import (
    PASSWORD,
    USER,
    add_scram_user,
    delete_scram_user,
    sasl_broker,
)
from tests.tls_certificates import Authority, castle_authority
from tests.wait import async_wait_until, wait_until

import barnabas.admin
from barnabas.net.http_acceptor import HttpAcceptor
from barnabas.net.listening_sockets import bind_sockets
from barnabas.security.scram_credentials import ScramMechanismCode
from barnabas.testing import Broker, BrokerError
from barnabas.wire.messages.acls import AclCreation, CreateAclsRequest

AUDIENCE, ISSUER = "castle", "https://issuer.example"
SCRAM_USER, SCRAM_PASSWORD = "klamm", "secret of klamm"
NOBODY_MAY = ("frieda", "secret of frieda")
KEY = ec.generate_private_key(ec.SECP256R1())
DESCRIBE, ALLOW, CLUSTER, LITERAL = 8, 3, 4, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    (folder / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "1"}]}))
    castle_authority().write_pem(folder)
    castle_authority().issue("CN=node").write_pem(folder, "node")
    Authority("CN=Another CA").write_pem(folder, "other")
    return folder


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    oauth = "listener_name_metrics_oauthbearer_sasl_oauthbearer_"
    settings = {
        "barnabas_metrics_listener": "127.0.0.1:0",
        "barnabas_metrics_protocol": "https",
        "barnabas_metrics_authentication": "BASIC,BEARER",
        "listener_name_metrics_ssl_keystore_type": "PEM",
        "listener_name_metrics_ssl_keystore_location": str(folder / "node.pem"),
        "listener_name_metrics_plain_sasl_jaas_config": "org.apache.kafka.common.security.plain."
        f'PlainLoginModule required user_{USER}="{PASSWORD}";',
        oauth + "jwks_endpoint_url": f"file://{folder}/jwks.json",
        oauth + "expected_issuer": ISSUER,
        oauth + "expected_audience": AUDIENCE,
        "authorizer_class_name": "acl",
        "super_users": "User:ANONYMOUS;User:node",
    }
    with sasl_broker(**settings) as running:
        add_scram_user(running, SCRAM_USER, SCRAM_PASSWORD)
        add_scram_user(running, *NOBODY_MAY)
        for user in (USER, SCRAM_USER, "olga"):
            allow_metrics(running, user)
        yield running


def allow_metrics(broker: Broker, user: str) -> None:
    acl = AclCreation(
        resource_type=CLUSTER,
        resource_name="kafka-cluster",
        resource_pattern_type=LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=DESCRIBE,
        permission_type=ALLOW,
    )
    broker._run(broker._node.controller.handle(CreateAclsRequest(creations=[acl])))


def url_of(broker: Broker) -> str:
    return f"https://{broker._node.metrics_address}"


def get(
    broker: Broker, folder: Path, path: str = "/metrics", ca: str = "ca", **headers: str
) -> urllib3.BaseHTTPResponse:
    with urllib3.PoolManager(ca_certs=str(folder / f"{ca}.pem"), retries=False) as http:
        return http.request("GET", url_of(broker) + path, headers=headers)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": urllib3.make_headers(basic_auth=f"{user}:{password}")["authorization"]}


def bearer(**changes: object) -> dict[str, str]:
    now_s = int(time.time())
    claims = {"sub": "olga", "iat": now_s, "exp": now_s + 60, "aud": AUDIENCE, "iss": ISSUER}
    token = jwt.encode({**claims, **changes}, KEY, "ES256", headers={"kid": "1"})
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "headers",
    [
        lambda: basic(USER, PASSWORD),
        lambda: basic(SCRAM_USER, SCRAM_PASSWORD),
        lambda: bearer(),
    ],
    ids=["user of PLAIN", "SCRAM user", "token"],
)
def test_users_who_may_describe_the_cluster_read_metrics(
    broker: Broker, folder: Path, headers: Callable[[], dict[str, str]]
) -> None:
    for _ in range(2):
        response = get(broker, folder, **headers())
        assert response.status == 200
        assert b"kafka_server_" in response.data


@pytest.mark.parametrize(
    "headers",
    [
        dict,
        lambda: basic(USER, "another"),
        lambda: basic(SCRAM_USER, "another"),
        lambda: basic("barnabas", "another"),
        lambda: {"Authorization": "Basic !!"},
        lambda: bearer(exp=int(time.time()) - 3600),
        lambda: bearer(iss="https://other.example"),
        lambda: bearer(aud="other"),
        lambda: {"Authorization": "Bearer x.y.z"},
    ],
    ids=[
        "no credentials",
        "wrong password of PLAIN",
        "wrong password of SCRAM",
        "unknown user",
        "malformed",
        "expired token",
        "other issuer",
        "other audience",
        "no token",
    ],
)
def test_others_are_unauthorized_and_nothing_says_why(
    broker: Broker, folder: Path, headers: Callable[[], dict[str, str]]
) -> None:
    response = get(broker, folder, **headers())
    assert (response.status, response.data) == (401, b"Unauthorized")
    assert response.headers.getlist("www-authenticate") == [
        'Basic realm="barnabas", charset="UTF-8"',
        'Bearer realm="barnabas"',
    ]


def test_a_failed_login_is_logged_once_and_without_the_password(
    broker: Broker, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        get(broker, folder, **basic("jeremias", "secret of nobody"))
    lines = [line for line in caplog.messages if "jeremias" in line]
    assert lines == [
        "Authentication of 127.0.0.1 at the metrics endpoint failed: user 'jeremias' is unknown"
    ]
    assert "secret of nobody" not in caplog.text


def test_a_user_without_acls_may_not_read_metrics(broker: Broker, folder: Path) -> None:
    assert get(broker, folder, **basic(*NOBODY_MAY)).status == 403


def test_a_probe_needs_no_login(broker: Broker, folder: Path) -> None:
    assert get(broker, folder, "/health").data == b"ok\n"


def test_a_deleted_user_may_not_read_metrics_any_more(broker: Broker, folder: Path) -> None:
    add_scram_user(broker, "gardena", "secret of gardena")
    allow_metrics(broker, "gardena")
    headers = basic("gardena", "secret of gardena")
    wait_until(lambda: get(broker, folder, **headers).status == 200, "the ACL counts")
    for mechanism in ScramMechanismCode:
        delete_scram_user(broker, "gardena", mechanism)
    wait_until(lambda: get(broker, folder, **headers).status == 401, "the user is deleted")


def test_clients_reject_a_certificate_of_another_authority(broker: Broker, folder: Path) -> None:
    with pytest.raises(urllib3.exceptions.SSLError):
        get(broker, folder, ca="other")


def test_plain_http_is_closed_with_a_line_in_the_log(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = str(broker._node.metrics_address).rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert b"HTTP/1.1" not in client.recv(100)
    expected = "it sent plain text, and this port is for https"
    wait_until(lambda: expected in caplog.text, "the line is there")


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "node.pem")
    return context


def test_half_open_connections_and_those_over_the_limit_are_closed(folder: Path) -> None:
    async def scenario() -> None:
        sockets = bind_sockets("127.0.0.1", 0)
        acceptor = HttpAcceptor(
            "a test",
            sockets,
            asyncio.Protocol,
            lambda: 0,
            max_connections=2,
            tls=lambda: server_context(folder),
            handshake_timeout_s=0.2,
        )
        acceptor.start()
        address = sockets[0].getsockname()
        clients = [await asyncio.open_connection(*address) for _ in range(3)]
        assert await clients[2][0].read() == b""  # at once: there are two already
        for reader, _ in clients[:2]:
            assert await reader.read() == b""  # when their handshakes have taken too long
        acceptor.close()
        await acceptor.wait_closed()
        await async_wait_until(lambda: all(sock.fileno() < 0 for sock in sockets))

    asyncio.run(scenario())


def peer_certificate(broker: Broker, folder: Path) -> bytes | None:
    host, _, port = str(broker._node.metrics_address).rpartition(":")
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    with (
        socket.create_connection((host, int(port)), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=host) as client,
    ):
        return client.getpeercert(binary_form=True)


def test_a_renewed_certificate_is_used_without_a_restart(broker: Broker, folder: Path) -> None:
    before = peer_certificate(broker, folder)
    castle_authority().issue("CN=node").write_pem(folder, "node")
    admin = barnabas.admin.AdminClient(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "node",
            "sasl.password": "of the node",
        }
    )
    name = "listener.name.metrics.ssl.keystore.location"
    resource = barnabas.admin.ConfigResource(
        barnabas.admin.ConfigResource.Type.BROKER,
        str(broker._node.settings.node_id),
        incremental_configs=[
            barnabas.admin.ConfigEntry(
                name,
                str(folder / "node.pem"),
                incremental_operation=barnabas.admin.AlterConfigOpType.SET,
            )
        ],
    )
    for result in admin.incremental_alter_configs([resource]).values():
        result.result()
    wait_until(lambda: peer_certificate(broker, folder) != before, "the new certificate")


def test_tokens_without_a_signature_are_never_accepted() -> None:
    settings = {
        "barnabas.metrics.listener": "127.0.0.1:0",
        "barnabas.metrics.authentication": "BEARER",
    }
    with pytest.raises(BrokerError, match=r"set sasl\.oauthbearer\.jwks\.endpoint\.url"):
        Broker(settings).start()
