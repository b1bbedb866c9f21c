"""One request is in flight to every broker; later items are sent together."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.server.transactions.broker_requests import (
    MAX_ITEMS_PER_REQUEST,
    BrokerDirectory,
    BrokerRequestQueues,
    RequestItem,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import metadata_records as records

TOPIC_PARTITION = ("t", 0)
NONE, LOST = {TOPIC_PARTITION: ErrorCode.NONE}, {TOPIC_PARTITION: ErrorCode.NETWORK_EXCEPTION}


class Peers:
    """Records the requests and their brokers; the test responds."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[str]]] = []
        self.on_responses: list[Any] = []
        self._host = ""

    def at(self, host: str, port: int, purpose: str) -> "Peers":
        assert (port, purpose) == (9092, "requests")
        self._host = host
        return self

    def send(self, request: Any, timeout_ms: int, answered: Any) -> None:
        assert timeout_ms == 30_000
        self.sent.append((self._host, request))
        self.on_responses.append(answered)

    def close(self) -> None:
        raise AssertionError


class FakeCluster:
    """Brokers 1 to 3, of which 1 sends requests to the others."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        for broker_id in (1, 2, 3):
            self.change(
                records.RegisterBrokerRecord(
                    broker_id=broker_id,
                    end_points=[
                        records.BrokerEndpoint(name="OUTSIDE", host="out", port=1),
                        records.BrokerEndpoint(name="INSIDE", host=f"host{broker_id}", port=9092),
                    ],
                    fenced=False,
                )
            )
        self.peers = Peers()
        peers: Any = self.peers
        compose: Any = list
        self.queues: BrokerRequestQueues[str] = BrokerRequestQueues(
            BrokerDirectory(1, lambda: self.image, peers, "INSIDE"),
            "requests",
            compose=compose,
            read=_read,
            timeout_ms=lambda: 30_000,
        )

    def change(self, record: Any) -> MetadataDelta:
        delta = MetadataDelta()
        self.image.apply(record, delta)
        return delta

    def fence(self, broker_id: int) -> None:
        delta = self.change(records.BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=1))
        self.queues.on_metadata_update(delta, self.image)

    def send(self, key: str, broker_id: int = 2, **fields: Any) -> Any:
        return self.queues.send(broker_id, RequestItem(key, key, [TOPIC_PARTITION], **fields))


def _read(response: Any) -> Mapping[Hashable, PartitionErrorCodes]:
    if isinstance(response, KafkaError):
        raise response
    return {key: {TOPIC_PARTITION: ErrorCode.NONE} for key in response}


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def test_the_first_item_is_sent_at_once_and_later_ones_together(cluster: FakeCluster) -> None:
    responses = [cluster.send(key) for key in "abc"]
    assert cluster.peers.sent == [("host2", ["a"])]
    cluster.peers.on_responses[0](["a"])
    assert cluster.peers.sent[1:] == [("host2", ["b", "c"])]
    cluster.peers.on_responses[1](["b", "c"])
    assert [response.result() for response in responses] == [NONE] * 3


def test_requests_to_different_brokers_do_not_wait_for_each_other(cluster: FakeCluster) -> None:
    cluster.send("a", 2)
    cluster.send("b", 3)
    assert cluster.peers.sent == [("host2", ["a"]), ("host3", ["b"])]


def test_items_with_the_same_key_are_sent_in_different_requests(cluster: FakeCluster) -> None:
    for key in ("a", "b", "b", "c"):
        cluster.send(key)
    cluster.peers.on_responses[0](["a"])
    cluster.peers.on_responses[1](["b", "c"])
    assert [keys for _, keys in cluster.peers.sent] == [["a"], ["b", "c"], ["b"]]


def test_a_request_has_a_limited_number_of_items(cluster: FakeCluster) -> None:
    for number in range(MAX_ITEMS_PER_REQUEST + 2):
        cluster.send(str(number))
    cluster.peers.on_responses[0](["0"])
    cluster.peers.on_responses[1]([])
    assert [len(keys) for _, keys in cluster.peers.sent] == [1, MAX_ITEMS_PER_REQUEST, 1]


def test_items_that_are_no_longer_needed_are_not_sent(cluster: FakeCluster) -> None:
    cluster.send("a")
    unneeded = cluster.send("b", is_needed=lambda: False)
    cluster.peers.on_responses[0](["a"])
    assert len(cluster.peers.sent) == 1
    assert not unneeded.is_done
    cluster.send("c")
    assert cluster.peers.sent[1:] == [("host2", ["c"])]


@pytest.mark.parametrize(
    ("response", "reported"),
    [
        (TimeoutError(), LOST),
        (ConnectionRefusedError(), LOST),
        (KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ""), None),
        ([], {TOPIC_PARTITION: ErrorCode.UNKNOWN_SERVER_ERROR}),
    ],
    ids=str,
)
def test_every_item_receives_the_outcome_of_the_request(
    cluster: FakeCluster, response: Any, reported: PartitionErrorCodes | None
) -> None:
    result, following = cluster.send("a"), cluster.send("b")
    cluster.peers.on_responses[0](response)
    assert result.result() == (
        reported or {TOPIC_PARTITION: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    )
    cluster.peers.on_responses[1](["b"])
    assert following.result() == NONE


def test_requests_to_a_fenced_broker_fail_at_once(cluster: FakeCluster) -> None:
    responses = [cluster.send(key) for key in "ab"]
    other = cluster.send("c", 3)
    cluster.fence(2)
    assert [response.result() for response in responses] == [LOST] * 2
    assert not other.is_done
    cluster.peers.on_responses[0](["a"])  # too late
    assert cluster.send("d").result() == LOST, "nor is it asked"


@pytest.mark.parametrize("broker_id", [2, 9])
def test_a_broker_without_an_endpoint_receives_no_request(
    cluster: FakeCluster, broker_id: int
) -> None:
    cluster.image.brokers.pop(2)
    assert cluster.send("a", broker_id).result() == LOST
    assert not cluster.peers.sent


def test_closing_fails_all_pending_items(cluster: FakeCluster) -> None:
    responses = [cluster.send(key) for key in "ab"]
    cluster.queues.close()
    assert [response.result() for response in responses] == [LOST] * 2
