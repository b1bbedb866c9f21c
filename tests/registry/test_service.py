"""The HTTP server of a registry, and clients that speak another protocol to it."""

import logging
import socket

import pytest
from tests.wait import wait_until

from barnabas.registry.service import SchemaRegistry


def test_clients_that_do_not_speak_http_are_named_once(
    schema_registry: SchemaRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = schema_registry.url.removeprefix("http://").partition(":")
    with caplog.at_level(logging.WARNING, "uvicorn.error"):
        for _ in range(3):
            with socket.create_connection((host, int(port)), 10) as client:
                client.sendall(b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\0\4kafka")  # ApiVersions
                wait_until(lambda client=client: client.recv(4096) == b"")
    (line,) = [record.getMessage() for record in caplog.records if "HTTP" in record.getMessage()]
    assert "Kafka clients connect to a broker's port" in line
