"""Registries with TLS and logins, over real sockets, before a broker with SASL and ACLs."""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import confluent_kafka.schema_registry
import jwt
import pytest
import urllib3
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from cryptography.hazmat.primitives.asymmetric import ec
from tests.registry.http_requests import JSON, record
from tests.security.authentication.brokers import add_scram_user, delete_scram_user, sasl_broker
from tests.tls_certificates import Authority, castle_authority
from tests.wait import wait_until

from barnabas import schema_registry
from barnabas.client.admin.model import AclOperation
from barnabas.net import http_server
from barnabas.registry.api import schemas as schemas_api
from barnabas.registry.api import subjects
from barnabas.registry.api.access import topic_of
from barnabas.registry.listener_settings import RegistryConfigError, RegistryListener
from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import avro as our_avro
from barnabas.security.scram_credentials import ScramMechanismCode
from barnabas.serialization import MessageField as OurField
from barnabas.serialization import SerializationContext as OurContext
from barnabas.testing import Broker
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)

KEY = ec.generate_private_key(ec.SECP256R1())
AUDIENCE, ISSUER = "castle", "https://issuer.example"
TOPIC, CLUSTER, LITERAL, ALLOW = 2, 4, 3, 3
PASSWORDS = {name: f"secret of {name}" for name in ("registry", "admin", "alice", "bob")}
LIFETIME_MS = 200
LONG_REFERENCE = {"references": [{"name": "a", "subject": "long" * 10_000, "version": 1}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    (folder / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "1"}]}))
    castle_authority().write_pem(folder)
    castle_authority().issue("CN=registry").write_pem(folder, "registry")
    Authority("CN=Another CA").write_pem(folder, "other")
    return folder


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    oauth = "listener_name_plaintext_oauthbearer_sasl_oauthbearer_"
    settings = {
        oauth + "jwks_endpoint_url": f"file://{folder}/jwks.json",
        oauth + "expected_issuer": ISSUER,
        oauth + "expected_audience": AUDIENCE,
        "authorizer_class_name": "acl",
        "super_users": "User:ANONYMOUS;User:node;User:registry;User:admin",
    }
    with sasl_broker(**settings) as running:
        for user, password in PASSWORDS.items():
            add_scram_user(running, user, password)
        for topic in ("orders", "own-name"):
            for operation in (AclOperation.READ, AclOperation.WRITE):
                allow(running, "alice", operation, topic)
        allow(running, "bob", AclOperation.READ, "orders")
        allow(running, "olga", AclOperation.READ, "orders")
        yield running


def allow(broker: Broker, user: str, operation: AclOperation, topic: str) -> None:
    acl = AclCreation(
        resource_type=TOPIC,
        resource_name=topic,
        resource_pattern_type=LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=operation.value,
        permission_type=ALLOW,
    )
    broker._run(broker._node.controller.handle(CreateAclsRequest(creations=[acl])))


def revoke(broker: Broker, user: str) -> None:
    acl = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=f"User:{user}",
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    broker._run(broker._node.controller.handle(DeleteAclsRequest(filters=[acl])))


@contextmanager
def a_registry(broker: Broker, folder: Path, **listener: str) -> Iterator[SchemaRegistry]:
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "registry",
        "sasl.password": PASSWORDS["registry"],
    }
    with SchemaRegistry(
        broker.bootstrap_servers,
        client=client,
        listener={
            "authentication.method": "BASIC,BEARER",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "registry.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
            "barnabas.login.lifetime.ms": str(LIFETIME_MS),
            **listener,
        },
    ) as registry:
        yield registry


@pytest.fixture(scope="module")
def registry(broker: Broker, folder: Path) -> Iterator[SchemaRegistry]:
    with a_registry(broker, folder) as running:
        register(running, folder, "admin", "orders-value")
        register(running, folder, "admin", "secret-value", "secret")
        yield running


def basic(user: str, password: str | None = None) -> dict[str, str]:
    password = PASSWORDS[user] if password is None else password
    return {"Authorization": urllib3.make_headers(basic_auth=f"{user}:{password}")["authorization"]}


def bearer(**changes: object) -> dict[str, str]:
    now_s = int(time.time())
    claims = {"sub": "olga", "iat": now_s, "exp": now_s + 60, "aud": AUDIENCE, "iss": ISSUER}
    token = jwt.encode({**claims, **changes}, KEY, "ES256", headers={"kid": "1"})
    return {"Authorization": f"Bearer {token}"}


