"""The producers of a Spark Python worker, which tasks reuse.

A transactional id is reused only for a later batch: Spark starts no batch before the driver has
completed all transactions of the one before. Ids in the last decision are not used in the run that
read it, since their transactions may still have to be committed.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from barnabas.client.lru_cache import LruCache
from barnabas.client.producer import Producer
from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import transactional_ids
from barnabas.spark.sink.transaction_log import MAX_CACHED, REQUEST_TIMEOUT_S

MAX_CONNECTED = 64
"""The number of a query's producers that stay connected: a batch may have thousands of tasks."""


@dataclass(slots=True, eq=False)
class TransactionalProducerSlot:
    """One transactional id of this process, with its producer."""

    conf: Mapping[str, str]
    """The settings of the producer, including the transactional id."""
    batch: int = -1
    """The last batch that used the id."""
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
        assert self._producer is not None, "begin() comes before prepare()"
        return self._producer.prepare_transaction(REQUEST_TIMEOUT_S)

    def abort(self) -> None:
        """Raises KafkaException if no transaction is open, or the coordinator does not respond."""
        if self._producer is not None:
            self._producer.abort_transaction(5)

    def disconnect(self) -> None:
        """Close the connections; a prepared transaction stays open."""
        if self._producer is not None:
            self._producer.close(0)
            self._producer = None


@dataclass(slots=True)
class TransactionalProducerPool:
    """The producers of one query in this process."""

    conf: Mapping[str, str]
    prefix: str
    worker: str = field(default_factory=transactional_ids.random_worker_id)
    slots: list[TransactionalProducerSlot] = field(default_factory=list)
    slots_created: int = 0

    def acquire(self, batch: int, decided: Container[str]) -> TransactionalProducerSlot:
        """Returns a slot without a transaction that may still have to be committed."""
        for slot in self.slots:
            if slot.batch < batch and slot.transactional_id not in decided:
                break
        else:
            slot = self._add_slot()
        slot.batch = batch
        return slot

    def release(self, slot: TransactionalProducerSlot) -> None:
        """Keep the slot for a later batch."""
        if self.slots.index(slot) >= MAX_CONNECTED:
            slot.disconnect()

    def discard(self, slot: TransactionalProducerSlot) -> None:
        """Remove the slot of a task that failed."""
        self.slots.remove(slot)
        slot.disconnect()

    def close(self) -> None:
        for slot in self.slots:
            slot.disconnect()

    def _add_slot(self) -> TransactionalProducerSlot:
        transactional_id = transactional_ids.task_id(self.prefix, self.worker, self.slots_created)
        self.slots_created += 1
        self.slots.append(
            TransactionalProducerSlot({**self.conf, "transactional.id": transactional_id})
        )
        return self.slots[-1]


_pools: LruCache[tuple[frozenset[tuple[str, str]], str], TransactionalProducerPool] = LruCache(
    MAX_CACHED, on_evict=TransactionalProducerPool.close
)
_plain_producers: LruCache[frozenset[tuple[str, str]], Producer] = LruCache(
    MAX_CACHED, on_evict=lambda producer: producer.close(0)
)


def pool_for(conf: Mapping[str, str], prefix: str) -> TransactionalProducerPool:
    """Returns this process's pool for a query."""
    return _pools.get_or_create(
        (frozenset(conf.items()), prefix), lambda: TransactionalProducerPool(conf, prefix)
    )


def plain_producer(conf: Mapping[str, str]) -> Producer:
    """Returns this process's producer without transactions."""
    return _plain_producers.get_or_create(frozenset(conf.items()), lambda: Producer(dict(conf)))
