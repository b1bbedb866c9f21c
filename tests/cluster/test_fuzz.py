"""Thousands of malformed frames: the broker continues to serve and its memory does not grow.

BARNABAS_FUZZ_SECONDS sets the duration; BARNABAS_SEED selects other frames.
"""

import contextlib
import os
import random
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.malformed_frames import TOPIC, every_request, malformed_frames
from tests.conformance.brokers import BrokerProcess, connect
from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.confluent import ConfluentClient

SECONDS = float(os.environ.get("BARNABAS_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
GROWTH_BYTES = 10_000_000
CONNECTIONS_BETWEEN_CHECKS = 100
MIN_CONNECTIONS = 300
"""In each phase, also on a busy machine."""


@pytest.fixture
def target(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker without automatic creation of topics."""
    broker = BrokerProcess(tmp_path, settings={"auto.create.topics.enable": "false"})
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_malformed_frames_leave_the_broker_serving_and_its_memory_flat(
    target: BrokerProcess,
) -> None:
    rng = random.Random(SEED)
    attack = Attack(target, rng)
    client = ConfluentClient(target.bootstrap)
    client.create_topic(TOPIC)
    for frame in every_request(rng):  # compiles every codec: that memory is not a leak
        attack.send(frame)
    attack.run(SECONDS / 3)
    warm_bytes = target.rss_bytes()
    attack.run(SECONDS * 2 / 3)
    growth_bytes = target.rss_bytes() - warm_bytes
    assert growth_bytes < GROWTH_BYTES, f"{growth_bytes / 1e6:.1f} MB more after {attack.count}"
    client.create_topic("still-serving")
    assert client.produce("still-serving", [SentRecord(b"yes")]) == [0]
    assert client.fetch("still-serving", 0, 1)[0].value == b"yes"
    client.close()


class Attack:
    """Sends malformed frames, each on a new connection, and checks the broker regularly."""

    def __init__(self, target: BrokerProcess, rng: random.Random) -> None:
        self.count = 0
        self._target = target
        self._seeded = rng
        self._recent: deque[bytes] = deque(maxlen=2 * CONNECTIONS_BETWEEN_CHECKS)

    def run(self, seconds: float) -> None:
        deadline, min_count = time.monotonic() + seconds, self.count + MIN_CONNECTIONS
        while time.monotonic() < deadline or self.count < min_count:
            self.send(malformed_frames(self._seeded))
        self._check_broker()

    def send(self, frames: bytes) -> None:
        self._recent.append(frames)
        self.count += 1
        # The broker may close the connection at any time.
        with connect(self._target.port) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(frames)
            self._disconnect(connection)
        if self.count % CONNECTIONS_BETWEEN_CHECKS == 0:
            self._check_broker()

    def _disconnect(self, connection: socket.socket) -> None:
        """Resets the connection, or reads a response and closes it."""
        if self._seeded.random() < 0.3:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif select.select([connection], [], [], 0.005)[0]:
            connection.recv(65_536)

    def _check_broker(self) -> None:
        traceback = "Traceback" in self._target.log_text()
        if traceback or not self._target.is_ready():
            frames = self._target.directory / "frames.hex"
            frames.write_text("\n".join(frame.hex() for frame in self._recent))
            fault = "logged a traceback" if traceback else "does not respond"
            pytest.fail(
                f"the broker {fault} after {self.count} connections (seed {SEED});"
                f" the last are in {frames}, its log in {self._target.log_file}"
            )
