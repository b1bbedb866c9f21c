"""Forwarding of writes to the leader."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conformance.brokers import free_port
from tests.registry.http_requests import record, send_request
from tests.wait import wait_until

from barnabas.registry.api.forwarding import FORWARDED_HEADER, MAX_CONCURRENT_FORWARDS
from barnabas.registry.instance import RegistryInstance
from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker

TIMEOUT_S = 60


def test_a_leader_that_hangs_does_not_delay_reads(
    registry_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = socket.create_server(("127.0.0.1", 0), backlog=MAX_CONCURRENT_FORWARDS)
    silent.settimeout(60)

    async def leader(_: RegistryInstance) -> str:
        return f"http://127.0.0.1:{silent.getsockname()[1]}"

    monkeypatch.setattr(RegistryInstance, "find_leader_url", leader)
    servers, body = registry_broker.bootstrap_servers, record("x")
    with (
        SchemaRegistry(servers, group_id="held-up", timeout_ms=600_000) as registry,
        ThreadPoolExecutor(MAX_CONCURRENT_FORWARDS) as pool,
    ):
        writes = [
            pool.submit(send_request, registry.url, "POST", "/subjects/held-up/versions", body)
            for _ in range(MAX_CONCURRENT_FORWARDS)
        ]
        held = [silent.accept()[0] for _ in writes]
        assert send_request(registry.url, "POST", "/subjects/none", body).error_code == 40401
        assert not any(write.done() for write in writes)
        for connection in held:
            connection.close()
        assert {write.result().error_code for write in writes} == {50003}
    silent.close()


def test_a_write_is_forwarded_only_once(registry_broker: Broker) -> None:
    servers = registry_broker.bootstrap_servers
    with (
        SchemaRegistry(servers, topic="once", group_id="once"),
        SchemaRegistry(servers, topic="once", group_id="once", leader_eligibility=False) as other,
    ):
        assert send_request(other.url, "PUT", "/config", {"compatibility": "NONE"}).status == 200
        assert send_request(other.url, "GET", "/config").json == {"compatibilityLevel": "NONE"}
        again = {FORWARDED_HEADER: "true"}
        assert send_request(other.url, "DELETE", "/config", headers=again).error_code == 50004


def test_a_write_succeeds_after_the_leader_has_died(
    registry_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused_url = f"http://127.0.0.1:{free_port()}"
    lost: list[str] = []

    async def leader(_: RegistryInstance) -> str | None:
        return None if lost else unused_url

    async def on_leader_lost(_: RegistryInstance, url: str) -> None:
        lost.append(url)

    monkeypatch.setattr(RegistryInstance, "find_leader_url", leader)
    monkeypatch.setattr(RegistryInstance, "on_leader_lost", on_leader_lost)
    servers = registry_broker.bootstrap_servers
    with SchemaRegistry(servers, topic="gone", group_id="gone") as registry:
        assert (
            send_request(registry.url, "POST", "/subjects/a/versions", record("x")).json["id"] == 1
        )
    assert lost == [unused_url]


def test_a_lookup_that_finds_nothing_is_forwarded_to_the_leader(registry_broker: Broker) -> None:
    servers = registry_broker.bootstrap_servers
    with (
        SchemaRegistry(servers, topic="read", group_id="behind") as leader,
        SchemaRegistry(
            servers, topic="unread", group_id="behind", leader_eligibility=False
        ) as behind,
    ):
        response = send_request(leader.url, "POST", "/subjects/a/versions", record("x"))
        wait_until(
            lambda: send_request(behind.url, "GET", "/schemas/ids/1").status == 200,
            "the leader is known",
            TIMEOUT_S,
        )
        paths = (
            "/schemas/ids/1/schema",
            f"/schemas/guids/{response.json['guid']}",
            "/subjects/a/versions",
            "/subjects/a/versions/latest",
        )
        assert [send_request(behind.url, "GET", path).status for path in paths] == [200] * len(
            paths
        )
        assert send_request(behind.url, "POST", "/subjects/a", record("x")).json["version"] == 1
        assert send_request(behind.url, "GET", "/schemas/ids/2").error_code == 40403
        assert send_request(behind.url, "POST", "/subjects/a", record("y")).error_code == 40403


@pytest.mark.parametrize("path", ["/subjects/x/versions/..", "/subjects/x#y", "/subjects/./x"])
def test_the_leader_gets_the_path_of_the_request(registry_broker: Broker, path: str) -> None:
    servers = registry_broker.bootstrap_servers
    with (
        SchemaRegistry(servers, topic="paths", group_id="paths") as leader,
        SchemaRegistry(servers, topic="paths", group_id="paths", leader_eligibility=False) as other,
    ):
        send_request(leader.url, "POST", "/subjects/x/versions", record("x"))
        host, port = other.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as client:
            client.sendall(f"DELETE {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 4")
        assert send_request(leader.url, "GET", "/subjects/x/versions").json == [1]
