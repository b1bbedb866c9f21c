"""The Java producer pushes its metrics to Barnabas; Kafka's command subscribes to them."""

import re
from threading import Thread
from urllib.request import urlopen

import pytest
from tests.conformance.brokers import run_peer
from tests.wait import wait_until

from barnabas.testing import Broker

pytestmark = pytest.mark.peer

RECORDS = 200
SENT = re.compile(
    r'^kafka_client_telemetry_producer_record_send_total\{client_id="perf-producer-client"'
    r".*\} (\S+)$",
    re.MULTILINE,
)


def records_sent(broker: Broker) -> float:
    """Returns how many records a producer has sent, by what it pushed; 0 before it has."""
    with urlopen(f"http://{broker._node.metrics_address}/metrics") as response:
        found = SENT.search(response.read().decode())
    return 0.0 if found is None else float(found[1])


def test_the_deltas_of_the_java_producer_add_up_to_what_it_sent() -> None:
    with Broker({"barnabas.metrics.listener": "127.0.0.1:0"}) as broker:
        server = ("--bootstrap-server", broker.bootstrap_servers)
        subscription = ("--name", "java", "--metrics", "*", "--interval", "200")
        run_peer("tool", "client-metrics", *server, "--alter", *subscription)
        broker.create_topic("orders")
        options = ("--topic", "orders", "--record-size", "100")
        limits = ("--num-records", str(RECORDS), "--throughput", "50")
        arguments = ("producer-perf-test", *server, *options, *limits)
        producer = Thread(target=run_peer, args=("tool", *arguments))
        producer.start()
        seen: list[float] = []

        def has_ended() -> bool:
            seen.append(records_sent(broker))
            return not producer.is_alive()

        wait_until(has_ended, "the producer ends")
        assert RECORDS / 4 <= max(seen) <= RECORDS
        assert len(set(seen)) > 2  # it grows with every push
        assert records_sent(broker) == 0  # the client has disconnected