def send(
    registry: SchemaRegistry,
    folder: Path,
    headers: dict[str, str],
    method: str,
    path: str,
    body: object = None,
    ca: str = "ca",
) -> urllib3.BaseHTTPResponse:
    with urllib3.PoolManager(ca_certs=str(folder / f"{ca}.pem"), retries=False) as http:
        return http.request(
            method,
            registry.url + path,
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": JSON, **headers},
        )


def register(
    registry: SchemaRegistry, folder: Path, user: str, subject: str, field: str = "id"
) -> urllib3.BaseHTTPResponse:
    path = f"/subjects/{subject}/versions"
    return send(registry, folder, basic(user), "POST", path, record(field))


# Logins


@pytest.mark.parametrize(
    "headers", [lambda: basic("alice"), lambda: bearer()], ids=["Basic", "Bearer"]
)
def test_users_of_the_cluster_and_holders_of_tokens_read_what_their_acls_allow(
    registry: SchemaRegistry, folder: Path, headers: Callable[[], dict[str, str]]
) -> None:
    response = send(registry, folder, headers(), "GET", "/subjects/orders-value/versions/1")
    assert response.status == 200, response.data
    assert (
        send(registry, folder, headers(), "GET", "/subjects/secret-value/versions/1").status == 403
    )


@pytest.mark.parametrize(
    "headers",
    [
        dict,
        lambda: basic("alice", "another"),
        lambda: basic("nobody", "another"),
        lambda: {"Authorization": "Basic ?"},
        lambda: {"Authorization": "Negotiate abc"},
        lambda: bearer(exp=int(time.time()) - 3600),
        lambda: bearer(iss="https://other.example"),
        lambda: {"Authorization": "Bearer a.b.c"},
        lambda: {"Authorization": f"Bearer a.{'W1tb' * 3000}.c"},
        lambda: bearer(exp=10**400),
        lambda: bearer(exp=float("inf")),
    ],
    ids=[
        "no credentials",
        "wrong password",
        "unknown user",
        "malformed",
        "another scheme",
        "expired token",
        "other issuer",
        "no token",
        "deeply nested token",
        "expiry that is too large",
        "expiry that is no number",
    ],
)
def test_everybody_else_is_unauthorized(
    registry: SchemaRegistry, folder: Path, headers: Callable[[], dict[str, str]]
) -> None:
    for path in ("/subjects", "/", "/nothing/here", "/schemas/ids/1"):
        response = send(registry, folder, headers(), "GET", path)
        assert response.status == 401
        assert response.json() == {"error_code": 40101, "message": "Unauthorized"}
        assert response.headers.getlist("www-authenticate") == [
            'Basic realm="SchemaRegistry", charset="UTF-8"',
            'Bearer realm="SchemaRegistry"',
        ]


