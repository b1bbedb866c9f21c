"""Carries questions about partitions to other brokers: one request at a time to each of them.

What gathers while a request is under way leaves together in the next. So a broker that is asked
much is asked in few requests, and one that is asked seldom is asked at once.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

from barnabas.coordinator.answer import Answer
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.ports import Outcomes
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.metadata.states import NO_LEADER, endpoint_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.peer import Peer, Peers
from barnabas.wire.schema import Message

ERRANDS_A_REQUEST: Final = 500

B = TypeVar("B")


@dataclass(slots=True, eq=False)
class Errand(Generic[B]):
    """One question, which is part of a request."""

    key: Hashable
    """By what its answer is found in the response: no two in a request have the same."""
    body: B
    partitions: Sequence[TopicPartition]
    is_wanted: Callable[[], bool] = lambda: True
    answer: Answer[Outcomes] = field(default_factory=Answer)

    def fail(self, code: ErrorCode) -> None:
        self.answer.complete(dict.fromkeys(self.partitions, code))


class Couriers(Generic[B]):
    """One to each broker that was ever asked."""

    __slots__ = ("_brokers", "_compose", "_couriers", "_purpose", "_read", "_timeout_ms")

    def __init__(
        self,
        brokers: "Brokers",
        purpose: str,
        *,
        compose: Callable[[list[B]], Message],
        read: Callable[[Any], Mapping[Hashable, Outcomes]],
        timeout_ms: Callable[[], int],
    ) -> None:
        """`read` finds the answers in a response, by key; KafkaError if it refuses all."""
        self._brokers = brokers
        self._purpose = purpose
        self._compose = compose
        self._read = read
        self._timeout_ms = timeout_ms
        self._couriers: dict[int, _Courier[B]] = {}

    def send(self, broker_id: int, errand: Errand[B]) -> Answer[Outcomes]:
        """What the broker says for each partition; NETWORK_EXCEPTION if it is not heard from."""
        courier = self._couriers.get(broker_id)
        if courier is None:
            courier = self._couriers[broker_id] = _Courier(self, broker_id)
        courier.take(errand)
        return errand.answer

    def follow(self, delta: Delta, image: Image) -> None:
        """From a broker that was fenced, or went, no answer is waited for."""
        for broker_id in sorted(delta.brokers_changed & self._couriers.keys()):
            broker = image.brokers.get(broker_id)
            if broker is None or broker.fenced:
                self._couriers[broker_id].give_up()

    def close(self) -> None:
        """Wait for nobody any longer."""
        for courier in self._couriers.values():
            courier.give_up()

    def ask(
        self, broker_id: int, errands: Sequence[Errand[B]], heard: Callable[[Any], None]
    ) -> bool:
        """Send a request for all of them; whether there is anybody to send it to."""
        peer = self._brokers.peer(broker_id, self._purpose)
        if peer is None:
            return False
        request = self._compose([errand.body for errand in errands])
        peer.send(request, self._timeout_ms(), heard)
        return True

    def tell(self, errands: Sequence[Errand[B]], response: Any) -> None:
        """Complete them with the response, or with the OSError that came instead of it."""
        if isinstance(response, OSError):
            _fail(errands, ErrorCode.NETWORK_EXCEPTION)
            return
        try:
            outcomes = self._read(response)
        except KafkaError as refusal:
            _fail(errands, refusal.code)
            return
        for errand in errands:
            told = outcomes.get(errand.key, {})
            errand.answer.complete(
                {each: told.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in errand.partitions}
            )


class _Courier(Generic[B]):
    """Goes to one broker, and waits for its answer before it goes again."""

    __slots__ = ("_broker_id", "_couriers", "_under_way", "_waiting")

    def __init__(self, couriers: Couriers[B], broker_id: int) -> None:
        self._couriers = couriers
        self._broker_id = broker_id
        self._waiting: deque[Errand[B]] = deque()
        self._under_way: list[Errand[B]] = []

    def take(self, errand: Errand[B]) -> None:
        self._waiting.append(errand)
        self._leave()

    def give_up(self) -> None:
        """What is under way may arrive still; its answer is of no use any more."""
        given_up = [*self._under_way, *self._waiting]
        self._under_way = []
        self._waiting.clear()
        _fail(given_up, ErrorCode.NETWORK_EXCEPTION)

    def _leave(self) -> None:
        while self._waiting and not self._under_way:
            errands = self._under_way = self._load()
            if errands and not self._couriers.ask(
                self._broker_id, errands, partial(self._back, errands)
            ):
                self._under_way = []
                _fail(errands, ErrorCode.NETWORK_EXCEPTION)

    def _load(self) -> list[Errand[B]]:
        """The longest waiting, with no key twice; what nobody wants any more is left behind."""
        by_key: dict[Hashable, Errand[B]] = {}
        stay: list[Errand[B]] = []
        while self._waiting and len(by_key) < ERRANDS_A_REQUEST:
            errand = self._waiting.popleft()
            if errand.is_wanted() and by_key.setdefault(errand.key, errand) is not errand:
                stay.append(errand)
        self._waiting.extendleft(reversed(stay))
        return list(by_key.values())

    def _back(self, errands: list[Errand[B]], answer: Any) -> None:
        if self._under_way is not errands:
            return  # it was given up
        self._under_way = []
        self._couriers.tell(errands, answer)
        self._leave()


def _fail(errands: Sequence[Errand[Any]], code: ErrorCode) -> None:
    for errand in errands:
        errand.fail(code)


class Brokers:
    """Finds who leads what, and where they listen for other brokers."""

    __slots__ = ("_image", "_listener", "_peers", "node_id")

    def __init__(
        self, node_id: int, image: Callable[[], Image], peers: Peers, listener: str
    ) -> None:
        self.node_id = node_id
        self._image = image
        self._peers = peers
        self._listener = listener

    def leader_of(self, topic: str, index: int) -> int | None:
        """The broker that leads a partition; None if it has no leader now, or is not there."""
        state = self._image().topics.by_name(topic)
        partition = state.partitions.get(index) if state is not None else None
        if partition is None or partition.leader == NO_LEADER:
            return None
        return partition.leader

    def peer(self, broker_id: int, purpose: str) -> Peer | None:
        """The connection to a broker for one purpose; None if it cannot be reached now."""
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoint = endpoint_of(broker, self._listener)
        if endpoint is None:
            return None
        return self._peers.at(endpoint.host, endpoint.port, purpose)
