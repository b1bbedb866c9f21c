"""The producers of a Spark Python worker, kept from one task to the next.

A transactional id is used again for a later batch only: Spark begins none before the driver has
ended all transactions of the one before. Ids that the last decision names are not used at all as
long as the run lasts in which it was read, since it may not be carried out yet.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from barnabas.client.producer import Producer
from barnabas.spark.kept import Kept
from barnabas.spark.sink import names
from barnabas.spark.sink.ledger import MOST_KEPT, PATIENCE_S


@dataclass(slots=True)
class Lane:
    """One transactional id of this process."""

    transactional_id: str
    producer: Producer
    batch: int

    def begin(self) -> None:
        self.producer.init_transactions(PATIENCE_S)
        self.producer.begin_transaction()


@dataclass(slots=True)
class Pool:
    """The lanes of one query."""

    conf: Mapping[str, str]
    prefix: str
    lanes: list[Lane] = field(default_factory=list)
    made: int = 0

    def take(self, batch: int, decided: Container[str]) -> Lane:
        """A lane in which nothing is left that may count."""
        for lane in self.lanes:
            if lane.batch < batch and lane.transactional_id not in decided:
                lane.batch = batch
                return lane
        transactional_id = names.of_task(self.prefix, names.WorkerName.here(), self.made)
        self.made += 1
        producer = Producer({**self.conf, "transactional.id": transactional_id})
        lane = Lane(transactional_id, producer, batch)
        self.lanes.append(lane)
        return lane

    def discard(self, lane: Lane) -> None:
        """Never use it again: its task has failed."""
        self.lanes.remove(lane)
        lane.producer.close(0)

    def close(self) -> None:
        for lane in self.lanes:
            lane.producer.close(0)


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
