"""Quotas: what other clients notice of one that sends far more than it may."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.testing.requests import send_request
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.greedy_client import CLIENT_ID, GreedyClient
from bench.paced_producer import PacedProducer, times_alone

QUOTA_BYTES_PER_S = 1_000_000
EXCESS = 50
PRODUCER_RATE = 1_000
SECONDS = 10
BURST_S = 12
"""A rate is measured over 11 samples of a second: at first, a client may send all of it at once."""


@contextmanager
def limited(broker: BrokerUnderTest) -> Iterator[str]:
    """A topic, and a quota of the greedy client."""
    _set_quota(broker, QUOTA_BYTES_PER_S)
    with broker.topic() as topic:
        yield topic
    _set_quota(broker, None)


def produce_beside_greedy_client(broker: BrokerUnderTest, topic: str) -> Figures:
    with PacedProducer(broker.address, topic, PRODUCER_RATE) as alone:
        time.sleep(SECONDS)
    with GreedyClient(broker.address, topic, EXCESS * QUOTA_BYTES_PER_S) as greedy:
        time.sleep(BURST_S)
        cpu_s = broker.process.cpu_s()
        with PacedProducer(broker.address, topic, PRODUCER_RATE) as beside:
            time.sleep(SECONDS)
        cpu_s = broker.process.cpu_s() - cpu_s
    return {
        "greedy_mb_per_s": greedy.mb_per_s,
        "broker_cpu_percent": cpu_s / SECONDS * 100,
        **beside.latencies,
        **times_alone(beside.latencies, alone.latencies),
    }


def _set_quota(broker: BrokerUnderTest, bytes_per_s: float | None) -> None:
    operation = OpData(
        key="producer_byte_rate", value=bytes_per_s or 0.0, remove=bytes_per_s is None
    )
    entity = EntityData(entity_type="client-id", entity_name=CLIENT_ID)
    entry = RequestEntryData(entity=[entity], ops=[operation])
    response = send_request(broker.port, AlterClientQuotasRequest(entries=[entry]), 1, timeout_s=10)
    assert response.entries[0].error_code == 0, response


CASES = [
    Case(
        f"producer of {PRODUCER_RATE}/s beside a client of {EXCESS} times its quota",
        produce_beside_greedy_client,
        limited,
    )
]
