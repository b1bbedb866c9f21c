"""The producers of a Spark Python worker, kept from one task to the next.

A transactional id is used again for a later batch only: Spark begins none before the driver has
ended all transactions of the one before. Ids that the last decision names are not used at all as
long as the run lasts in which it was read, since it may not be carried out yet.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from barnabas.client.producer import Producer
from barnabas.client.values import PreparedTransaction
from barnabas.spark.kept import Kept
from barnabas.spark.sink import names
from barnabas.spark.sink.ledger import MOST_KEPT, PATIENCE_S

MOST_CONNECTED = 64
"""Producers of a query that stay connected: a batch may have thousands of tasks."""


@dataclass(slots=True, eq=False)
class Lane:
    """One transactional id of this process."""

    conf: Mapping[str, str]
    """With the id."""
    batch: int = -1
    """That it was used for last."""
    _producer: Producer | None = None

    @property
    def transactional_id(self) -> str:
        return self.conf["transactional.id"]

    def begin(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(dict(self.conf))
        self._producer.init_transactions(PATIENCE_S)
        self._producer.begin_transaction()
        return self._producer

    def prepare(self) -> PreparedTransaction:
        assert self._producer is not None, "what is prepared has begun"
        return self._producer.prepare_transaction(PATIENCE_S)

    def abort(self) -> None:
        """KafkaException where there is nothing to abort, or nobody who does it soon."""
        if self._producer is not None:
            self._producer.abort_transaction(5)

    def disconnect(self) -> None:
        """What is prepared stays so."""
        if self._producer is not None:
            self._producer.close(0)
            self._producer = None


@dataclass(slots=True)
class Pool:
    """The lanes of one query."""

    conf: Mapping[str, str]
    prefix: str
    worker: str = field(default_factory=names.new_worker)
    lanes: list[Lane] = field(default_factory=list)
    made: int = 0

    def take(self, batch: int, decided: Container[str]) -> Lane:
        """A lane in which nothing is left that may count."""
        for lane in self.lanes:
            if lane.batch < batch and lane.transactional_id not in decided:
                break
        else:
            lane = self._another()
        lane.batch = batch
        return lane

    def put_back(self, lane: Lane) -> None:
        """For a later batch."""
        if self.lanes.index(lane) >= MOST_CONNECTED:
            lane.disconnect()

    def discard(self, lane: Lane) -> None:
        """Never use it again: its task has failed."""
        self.lanes.remove(lane)
        lane.disconnect()

    def close(self) -> None:
        for lane in self.lanes:
            lane.disconnect()

    def _another(self) -> Lane:
        transactional_id = names.of_task(self.prefix, self.worker, self.made)
        self.made += 1
        self.lanes.append(Lane({**self.conf, "transactional.id": transactional_id}))
        return self.lanes[-1]


_pools: Kept[tuple[frozenset[tuple[str, str]], str], Pool] = Kept(MOST_KEPT, let_go=Pool.close)
_plain: Kept[frozenset[tuple[str, str]], Producer] = Kept(
    MOST_KEPT, let_go=lambda producer: producer.close(0)
)


def pool_for(conf: Mapping[str, str], prefix: str) -> Pool:
    """This process's for a query."""
    return _pools.get((frozenset(conf.items()), prefix), lambda: Pool(conf, prefix))


def plain_producer(conf: Mapping[str, str]) -> Producer:
    """This process's producer without transactions."""
    return _plain.get(frozenset(conf.items()), lambda: Producer(dict(conf)))
