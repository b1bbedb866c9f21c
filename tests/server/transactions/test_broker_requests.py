"""One request at a time to each broker, with all that gathered meanwhile."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from barnabas.coordinator.transactions.ports import PartitionErrorCodes
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

PLACE = ("t", 0)
NONE, LOST = {PLACE: ErrorCode.NONE}, {PLACE: ErrorCode.NETWORK_EXCEPTION}


class Peers:
    """Keeps what is sent, and to whom, for a test to answer."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[str]]] = []
        self.answers: list[Any] = []
        self._host = ""

    def at(self, host: str, port: int, purpose: str) -> "Peers":
        assert (port, purpose) == (9092, "errands")
        self._host = host
        return self

    def send(self, request: Any, timeout_ms: int, answered: Any) -> None:
        assert timeout_ms == 30_000
        self.sent.append((self._host, request))
        self.answers.append(answered)

    def close(self) -> None:
        raise AssertionError


class House:
    """Brokers 1 to 3, of which 1 asks the others."""

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
        self.couriers: BrokerRequestQueues[str] = BrokerRequestQueues(
            BrokerDirectory(1, lambda: self.image, peers, "INSIDE"),
            "errands",
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
        self.couriers.on_metadata_update(delta, self.image)

    def send(self, key: str, broker_id: int = 2, **errand: Any) -> Any:
        return self.couriers.send(broker_id, RequestItem(key, key, [PLACE], **errand))


def _read(response: Any) -> Mapping[Hashable, PartitionErrorCodes]:
    if isinstance(response, KafkaError):
        raise response
    return {key: {PLACE: ErrorCode.NONE} for key in response}


@pytest.fixture
def house() -> House:
    return House()


def test_the_first_leaves_at_once_and_the_others_together(house: House) -> None:
    answers = [house.send(key) for key in "abc"]
    assert house.peers.sent == [("host2", ["a"])]
    house.peers.answers[0](["a"])
    assert house.peers.sent[1:] == [("host2", ["b", "c"])]
    house.peers.answers[1](["b", "c"])
    assert [answer.result() for answer in answers] == [NONE] * 3


def test_brokers_do_not_wait_for_each_other(house: House) -> None:
    house.send("a", 2)
    house.send("b", 3)
    assert house.peers.sent == [("host2", ["a"]), ("host3", ["b"])]


def test_two_of_one_key_go_one_after_the_other(house: House) -> None:
    for key in ("a", "b", "b", "c"):
        house.send(key)
    house.peers.answers[0](["a"])
    house.peers.answers[1](["b", "c"])
    assert [keys for _, keys in house.peers.sent] == [["a"], ["b", "c"], ["b"]]


def test_a_request_is_bounded(house: House) -> None:
    for number in range(MAX_ITEMS_PER_REQUEST + 2):
        house.send(str(number))
    house.peers.answers[0](["0"])
    house.peers.answers[1]([])
    assert [len(keys) for _, keys in house.peers.sent] == [1, MAX_ITEMS_PER_REQUEST, 1]


def test_what_nobody_wants_any_more_stays_behind(house: House) -> None:
    house.send("a")
    unwanted = house.send("b", is_needed=lambda: False)
    house.peers.answers[0](["a"])
    assert len(house.peers.sent) == 1
    assert not unwanted.is_done
    house.send("c")
    assert house.peers.sent[1:] == [("host2", ["c"])]


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (TimeoutError(), LOST),
        (ConnectionRefusedError(), LOST),
        (KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ""), None),
        ([], {PLACE: ErrorCode.UNKNOWN_SERVER_ERROR}),
    ],
    ids=str,
)
def test_each_is_told_what_became_of_the_request(
    house: House, response: Any, told: PartitionErrorCodes | None
) -> None:
    answer, following = house.send("a"), house.send("b")
    house.peers.answers[0](response)
    assert answer.result() == (told or {PLACE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
    house.peers.answers[1](["b"])
    assert following.result() == NONE


def test_from_a_fenced_broker_nothing_is_waited_for(house: House) -> None:
    answers = [house.send(key) for key in "ab"]
    other = house.send("c", 3)
    house.fence(2)
    assert [answer.result() for answer in answers] == [LOST] * 2
    assert not other.is_done
    house.peers.answers[0](["a"])  # too late
    assert house.send("d").result() == LOST, "nor is it asked"


@pytest.mark.parametrize("broker_id", [2, 9])
def test_who_cannot_be_reached_is_not_asked(house: House, broker_id: int) -> None:
    house.image.brokers.pop(2)
    assert house.send("a", broker_id).result() == LOST
    assert not house.peers.sent


def test_in_the_end_nobody_waits(house: House) -> None:
    answers = [house.send(key) for key in "ab"]
    house.couriers.close()
    assert [answer.result() for answer in answers] == [LOST] * 2
