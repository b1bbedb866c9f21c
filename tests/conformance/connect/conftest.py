"""A real worker of Kafka Connect on our broker, and our REST API beside it."""

from collections.abc import Iterator

import pytest
from tests.conformance.brokers import Broker, is_peer_installed
from tests.conformance.connect.workers import BarnabasWorker, KafkaWorker


@pytest.fixture(scope="session")
def kafka_worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaWorker]:
    """The real worker, whose topics and groups are in our broker."""
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    worker = KafkaWorker(tmp_path_factory.mktemp("kafka-connect"), broker.bootstrap)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture(scope="session")
def barnabas_worker(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BarnabasWorker]:
    """Ours, on the same broker."""
    worker = BarnabasWorker(tmp_path_factory.mktemp("barnabas-connect"), broker.bootstrap)
    worker.start()
    yield worker
    worker.stop()
