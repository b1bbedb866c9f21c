"""Idle connections: the memory of each, and the effect on other connections."""

import resource
import socket
import time
from typing import Any

from bench import raw_client
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.sections.topics import request_latency_ms

CONNECTIONS = 10_000
SETTLE_S = 2


def idle_connections(broker: BrokerUnderTest, _: Any) -> Figures:
    count = broker.count(CONNECTIONS)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request_latency_ms(broker, raw_client.metadata_frame([]))
    before_mb, began_s = broker.process.rss_mb(), time.perf_counter()
    connections = [socket.create_connection(broker.address, timeout=60) for _ in range(count)]
    for connection in connections[:: max(count // 100, 1)]:  # some have sent a request
        connection.sendall(raw_client.metadata_frame([]))
        connection.recv(65_536)
    connect_s = time.perf_counter() - began_s
    time.sleep(SETTLE_S)
    figures = {
        "connect_s": connect_s,
        "rss_mb": broker.process.rss_mb(),
        "kb_per_connection": (broker.process.rss_mb() - before_mb) * 1000 / count,
        "metadata_ms": request_latency_ms(broker, raw_client.metadata_frame([])),
    }
    for connection in connections:
        connection.close()
    return figures


CASES = [Case(f"{CONNECTIONS} idle connections", idle_connections)]
