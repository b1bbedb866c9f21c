"""The producers of a Spark Python worker, kept from one task to the next.

A transactional id is used again for a later batch only: Spark begins none before the driver has
ended all transactions of the one before. Ids that the last decision names are not used at all as
long as the run lasts in which it was read, since it may not be carried out yet.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from barnabas.client.lru_cache import LruCache
from barnabas.client.producer import Producer
from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import transactional_ids
from barnabas.spark.sink.transaction_log import MAX_CACHED, REQUEST_TIMEOUT_S

MOST_CONNECTED = 64
"""Producers of a query that stay connected: a batch may have thousands of tasks."""


@dataclass(slots=True, eq=False)
class TransactionalProducerSlot:
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
        self._producer.init_transactions(REQUEST_TIMEOUT_S)
        self._producer.begin_transaction()
        return self._producer

    def prepare(self) -> PreparedTransaction:
        assert self._producer is not None, "what is prepared has begun"
        return self._producer.prepare_transaction(REQUEST_TIMEOUT_S)

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
class TransactionalProducerPool:
    """The lanes of one query."""

    conf: Mapping[str, str]
    prefix: str
    worker: str = field(default_factory=transactional_ids.new_worker)
    lanes: list[TransactionalProducerSlot] = field(default_factory=list)
    made: int = 0

    def acquire(self, batch: int, decided: Container[str]) -> TransactionalProducerSlot:
        """A lane in which nothing is left that may count."""
        for lane in self.lanes:
            if lane.batch < batch and lane.transactional_id not in decided:
                break
        else:
            lane = self._another()
        lane.batch = batch
        return lane

    def release(self, lane: TransactionalProducerSlot) -> None:
        """For a later batch."""
        if self.lanes.index(lane) >= MOST_CONNECTED:
            lane.disconnect()

    def discard(self, lane: TransactionalProducerSlot) -> None:
        """Never use it again: its task has failed."""
        self.lanes.remove(lane)
        lane.disconnect()

    def close(self) -> None:
        for lane in self.lanes:
            lane.disconnect()

    def _another(self) -> TransactionalProducerSlot:
        transactional_id = transactional_ids.of_task(self.prefix, self.worker, self.made)
        self.made += 1
        self.lanes.append(
            TransactionalProducerSlot({**self.conf, "transactional.id": transactional_id})
        )
        return self.lanes[-1]


_pools: LruCache[tuple[frozenset[tuple[str, str]], str], TransactionalProducerPool] = LruCache(
    MAX_CACHED, on_evict=TransactionalProducerPool.close
)
_plain: LruCache[frozenset[tuple[str, str]], Producer] = LruCache(
    MAX_CACHED, on_evict=lambda producer: producer.close(0)
)


def pool_for(conf: Mapping[str, str], prefix: str) -> TransactionalProducerPool:
    """This process's for a query."""
    return _pools.get_or_create(
        (frozenset(conf.items()), prefix), lambda: TransactionalProducerPool(conf, prefix)
    )


def plain_producer(conf: Mapping[str, str]) -> Producer:
    """This process's producer without transactions."""
    return _plain.get_or_create(frozenset(conf.items()), lambda: Producer(dict(conf)))
