# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Where records wait to be sent: each is encoded into its partition's open batch as it comes.

`Accumulator.append` runs in the user's thread, once a record; everything else runs on the loop,
once a batch. One lock serves both. The fields of the classes are in `_accumulator.pxd`.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message
    from cython.cimports.barnabas.client.producer._batch import Batch
    from cython.cimports.barnabas.client.producer._queues import Chance, Queue, Topic

else:
    from barnabas.client._message import Message
    from barnabas.client.producer._batch import Batch
    from barnabas.client.producer._queues import Chance, Queue, Topic

COMPILED: bool = cython.compiled

_LARGEST_RECORD_HEAD = cython.declare(cython.Py_ssize_t, 32)
"""Of the varints before, between and behind a record's key and value."""


@cython.cclass
class Accumulator:
    """All records that were produced and are not yet sent, by partition; bounded."""

    def __init__(
        self,
        wake: object,
        *,
        largest_records: int,
        largest_bytes: int,
        largest_record: int,
        batch_bytes: int,
        batch_records: int,
        linger_s: float,
        hashed: object = None,
        frees_missing: bool = True,
        frees_empty: bool = False,
        choose: object = None,
        sticky_ms: int = 10,
        is_adaptive: bool = True,
        seed: int = 1,
    ) -> None:
        self.lock = Lock()
        self.acquire = self.lock.acquire
        self.release = self.lock.release
        self.wake = wake
        self.topics = {}
        self.busy = []
        self.records = self.size = self.waiting = 0
        self.largest_records = largest_records
        self.largest_bytes = largest_bytes
        self.largest_record = largest_record
        self.batch_bytes = batch_bytes
        self.batch_records = batch_records
        self.linger_s = linger_s
        self.hashed = hashed
        self.frees_missing = frees_missing
        self.frees_empty = frees_empty
        self.choose = choose
        self.chance = Chance(batch_bytes, sticky_ms, is_adaptive, seed)
        self.is_rung = self.has_timer = self.is_pressed = False
        self.flushing = 0
        self.unknown = []

    # In the user's thread

    @cython.ccall
    def append(
        self,
        name: str,
        partition: cython.int,
        key: bytes,
        value: bytes,
        timestamp: cython.longlong,
        headers: list,
        callback: object,
        message: object,
    ) -> object:
        """Take one record in: bytes or None, and pairs of bytes for headers, or None.

        `message` is completed and given to `callback` at delivery. BufferError if there is no
        room, OverflowError if there never could be, IndexError without such a partition.
        """
        body: cython.Py_ssize_t = 0
        if key is not None:
            body += len(key)
        if value is not None:
            body += len(value)
        if headers is not None:
            for header, content in headers:
                body += len(header) + 10 + (0 if content is None else len(content))
        if body > self.largest_record:
            raise OverflowError(body)
        chosen: cython.longlong = partition
        if chosen < 0 and self.choose is not None:
            chosen = self._ask_user(name, key)
        wakes: cython.bint = False
        self.acquire()
        try:
            if self.records >= self.largest_records or self.size + body > self.largest_bytes:
                self._refuse()
            wakes = self._add(name, chosen, key, value, timestamp, headers, body, callback, message)
        finally:
            self.release()
        if wakes:
            self.wake()
        return None

    def append_encoded(self, name: str, partition: int, batch: Batch) -> None:
        """Take a whole batch in, behind what its partition has; BufferError if there is no room."""
        wakes: cython.bint
        with self.lock:
            if self.records and (
                self.records >= self.largest_records
                or self.size + batch.charged > self.largest_bytes
            ):
                self._refuse()
            topic: Topic = self.topics[name]
            queue: Queue = topic.queues[partition]
            queue.close()
            queue.full.append(batch)
            self.records += batch.count
            self.size += batch.charged
            self._mark_busy(queue)
            wakes = not self.is_rung
            self.is_rung = True
        if wakes:
            self.wake()

    def next_sticky(self, name: str) -> int:
        """The partition for a batch's worth of records without a key."""
        with self.lock:
            topic: Topic = self.topics[name]
            return topic.pick().partition

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has; 0 if that is not known, which is then found out."""
        wakes: cython.bint = False
        with self.lock:
            topic: Topic = self._topic(name)
            if topic.queues:
                return len(topic.queues)
            wakes = not self.is_rung
            self.is_rung = True
        if wakes:
            self.wake()
        return 0

    @cython.cfunc
    def _add(
        self,
        name: str,
        partition: cython.longlong,
        key: bytes,
        value: bytes,
        timestamp: cython.longlong,
        headers: list,
        body: cython.Py_ssize_t,
        callback: object,
        message: object,
    ) -> cython.bint:
        """The record goes to its batch; whether the loop has to be woken for it."""
        topic: Topic = self.topics.get(name)
        if topic is None:
            topic = self._topic(name)
        if partition >= len(topic.queues) > 0:
            raise IndexError(partition)
        if not topic.queues:
            topic.waiting.append((partition, key, value, timestamp, headers, callback, message))
            topic.waiting_bytes += body
            self.records += 1
            self.size += body
            self.waiting += 1
            return self._ring(len(topic.waiting) == 1)
        queue: Queue
        if partition >= 0:
            queue = topic.queues[partition]
        elif self.hashed is not None and (
            not self.frees_missing if key is None else len(key) > 0 or not self.frees_empty
        ):
            hashed: cython.longlong = self.hashed(b"" if key is None else key)
            queue = topic.queues[hashed % len(topic.queues)]
        else:
            queue = topic.stick(timestamp, body)
        batch: Batch = queue.open
        is_news: cython.bint = False
        if batch is not None and (
            batch.size + body + _LARGEST_RECORD_HEAD > self.batch_bytes
            or batch.count >= self.batch_records
        ):
            queue.close()
            batch = None
            is_news = True
        if batch is None:
            batch = queue.open = Batch(queue.topic, queue.partition, queue.expected, monotonic())
            self._mark_busy(queue)
            is_news = is_news or not self.has_timer
        before: cython.Py_ssize_t = batch.size
        if callback is not None:
            reported: Message = message
            reported._partition = queue.partition
            reported._offset = batch.count
            batch.messages.append(message)
            batch.callbacks.append(callback)
        batch.append(key, value, timestamp, headers, body)
        before = batch.size - before
        batch.charged += before
        self.records += 1
        self.size += before
        return self._ring(is_news)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _ring(self, is_news: cython.bint) -> cython.bint:
        if is_news and not self.is_rung:
            self.is_rung = True
            return True
        return False

    @cython.cfunc
    def _topic(self, name: str) -> Topic:
        topic: Topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = Topic(name, self.chance, monotonic())
            self.unknown.append(name)
        return topic

    @cython.cfunc
    def _mark_busy(self, queue: Queue) -> cython.int:
        if not queue.is_busy:
            queue.is_busy = True
            self.busy.append(queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-2)
    def _ask_user(self, name: str, key: bytes) -> cython.longlong:
        """The partition that the user's own partitioner names; -1 if it leaves that to us."""
        topic: Topic = self.topics.get(name)
        count: cython.longlong = 0 if topic is None else len(topic.queues)
        if count == 0:
            return -1  # asked again when the partitions are known
        chosen: cython.longlong = self.choose(name, key, count)
        if chosen < -1 or chosen >= count:
            raise ValueError(f"The partitioner chose {chosen} of {count} partitions of {name}.")
        return chosen

    @cython.cfunc
    def _refuse(self) -> cython.int:
        """There is no room; lingering would help nobody now."""
        self.is_pressed = True
        raise BufferError("Local: Queue full")

    # On the loop

    def ready(self, now_s: cython.double) -> tuple[list[Queue], object]:
        """The queues with a batch to be sent now, and when the next one is due by its age."""
        queue: Queue
        due: list = []
        busy: list = []
        oldest_s: cython.double = 0
        with self.lock:
            self.is_rung = False
            at_once: cython.bint = self.flushing > 0 or self.is_pressed
            for queue in self.busy:
                if not queue.full and queue.open is None:
                    queue.is_busy = False
                    continue
                busy.append(queue)
                if queue.full or at_once or queue.open.opened_s + self.linger_s <= now_s:
                    due.append(queue)
                elif oldest_s == 0 or queue.open.opened_s < oldest_s:
                    oldest_s = queue.open.opened_s
            self.busy = busy
            self.has_timer = oldest_s != 0
        return due, oldest_s + self.linger_s if oldest_s != 0 else None

    def is_due(self, queue: Queue, now_s: cython.double) -> bool:
        """Whether a queue still has a batch to be sent now."""
        with self.lock:
            if queue.full:
                return True
            return queue.open is not None and (
                self.flushing > 0 or self.is_pressed or queue.open.opened_s + self.linger_s <= now_s
            )

    def take(self, queue: Queue) -> object:
        """The first batch of a queue, which takes no more records; None if it is empty."""
        with self.lock:
            if not queue.full:
                queue.close()
            if not queue.full:
                return None
            batch: Batch = queue.full.pop(0)
        batch.end()
        return batch

    def let_go(self, batch: Batch) -> bool:
        """It was delivered, or has failed, and that was reported if it had to be.

        Whether there is room again for somebody who has found none: he is not woken for each
        batch that leaves, but when a quarter of the buffer is free.
        """
        with self.lock:
            self.records -= batch.count
            self.size -= batch.charged
            if (
                not self.is_pressed
                or self.records > self.largest_records - self.largest_records // 4
                or self.size > self.largest_bytes - self.largest_bytes // 4
            ):
                return False
            self.is_pressed = False
            return True

    def expired(self, before_s: cython.double) -> list[Batch]:
        """Take out every batch that was begun before a time; the open ones too."""
        queue: Queue
        batch: Batch
        old: list = []
        with self.lock:
            for queue in self.busy:
                while queue.full:
                    batch = queue.full[0]
                    if batch.opened_s >= before_s:
                        break
                    old.append(queue.full.pop(0))
                if queue.open is not None and queue.open.opened_s < before_s:
                    queue.close()
                    old.append(queue.full.pop())
        for batch in old:
            batch.end()
        return old

    def asked_for(self) -> list[str]:
        """Topics that records came for since the last time, which nothing is known of."""
        with self.lock:
            names, self.unknown = self.unknown, []
        return names

    def learn(self, name: str, count: int, available: object) -> list[Batch]:
        """A topic's partitions are known now, or there are more of them.

        What waited for that goes to its batches. Returns batches of those records that name a
        partition that there is not.
        """
        misfits: list = []
        with self.lock:
            topic: Topic = self._topic(name)
            index: cython.Py_ssize_t
            for index in range(len(topic.queues), count):
                topic.queues.append(Queue(name, index))
            topic.available = [topic.queues[index] for index in available]
            if topic.sticky is not None and topic.sticky not in topic.available:
                topic.sticky = None
            waiting: list = topic.waiting
            self._forget_waiting(topic)
            for partition, key, value, timestamp, headers, callback, message in waiting:
                if partition >= len(topic.queues):
                    misfits.append(self._stand_in(topic, partition, [(callback, message)]))
                    continue
                if partition < 0 and self.choose is not None:
                    partition = self._ask_user(name, key)
                body: cython.Py_ssize_t = (0 if key is None else len(key)) + (
                    0 if value is None else len(value)
                )
                if headers is not None:
                    for header, content in headers:
                        body += len(header) + 10 + (0 if content is None else len(content))
                self._add(name, partition, key, value, timestamp, headers, body, callback, message)
        return misfits

    def give_up(self, name: str) -> object:
        """The records that wait for a topic to be known, to be reported; None if none do."""
        with self.lock:
            topic: Topic = self.topics.get(name)
            if topic is None or not topic.waiting:
                return None
            waiting: list = topic.waiting
            self._forget_waiting(topic)
            return self._stand_in(topic, -1, [(each[5], each[6]) for each in waiting])

    def waiting_since(self) -> dict[str, float]:
        """Topics with records that wait for them to be known, and since when."""
        with self.lock:
            return {
                name: cython.cast(Topic, topic).since_s
                for name, topic in self.topics.items()
                if cython.cast(Topic, topic).waiting
            }

    def purge(self) -> list[Batch]:
        """Take out all that is not on its way."""
        taken: list = []
        queue: Queue
        batch: Batch
        topic: Topic
        with self.lock:
            for queue in self.busy:
                queue.close()
                taken.extend(queue.full)
                queue.full = []
            for topic in self.topics.values():
                if topic.waiting:
                    waiting: list = topic.waiting
                    self._forget_waiting(topic)
                    taken.append(self._stand_in(topic, -1, [(w[5], w[6]) for w in waiting]))
        for batch in taken:
            batch.end()
        return taken

    def shun(self, queue: Queue, is_shunned: bool) -> None:
        """Whether records that may go anywhere should go elsewhere (KIP-794)."""
        queue.is_shunned = is_shunned

    def flush(self, is_flushing: bool) -> None:
        """Whether batches are sent however young they are; every beginning has its end."""
        with self.lock:
            self.flushing += 1 if is_flushing else -1

    @property
    def held_records(self) -> int:
        """Records whose delivery is not known, or not yet reported to who wants that."""
        return self.records

    @property
    def held_bytes(self) -> int:
        return self.size

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be sent."""
        queue: Queue
        with self.lock:
            for queue in self.busy:
                if queue.full or queue.open is not None:
                    return False
            for name in self.topics:
                topic: Topic = self.topics[name]
                if topic.waiting:
                    return False
            return True

    @cython.cfunc
    def _forget_waiting(self, topic: Topic) -> cython.int:
        self.records -= len(topic.waiting)
        self.waiting -= len(topic.waiting)
        self.size -= topic.waiting_bytes
        topic.waiting = []
        topic.waiting_bytes = 0
        topic.since_s = monotonic()
        return 0

    @cython.cfunc
    def _stand_in(self, topic: Topic, partition: cython.int, wanted: list) -> Batch:
        """A batch that only carries the reports of records that will not be sent."""
        batch: Batch = Batch(topic.name, partition, 0, topic.since_s)
        batch.size = 0
        batch.count = len(wanted)
        self.records += batch.count
        for callback, message in wanted:
            if callback is not None:
                batch.messages.append(message)
                batch.callbacks.append(callback)
        return batch
