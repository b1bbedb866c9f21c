"""Malformed frames by the thousand: the broker goes on serving and its memory stays flat.

BARNABAS_FUZZ_SECONDS asks for longer than `make test` takes; BARNABAS_SEED for other frames.
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
from tests.cluster.hostile import TOPIC, every_request, forge
from tests.conformance.brokers import BrokerProcess, connect
from tests.conformance.clients.client import Sent
from tests.conformance.clients.confluent import ConfluentClient

SECONDS = float(os.environ.get("BARNABAS_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
GROWTH_BYTES = 10_000_000
CONNECTIONS_BETWEEN_LOOKS = 100
CONNECTIONS_AT_LEAST = 300
"""Of each part of an attack, however busy the machine is."""


@pytest.fixture
def target(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that does not turn every random name into a topic."""
    broker = BrokerProcess(tmp_path, settings={"auto.create.topics.enable": "false"})
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_malformed_frames_leave_the_broker_serving_and_its_memory_flat(
    target: BrokerProcess,
) -> None:
    seeded = random.Random(SEED)
    attack = Attack(target, seeded)
    client = ConfluentClient(target.bootstrap)
    client.create_topic(TOPIC)
    for frame in every_request(seeded):  # compiles every codec: that memory is not a leak
        attack.send(frame)
    attack.go_on(SECONDS / 3)
    warm_bytes = target.rss_bytes()
    attack.go_on(SECONDS * 2 / 3)
    growth_bytes = target.rss_bytes() - warm_bytes
    assert growth_bytes < GROWTH_BYTES, f"{growth_bytes / 1e6:.1f} MB more after {attack.count}"
    client.create_topic("still-serving")
    assert client.produce("still-serving", [Sent(b"yes")]) == [0]
    assert client.fetch("still-serving", 0, 1)[0].value == b"yes"
    client.close()


class Attack:
    """Sends forged bytes, a connection each, and looks now and then how the broker does."""

    def __init__(self, target: BrokerProcess, seeded: random.Random) -> None:
        self.count = 0
        self._target = target
        self._seeded = seeded
        self._recent: deque[bytes] = deque(maxlen=2 * CONNECTIONS_BETWEEN_LOOKS)

    def go_on(self, seconds: float) -> None:
        deadline, enough = time.monotonic() + seconds, self.count + CONNECTIONS_AT_LEAST
        while time.monotonic() < deadline or self.count < enough:
            self.send(forge(self._seeded))
        self._look()

    def send(self, forged: bytes) -> None:
        self._recent.append(forged)
        self.count += 1
        # The broker may hang up in the middle: that is one of the right answers.
        with connect(self._target.port) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(forged)
            self._part(connection)
        if self.count % CONNECTIONS_BETWEEN_LOOKS == 0:
            self._look()

    def _part(self, connection: socket.socket) -> None:
        """Hang up at once and rudely, or after a look at what is answered."""
        if self._seeded.random() < 0.3:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif select.select([connection], [], [], 0.005)[0]:
            connection.recv(65_536)

    def _look(self) -> None:
        traceback = "Traceback" in self._target.log_text()
        if traceback or not self._target.answers():
            frames = self._target.directory / "frames.hex"
            frames.write_text("\n".join(frame.hex() for frame in self._recent))
            fault = "logged a traceback" if traceback else "does not answer"
            pytest.fail(
                f"the broker {fault} after {self.count} connections (seed {SEED});"
                f" the last are in {frames}, its log in {self._target.log_file}"
            )
