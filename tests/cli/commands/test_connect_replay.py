"""`barnabas connect replay-dlq`: what is sent back, and how often."""

import json

import pytest
from tests.cli.conftest import Barnabas
from tests.connect.execution.instance import consume

from barnabas import Producer
from barnabas.testing import Broker


@pytest.fixture
def letters(kafka_broker: Broker, kafka_topic: str) -> str:
    """A queue with two dead letters of `orders`, one of `bills` and one of an unknown origin."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for connector in ("orders", "orders", "bills"):
        headers = {
            "__connect.errors.topic": f"{kafka_topic}-origin".encode(),
            "__connect.errors.connector.name": connector.encode(),
        }
        producer.produce(kafka_topic, b"value", headers=headers)
    producer.produce(kafka_topic, b"value")
    producer.flush()
    return kafka_topic


def test_dead_letters_are_sent_back_once(
    barnabas: Barnabas, kafka_broker: Broker, letters: str
) -> None:
    command = ("connect", "replay-dlq", letters, "-b", kafka_broker.bootstrap_servers)
    tried = barnabas(*command, "--connector", "orders", "--dry-run")
    assert tried.exit_code == 0, tried.stderr
    assert tried.stdout.splitlines() == [
        "2 records would be sent back, of 4 read.",
        f"  {letters}-origin: 2",
        "2 records of other connectors left.",
    ]
    done = barnabas(*command, "--json")
    assert json.loads(done.stdout) == {
        "read": 4,
        "replayed": 3,
        "without_origin": 1,
        "of_other_connectors": 0,
        "topics": {f"{letters}-origin": 3},
    }
    assert barnabas(*command).stdout == "0 records sent back, of 0 read.\n"
    assert len(consume(kafka_broker.bootstrap_servers, f"{letters}-origin")) == 3


def test_a_topic_that_does_not_exist_is_an_error(barnabas: Barnabas, kafka_broker: Broker) -> None:
    servers = kafka_broker.bootstrap_servers
    result = barnabas("connect", "replay-dlq", "none-dlq", "-b", servers)
    assert result.exit_code == 1
    assert "Topic none-dlq does not exist" in result.stderr