def test_rejected_credentials_are_not_sent_to_a_broker_again_and_not_logged(
    registry: SchemaRegistry, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    headers = basic("bob", "a wrong secret")  # the broker has a line a minute for each user
    assert send(registry, folder, headers, "GET", "/subjects").status == 401
    for _ in range(5):
        assert send(registry, folder, headers, "GET", "/subjects").status == 401
    assert caplog.text.count("has another password") == 1  # the broker's line
    assert "a wrong secret" not in caplog.text


def test_a_client_cannot_claim_another_address(
    broker: Broker, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    headers = basic("barnabas", "a wrong secret") | {"X-Forwarded-For": "192.0.2.1"}
    with a_registry(broker, folder) as registry:  # one that has logged nothing in this minute
        assert send(registry, folder, headers, "GET", "/subjects").status == 401
    assert "Authentication of 127.0.0.1 at the schema registry failed" in caplog.text
    assert "192.0.2.1" not in caplog.text


def test_a_deleted_user_is_unauthorized_when_the_login_ends(
    registry: SchemaRegistry, folder: Path, broker: Broker
) -> None:
    add_scram_user(broker, "karl", "secret of karl")
    headers = basic("karl", "secret of karl")
    assert send(registry, folder, headers, "GET", "/subjects").json() == []
    for mechanism in ScramMechanismCode:
        delete_scram_user(broker, "karl", mechanism)
    wait_until(lambda: send(registry, folder, headers, "GET", "/subjects").status == 401)


def test_a_revoked_acl_counts_when_the_login_ends(
    registry: SchemaRegistry, folder: Path, broker: Broker
) -> None:
    add_scram_user(broker, "erna", "secret of erna")
    allow(broker, "erna", AclOperation.READ, "orders")
    path, headers = "/subjects/orders-value/versions", basic("erna", "secret of erna")
    wait_until(lambda: send(registry, folder, headers, "GET", path).status == 200)
    revoke(broker, "erna")
    wait_until(lambda: send(registry, folder, headers, "GET", path).status == 403)


# Permissions


def test_a_subject_is_protected_as_the_topic_whose_records_it_describes() -> None:
    assert [topic_of(name) for name in ("orders-value", "orders-key", ":.ctx:orders-value")] == [
        "orders"
    ] * 3
    assert [topic_of(name) for name in ("com.acme.Order", "orders-com.acme.Order", "-value")] == [
        "com.acme.Order",
        "orders-com.acme.Order",
        "-value",
    ]


@pytest.mark.parametrize(
    ("user", "method", "path", "body", "status"),
    [
        ("bob", "POST", "/subjects/orders-value", record("id"), 200),
        ("bob", "GET", "/subjects/:.other:orders-value/versions", None, 404),
        ("bob", "POST", "/compatibility/subjects/orders-value/versions/1", record("id"), 200),
        ("bob", "POST", "/subjects/orders-value/versions", record("other"), 403),
        ("bob", "DELETE", "/subjects/orders-value", None, 403),
        ("bob", "DELETE", "/subjects/orders-value/versions/1", None, 403),
        ("bob", "GET", "/config", None, 200),
        ("bob", "GET", "/config/orders-value?defaultToGlobal=true", None, 200),
        ("bob", "GET", "/config/secret-value?defaultToGlobal=true", None, 403),
        ("bob", "GET", "/mode/secret-value?defaultToGlobal=true", None, 403),
        ("alice", "PUT", "/config/orders-value", {"compatibility": "NONE"}, 403),
        ("alice", "PUT", "/config", {"compatibility": "NONE"}, 403),
        ("alice", "PUT", "/config/:.other:", {"compatibility": "NONE"}, 403),
        ("alice", "PUT", "/mode", {"mode": "READONLY"}, 403),
        ("alice", "DELETE", "/config", None, 403),
        ("alice", "DELETE", "/mode/orders-value", None, 403),
        ("alice", "DELETE", "/contexts/.other", None, 403),
        ("alice", "POST", "/subjects/own-name/versions", record("own"), 200),
        ("alice", "GET", "/subjects/nothing-value/versions", None, 403),
        ("alice", "POST", "/subjects/orders-value", record("id") | LONG_REFERENCE, 403),
        ("alice", "GET", "/subjects/secret-value/versions/1/schema", None, 403),
        ("alice", "GET", "/subjects/secret-value/versions/1/referencedby", None, 403),
        ("alice", "GET", "/subjects/secret-value/metadata?key=a&value=b", None, 403),
        ("alice", "GET", "/contexts/.other/subjects/secret-value/versions", None, 403),
        ("alice", "POST", "/subjects/secret-value", record("secret"), 403),
        ("alice", "POST", "/compatibility/subjects/secret-value/versions", record("id"), 403),
        ("admin", "PUT", "/config/orders-value", {"compatibility": "BACKWARD"}, 200),
        ("admin", "PUT", "/config", {"compatibility": "BACKWARD"}, 200),
    ],
)
def test_each_request_needs_an_operation_on_the_topic(
    registry: SchemaRegistry,
    folder: Path,
    user: str,
    method: str,
    path: str,
    body: object,
    status: int,
) -> None:
    response = send(registry, folder, basic(user), method, path, body)
    assert response.status == status, response.data
    if status == 403:
        assert response.json()["error_code"] == 40301


def test_lists_have_only_what_the_client_may_describe(
    registry: SchemaRegistry, folder: Path
) -> None:
    assert send(registry, folder, basic("bob"), "GET", "/subjects").json() == ["orders-value"]
    listed = send(registry, folder, basic("bob"), "GET", "/schemas").json()
    assert {version["subject"] for version in listed} == {"orders-value"}
    assert "secret-value" in send(registry, folder, basic("admin"), "GET", "/subjects").json()
    register(registry, folder, "admin", ":.hidden:secret-value")
    contexts = {
        user: send(registry, folder, basic(user), "GET", "/contexts").json()
        for user in ("admin", "bob")
    }
    assert contexts == {"admin": [".", ".hidden"], "bob": ["."]}


def test_a_schema_is_read_by_id_through_one_of_its_subjects(
    registry: SchemaRegistry, folder: Path
) -> None:
    ids = {}
    for subject in ("orders-value", "secret-value"):
        path = f"/subjects/{subject}/versions/1"
        ids[subject] = send(registry, folder, basic("admin"), "GET", path).json()
    for kind, key in (("ids", "id"), ("guids", "guid")):
        shared, hidden = ids["orders-value"][key], ids["secret-value"][key]
        assert (
            send(registry, folder, basic("bob"), "GET", f"/schemas/{kind}/{shared}").status == 200
        )
        rejected = send(registry, folder, basic("bob"), "GET", f"/schemas/{kind}/{hidden}")
        assert (rejected.status, rejected.json()["error_code"]) == (403, 40301)
        assert b"secret-value" not in rejected.data
    path = f"/schemas/ids/{ids['secret-value']['id']}/subjects"
    assert send(registry, folder, basic("bob"), "GET", path).json() == []


def test_a_schema_cannot_refer_to_one_that_the_client_may_not_read(
    registry: SchemaRegistry, folder: Path
) -> None:
    body = record("id") | {"references": [{"name": "x", "subject": "secret-value", "version": 1}]}
    path = "/subjects/orders-value/versions"
    for where in (path, "/subjects/orders-value", f"/compatibility{path}"):
        assert send(registry, folder, basic("alice"), "POST", where, body).status == 403


def test_an_alias_gives_no_access_to_what_it_stands_for(
    registry: SchemaRegistry, folder: Path
) -> None:
    body = {"alias": "secret-value"}
    assert send(registry, folder, basic("admin"), "PUT", "/config/own-name", body).status == 200
    try:
        path = "/subjects/own-name/versions/1"
        assert send(registry, folder, basic("alice"), "GET", path).status == 403
    finally:
        send(registry, folder, basic("admin"), "DELETE", "/config/own-name")


def test_no_route_can_be_used_without_acls(
    registry: SchemaRegistry, folder: Path, broker: Broker
) -> None:
    add_scram_user(broker, "mizzi", "secret of mizzi")
    harmless = {"/schemas/types"}
    for route in (*subjects.ROUTES, *schemas_api.ROUTES):
        path = route.path.format(
            subject="secret-value", version="1", id="2", guid="no", context=".other"
        )
        method = min((route.methods or set()) - {"HEAD"})
        headers = basic("mizzi", "secret of mizzi")
        response = send(registry, folder, headers, method, path, record("secret"))
        is_hidden = response.status in (403, 404) or response.json() == []
        assert is_hidden or path in harmless, (method, path, response.data)


# Instances


def test_a_follower_forwards_with_the_clients_own_credentials(
    registry: SchemaRegistry, folder: Path, broker: Broker
) -> None:
    with a_registry(broker, folder) as second:
        wait_until(
            lambda: register(second, folder, "alice", "orders-value").status == 200, "a leader"
        )
        assert register(second, folder, "bob", "orders-value", "b").status == 403
        assert register(second, folder, "admin", "new-value").status == 200
        path = "/subjects/new-value/versions/1"
        assert send(registry, folder, basic("admin"), "GET", path).status == 200
        claimed = {"X-Forward": "true", "X-Forwarded-User": "admin"}
        assert send(registry, folder, claimed, "GET", path).status == 401


# TLS and bounds


def test_clients_reject_a_certificate_of_another_authority(
    registry: SchemaRegistry, folder: Path
) -> None:
    with pytest.raises(urllib3.exceptions.SSLError):
        send(registry, folder, basic("admin"), "GET", "/subjects", ca="other")


def test_a_client_without_a_certificate_is_rejected_if_one_is_required(
    broker: Broker, folder: Path
) -> None:
    with a_registry(broker, folder, **{"ssl.client.authentication": "REQUIRED"}) as registry:
        with pytest.raises(urllib3.exceptions.HTTPError):
            send(registry, folder, basic("admin"), "GET", "/")
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        context.load_cert_chain(folder / "registry.pem")
        with urllib3.PoolManager(ssl_context=context, retries=False) as http:
            response = http.request("GET", registry.url, headers=basic("admin"))
            assert response.status == 200


def test_a_slow_request_is_closed(
    registry: SchemaRegistry, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_HEAD_TIMEOUT_S", 0.2)
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    host, port = registry.url.removeprefix("https://").split(":")
    for sent in (b"", b"GET /subjects HTTP/1.1\r\nHost: "):
        with (
            socket.create_connection((host, int(port)), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname=host) as client,
        ):
            client.sendall(sent)
            with suppress(OSError):  # closed without a goodbye
                assert client.recv(100) == b""


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"authentication.method": "KERBEROS"}, "authentication.method"),
        ({"listeners": "https://a:1,https://b:2"}, "must be one address"),
        ({"ssl.keystore.locations": "x"}, "did you mean ssl.keystore.location?"),
        ({"barnabas.login.lifetime.ms": "never"}, "barnabas.login.lifetime.ms"),
        ({"ssl.keystore.location": "x", "ssl.client.auth": "maybe"}, "ssl.client.auth"),
    ],
)
def test_settings_that_are_not_valid_are_named(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(RegistryConfigError, match=reason.replace("?", r"\?")):
        RegistryListener.from_properties(properties)


def test_logins_need_brokers_that_verify_them() -> None:
    with pytest.raises(RegistryConfigError, match=r"security\.protocol"):
        SchemaRegistry("localhost:1", listener={"authentication.method": "BASIC"}).start()


# Clients


def test_serializers_of_confluent_kafka_use_https_and_basic(
    registry: SchemaRegistry, folder: Path
) -> None:
    client = confluent_kafka.schema_registry.SchemaRegistryClient(
        {
            "url": registry.url,
            "basic.auth.user.info": f"alice:{PASSWORDS['alice']}",
            "ssl.ca.location": str(folder / "ca.pem"),
        }
    )
    context = SerializationContext("orders", MessageField.VALUE)
    content = AvroSerializer(client, record("id")["schema"])({"id": 7}, context)
    assert AvroDeserializer(client)(content, context) == {"id": 7}
    with pytest.raises(confluent_kafka.schema_registry.error.SchemaRegistryError) as rejected:
        client.get_latest_version("secret-value")
    assert (rejected.value.http_status_code, rejected.value.error_code) == (403, 40301)


@pytest.mark.parametrize("method", ["basic", "bearer"])
def test_our_serializers_use_https_and_each_login(
    registry: SchemaRegistry, folder: Path, method: str
) -> None:
    login = {"basic.auth.user.info": f"bob:{PASSWORDS['bob']}"}
    if method == "bearer":
        login = {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": bearer()["Authorization"].removeprefix("Bearer "),
            "bearer.auth.logical.cluster": "castle",
        }
    settings = {"url": registry.url, "ssl.ca.location": str(folder / "ca.pem"), **login}
    with schema_registry.SchemaRegistryClient(settings) as client:
        context = OurContext("orders", OurField.VALUE)
        serializer = our_avro.AvroSerializer(
            client, record("id")["schema"], conf={"auto.register.schemas": False}
        )
        content = serializer({"id": 7}, context)
        assert our_avro.AvroDeserializer(client)(content, context) == {"id": 7}


def test_wrong_logins_are_the_clients_own_clear_error(
    registry: SchemaRegistry, folder: Path
) -> None:
    settings = {"url": registry.url, "ssl.ca.location": str(folder / "ca.pem")}
    wrong = {**settings, "basic.auth.user.info": "alice:wrong"}
    with (
        schema_registry.SchemaRegistryClient(wrong) as client,
        pytest.raises(schema_registry.SchemaRegistryError, match="Unauthorized"),
    ):
        client.get_subjects()
    other = {**wrong, "ssl.ca.location": str(folder / "other.pem"), "max.retries": 0}
    with (
        schema_registry.SchemaRegistryClient(other) as client,
        pytest.raises(Exception, match="certificate verify failed"),
    ):
        client.get_subjects()
